//go:build e2e

package charts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// changing are kinds whose objects come, go and change by themselves, whoever delivers what. Of the others everything counts but the status.
var changing = []schema.GroupKind{
	{Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}, // what happened, for an hour
	{Group: "coordination.k8s.io", Kind: "Lease"}, // the heartbeats of nodes and leaders
	{Kind: "ComponentStatus"},                     // no objects, but what the API server asks its parts
}

// ofTheMoment are fields that change with every write, or with every push.
var ofTheMoment = [][]string{
	{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
	{"metadata", "annotations", "reconcile.fluxcd.io/requestedAt"}, {"metadata", "annotations", v1alpha1.HookCalledAnnotation},
}

// journal is the operator's own memory of what it was about to make.
const journal = "ConfigMap kubeop-system/kubeop-journal"

// objects returns every object of the cluster, as JSON by its kind and name.
func objects(ctx context.Context) (map[string]string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", platform.Cluster.Kubeconfig)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := served.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			kind := version.WithKind(r.Kind)
			if slices.Contains(r.Verbs, "list") && !slices.Contains(changing, kind.GroupKind()) {
				err = errors.Join(err, addAll(ctx, all, kind))
			}
		}
		if err != nil {
			return nil, err
		}
	}
	delete(all, journal)
	return all, nil
}

func addAll(ctx context.Context, all map[string]string, kind schema.GroupVersionKind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List")) // The client takes one "List" off, also that of a kind named PriceList.
	if err := platform.Client.List(ctx, list); err != nil {
		return fmt.Errorf("listing %s: %w", kind, err)
	}
	for _, o := range list.Items {
		for _, path := range ofTheMoment {
			unstructured.RemoveNestedField(o.Object, path...)
		}
		text, err := json.Marshal(o.Object)
		if err != nil {
			return err
		}
		all[fmt.Sprintf("%s %s/%s", kind.GroupKind(), o.GetNamespace(), o.GetName())] = string(text)
	}
	return nil
}

// differences lists which objects were added, removed or changed.
func differences(before, now map[string]string) []string {
	var all []string
	for name, text := range now {
		switch old, ok := before[name]; {
		case !ok:
			all = append(all, name+" is left")
		case old != text:
			all = append(all, fmt.Sprintf("%s changed:\n%s\n%s", name, old, text))
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			all = append(all, name+" is gone")
		}
	}
	slices.Sort(all)
	return all
}

// serveLoadBalancers gives an address to the Services that wait for a load balancer, as the controller of a cloud does.
func serveLoadBalancers(ctx context.Context) {
	for ctx.Err() == nil {
		services := &corev1.ServiceList{}
		_ = platform.Client.List(ctx, services) // Retried; a test that waits for a Service says that it has no address.
		for i := range services.Items {
			s := &services.Items[i]
			if s.Spec.Type != corev1.ServiceTypeLoadBalancer || len(s.Status.LoadBalancer.Ingress) > 0 {
				continue
			}
			served := s.DeepCopy()
			served.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.1"}}
			_ = platform.Client.Status().Patch(ctx, served, client.MergeFrom(s))
		}
		time.Sleep(200 * time.Millisecond)
	}
}
