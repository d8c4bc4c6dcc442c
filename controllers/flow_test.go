package controllers

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// flowSchemaOf returns the FlowSchema and the priority level that the API server chooses for requests of a user.
func (n *team) flowSchemaOf(ctx context.Context, user string) (string, error) {
	n.t.Helper()
	var header http.Header
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if response != nil {
				header = response.Header
			}
			return response, err
		})
	})
	_, _ = kubernetes.NewForConfigOrDie(config).CoreV1().Pods("kubeop-fair-shop").List(ctx, metav1.ListOptions{})
	schemas, levels := &flowcontrolv1.FlowSchemaList{}, &flowcontrolv1.PriorityLevelConfigurationList{}
	if err := n.admin.List(ctx, schemas); err != nil {
		return "", err
	}
	if err := n.admin.List(ctx, levels); err != nil {
		return "", err
	}
	flow := ""
	for _, s := range schemas.Items {
		if string(s.UID) == header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) {
			flow = s.Name
		}
	}
	for _, l := range levels.Items {
		if string(l.UID) == header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID) {
			flow += " " + l.Name
		}
	}
	return flow, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestEachTenantHasItsOwnFlow asks the API server for the FlowSchema of several users.
func TestEachTenantHasItsOwnFlow(t *testing.T) {
	n := newTeam(t, "fair")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	for user, want := range map[string]string{
		operatorAccount: "kubeop kubeop",
		"system:serviceaccount:kubeop-fair-shop:kubeop-deployer": "kubeop-deployers-fair kubeop",
		"system:serviceaccount:kubeop-fair-shop:default":         "kubeop-tenant-fair kubeop-tenants",
		"system:serviceaccount:kubeop-fair-shop:bot":             "kubeop-tenant-fair kubeop-tenants",
		"system:serviceaccount:kubeop-fair-shop2:bot":            "service-accounts workload-low",
		"system:serviceaccount:cert-manager:kubeop-deployer":     "service-accounts workload-low",
		"jane": "global-default global-default",
	} {
		n.eventually(func() error {
			got, err := n.flowSchemaOf(t.Context(), user)
			if err == nil && got != want {
				err = fmt.Errorf("the FlowSchema and level of %s are %q, want %q", user, got, want)
			}
			return err
		})
	}
	// A new project's accounts are added, and a deleted tenant's are removed.
	n.push(shopFiles("second", "web"))
	n.ready(n.app("second", "web"))
	n.eventually(func() error {
		schema := &flowcontrolv1.FlowSchema{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Name: "kubeop-tenant-fair"}, schema); err != nil {
			return err
		}
		if got := schema.Spec.Rules[0].Subjects; len(got) != 2 || got[0].ServiceAccount.Namespace != "kubeop-fair-second" {
			return fmt.Errorf("the accounts are %v", got)
		}
		return nil
	})
	n.deleteOnPurpose(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}})
	n.gone(&flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-fair"}}, &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-deployers-fair"}})
}
