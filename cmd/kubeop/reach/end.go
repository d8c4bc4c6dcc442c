package reach

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// end is one side of a connection.
type end struct {
	// name is what messages call it.
	name  string
	peer  *matcher.TrafficPeer
	ports []corev1.ContainerPort
	// policies are those of its namespace.
	policies []networkingv1.NetworkPolicy
}

// finder finds what arguments mean.
type finder struct {
	*target.Connection
	reader client.Client
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

func resolver(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// find returns the ends that an argument means: a pod or the pods of a workload as TENANT/PROJECT/NAME, or the addresses of a host.
func (f *finder) find(ctx context.Context, arg string) ([]*end, error) {
	if address, err := netip.ParseAddr(arg); err == nil {
		return []*end{{name: arg, peer: &matcher.TrafficPeer{IP: address.String()}}}, nil
	}
	if strings.Contains(arg, "/") || !strings.Contains(arg, ".") {
		found, err := f.inside(ctx, arg)
		return []*end{found}, err
	}
	addresses, err := f.lookup(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("%q is no TENANT/PROJECT/NAME, and looking it up as a host failed: %w", arg, err)
	}
	var all []*end
	for _, address := range addresses {
		all = append(all, &end{name: fmt.Sprintf("%s (%s)", arg, address.Unmap()), peer: &matcher.TrafficPeer{IP: address.Unmap().String()}})
	}
	return all, nil
}

// inside returns a pod or a workload of a project.
func (f *finder) inside(ctx context.Context, arg string) (*end, error) {
	of, err := f.Named(target.App, arg)
	if err != nil {
		return nil, err
	}
	key := of.Key()
	pod, err := f.pod(ctx, key)
	if err != nil {
		return nil, err
	}
	if pod == nil {
		return nil, fmt.Errorf("namespace %s has no pod, Deployment, StatefulSet or DaemonSet named %s; `kubeop tree` shows what an app has", key.Namespace, key.Name)
	}
	found := &end{name: of.Ref.Path(), peer: &matcher.TrafficPeer{IP: pod.Status.PodIP}}
	if pod.Spec.HostNetwork {
		return found, nil // NetworkPolicies are about pods with an address of their own.
	}
	for _, container := range pod.Spec.Containers {
		found.ports = append(found.ports, container.Ports...)
	}
	marks, err := f.namespaceLabels(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	found.peer.Internal = &matcher.InternalPeer{Namespace: key.Namespace, NamespaceLabels: marks, PodLabels: pod.Labels}
	list := &networkingv1.NetworkPolicyList{}
	if err := f.reader.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the network policies of namespace %s: %w", key.Namespace, err)
	}
	found.policies = list.Items
	return found, nil
}

// pod returns the pod of this name, one of the pods of a workload, or the template of a workload without pods; nil if there is none.
func (f *finder) pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	pod, deployment, set, daemons := &corev1.Pod{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}
	for _, o := range []client.Object{pod, deployment, set, daemons} {
		err := f.reader.Get(ctx, key, o)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the pod or workload %s: %w", key, err)
		}
		switch o := o.(type) {
		case *corev1.Pod:
			return o, nil
		case *appsv1.Deployment:
			return f.podOf(ctx, key.Namespace, o.Spec.Selector, &o.Spec.Template)
		case *appsv1.StatefulSet:
			return f.podOf(ctx, key.Namespace, o.Spec.Selector, &o.Spec.Template)
		case *appsv1.DaemonSet:
			return f.podOf(ctx, key.Namespace, o.Spec.Selector, &o.Spec.Template)
		}
	}
	return nil, nil
}

// podOf returns a pod of a workload, one with an address if there is one.
func (f *finder) podOf(ctx context.Context, namespace string, by *metav1.LabelSelector, template *corev1.PodTemplateSpec) (*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of a workload in namespace %s: %w", namespace, err)
	}
	pods := &corev1.PodList{}
	if err := f.reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
	}
	if i := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Status.PodIP != "" && pod.DeletionTimestamp == nil }); i >= 0 {
		return &pods.Items[i], nil
	}
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, nil
}

// namespaceLabels returns the labels of a namespace. Who may not read it gets the label that the API server sets, and those of the project.
func (f *finder) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	namespace := &corev1.Namespace{}
	err := f.reader.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsForbidden(err) {
		tenant := v1alpha1.TenantOf(name)
		return map[string]string{
			corev1.LabelMetadataName: name, v1alpha1.TenantLabel: tenant, v1alpha1.ProjectLabel: strings.TrimPrefix(name, v1alpha1.ProjectNamespace(tenant, "")),
		}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace.Labels, nil
}

// at returns the port of a connection to this end: the number that is asked about, or else the first port of its containers, or 443 outside.
func (e *end) at(number int, protocol corev1.Protocol) port {
	if number == 0 && len(e.ports) > 0 {
		number = int(e.ports[0].ContainerPort)
		if e.ports[0].Protocol != "" {
			protocol = e.ports[0].Protocol
		}
	}
	if number == 0 {
		number = 443
	}
	at := port{number: number, protocol: protocol}
	for _, p := range e.ports {
		if int(p.ContainerPort) == number && (p.Protocol == protocol || p.Protocol == "" && protocol == corev1.ProtocolTCP) {
			at.name = p.Name
		}
	}
	return at
}
