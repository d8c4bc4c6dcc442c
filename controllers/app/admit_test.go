package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

func TestARefusalIsStalledUntilTheSourceChanges(t *testing.T) {
	unknown, forbidden := &policy.Violation{Object: "Bucket/a", Rule: policy.UnknownKind}, &policy.Violation{Object: "Node/a", Rule: policy.ClusterScoped}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                     {nil, false},
		"a limit":                     {fmt.Errorf("a: %w", &budget.Exceeded{Field: budget.AppObjects}), true},
		"an object that is forbidden": {errors.Join(forbidden), true},
		"a kind that is unknown yet":  {errors.Join(unknown), false},
		"both":                        {errors.Join(unknown, forbidden), true},
		"an error of the API server":  {errors.New("down"), false},
	} {
		if got := refused(c.err); got != c.want {
			t.Errorf("%s: stalled is %t, want %t", name, got, c.want)
		}
	}
}

// TestTheSizeOfAllAppsCountsAgainstTheTenant: two apps share a limit.
func TestTheSizeOfAllAppsCountsAgainstTheTenant(t *testing.T) {
	a := &admitter{tenants: Tenants{Rendered: &usage.Rendered{}}}
	of := func(tenant, name string) *scope {
		app := &v1alpha1.App{}
		app.Namespace, app.Name = "kubeop-"+tenant+"-shop", name
		s := scopeOf(app, &releaser{admitter: a})
		s.Owner.Tenant, s.Limits.RenderedBytes = tenant, 100
		return s
	}
	if err := a.weigh(of("acme", "web"))(60); err != nil {
		t.Fatal(err)
	}
	if err := a.weigh(of("acme", "api"))(40); err != nil {
		t.Errorf("a size at the limit is refused: %v", err)
	}
	if err := a.weigh(of("acme", "api"))(41); !errors.As(err, new(*budget.Exceeded)) {
		t.Errorf("one byte over the limit: got %v, want an error", err)
	}
	if err := a.weigh(of("beta", "api"))(100); err != nil {
		t.Errorf("an app of another tenant is refused: %v", err)
	}
	if err := a.weigh(of("acme", "web"))(61); !errors.As(err, new(*budget.Exceeded)) {
		t.Errorf("an app that grows over the limit: got %v, want an error", err)
	}
}

func TestClaimsThatBlockAReleaseReportASolution(t *testing.T) {
	err := releaseError(fmt.Errorf("upgrading: %w", &fault.ClaimsInTheWay{}))
	if !errors.As(err, new(*fault.ClaimsInTheWay)) || step.Waits(err) {
		t.Errorf("got %v", err)
	}
	other := errors.New("down")
	if got := releaseError(other); !errors.Is(got, other) || got.Error() != other.Error() {
		t.Errorf("another error was changed to %v", got)
	}
}

// TestOneRefusalSaysEverything: a pod breaks a rule of kubeop and one of Pod Security.
func TestOneRefusalSaysEverything(t *testing.T) {
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	a := &admitter{clients: kube.NewClients(nil, nil, kinds, kube.Deployers{}), podSecurity: api.LatestVersion()}
	app := &v1alpha1.App{}
	app.Namespace, app.Name = "kubeop-acme-shop", "agent"
	s := scopeOf(app, &releaser{admitter: a})
	s.PodSecurity, s.Limits.App = string(api.LevelRestricted), budget.Default().App
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "agent"},
		"spec": map[string]any{
			"hostNetwork": true, "containers": []any{map[string]any{"name": "agent", "image": "agent"}},
			"tolerations": []any{map[string]any{"operator": "Exists"}},
		},
	}}
	_, err := a.own(s, []*unstructured.Unstructured{pod})
	if !refused(err) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, want := range []string{"Pod/agent tolerates every taint", "Pod/agent breaks rule hostNamespaces", policy.AskPlatform} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}
