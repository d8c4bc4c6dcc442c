package project

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

var shopLabels = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}

// newTier is a fixture whose API server serves ClusterNetworkPolicies.
func newTier(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	b := newFixture(t, objects...)
	b.serveTier()
	return b
}

func (b *fixture) serveTier() {
	b.api.Scheme().AddKnownTypeWithName(isolation.ClusterPolicyKind, &unstructured.Unstructured{})
	b.api.RESTMapper().(*meta.DefaultRESTMapper).Add(isolation.ClusterPolicyKind, meta.RESTScopeRoot)
}

// clusterPolicy returns the ClusterNetworkPolicy of the project; nil if it has none.
func (b *fixture) clusterPolicy() *unstructured.Unstructured {
	b.t.Helper()
	policy := isolation.NewClusterPolicy(shopNamespace, nil)
	if !b.get(policy) {
		return nil
	}
	return policy
}

// nested are ranges inside of each other, more than a ClusterNetworkPolicy can distinguish.
func nested() (ranges []string) {
	for bits := 8; bits <= 32; bits++ {
		ranges = append(ranges, fmt.Sprintf("203.0.113.0/%d", bits))
	}
	return ranges
}

// TestTheReasonForAMissingClusterPolicyIsReported. It is no failure while the API server does not serve the kind.
func TestTheReasonForAMissingClusterPolicyIsReported(t *testing.T) {
	kind := schema.GroupResource{Group: "policy.networking.k8s.io", Resource: "clusternetworkpolicies"}
	for name, c := range map[string]struct {
		served bool
		mapper meta.RESTMapper
		there  []client.Object
		egress []string
		fault  error
		want   string
	}{
		"the kind is not served":           {want: "done"},
		"nobody says whether it is served": {mapper: silent{}, want: "later steps run; failed ApplyFailed: asking whether ClusterNetworkPolicies are served: the server was unable to return a response"},
		"its definition is going":          {served: true, fault: apierrors.NewMethodNotSupported(kind, "create"), want: "done"},
		"its definition is being deleted":  {served: true, fault: apierrors.NewForbidden(kind, shopNamespace, errors.New("create not allowed while custom resource definition is terminating")), want: "done"},
		"its definition went":              {served: true, fault: apierrors.NewGenericServerResponse(404, "patch", schema.GroupResource{}, "", "404 page not found", 0, true), want: "done"},
		"the operator may not write":       {served: true, fault: apierrors.NewForbidden(kind, shopNamespace, nil), want: "later steps run; failed ApplyFailed: ClusterNetworkPolicy/" + shopNamespace},
		"somebody else has the name":       {served: true, there: []client.Object{isolation.NewClusterPolicy(shopNamespace, nil)}, want: "later steps run; stopped ApplyFailed: ClusterNetworkPolicy/" + shopNamespace + ": exists already"},
		"too many ranges": {served: true, egress: nested(),
			want: "later steps run; stopped ApplyFailed: the project has no ClusterNetworkPolicy, only its NetworkPolicy: a ClusterNetworkPolicy may have 25 rules"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.there...)
			if c.served {
				b = newTier(t, c.there...)
			}
			if c.mapper != nil {
				b.Tier.Mapper = c.mapper
			}
			b.fault = func(verb string, _ any, data string) error {
				if verb == "patch" && strings.Contains(data, isolation.ClusterPolicyKind.Kind) {
					return c.fault
				}
				return nil
			}
			s := b.ruledBy(c.egress...)
			if got := steptest.Outcome(t, b.guard(t.Context(), s)); !strings.HasPrefix(got, c.want) || c.want == "done" && got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if soon := s.Again() == 10*time.Second; soon != (c.want == "done" && c.fault != nil) {
				t.Errorf("looks again after %s", s.Again())
			}
			if policy := b.clusterPolicy(); len(c.there) == 0 && c.served && policy != nil {
				t.Errorf("it has %v", policy)
			}
		})
	}
}

// ruledBy is the scope of a project whose tenant may connect to ranges.
func (b *fixture) ruledBy(ranges ...string) *scope { return b.with(shop(), reaching(ranges...)) }

// TestAClusterPolicyFollowsItsProject: it says what the NetworkPolicy opens, and goes with the kind, with what it cannot say, and with the project.
func TestAClusterPolicyFollowsItsProject(t *testing.T) {
	b := newTier(t)
	guarded := func(s *scope, want string) *scope {
		t.Helper()
		if got := steptest.Outcome(t, b.guard(t.Context(), s)); !strings.HasPrefix(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		return b.again(s)
	}
	open := func() string {
		t.Helper()
		policy := b.clusterPolicy()
		if policy == nil {
			return "no policy"
		}
		rules, _, err := unstructured.NestedSlice(policy.Object, "spec", "egress")
		if err != nil || policy.GetLabels()[v1alpha1.ProjectLabel] != "shop" {
			t.Fatal(err, policy.GetLabels())
		}
		var all []string
		for _, rule := range rules {
			if r := rule.(map[string]any); r["name"] == "open-addresses" {
				all = append(all, fmt.Sprint(r["to"]))
			}
		}
		return strings.Join(all, " ")
	}
	s := guarded(b.ruledBy("203.0.113.0/24", "198.51.100.0/24"), "done")
	if got := open(); got != "[map[networks:[203.0.113.0/24 198.51.100.0/24]]]" {
		t.Errorf("it opens %s", got)
	}
	s.tenant.Spec.Egress = []string{"203.0.113.0/24"}
	s = guarded(s, "done")
	if got := open(); got != "[map[networks:[203.0.113.0/24]]]" {
		t.Errorf("after the tenant lost a range it opens %s", got)
	}
	s.tenant.Spec.Egress = nested()
	b.fault = func(_ string, o any, _ string) error {
		if policy, is := o.(*metav1.PartialObjectMetadata); is && policy.Kind == isolation.ClusterPolicyKind.Kind {
			return errAway
		}
		return nil
	}
	s = guarded(s, "later steps run; failed ApplyFailed: ClusterNetworkPolicy/kubeop-acme-shop: the API server is away")
	b.fault = func(string, any, string) error { return nil }
	s = guarded(s, "later steps run; stopped")
	if got := open(); got != "no policy" {
		t.Errorf("with too many rules it opens %s", got)
	}
	s.tenant.Spec.Egress = nil
	s = guarded(s, "done")
	if got := open(); got != "" {
		t.Errorf("without egress it opens %s", got)
	}
	recorded := func() bool {
		return strings.Contains(fmt.Sprint(s.project.Status.Inventory), isolation.ClusterPolicyKind.Kind)
	}
	if !recorded() {
		t.Error("it is not recorded")
	}
	b.Tier.Mapper = meta.NewDefaultRESTMapper(nil)
	b.Direct = interceptor.NewClient(b.api, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errAway }})
	if s = guarded(b.again(s), "later steps run; failed ApplyFailed: "); !recorded() {
		t.Error("it is forgotten before it is deleted")
	}
	b.Direct = b.api
	if s = guarded(b.again(s), "done"); recorded() {
		t.Error("it stays recorded while its kind is not served")
	}
}

// TestARemovedProjectLeavesNoClusterPolicy, not even one that was never recorded; one of somebody else stays.
func TestARemovedProjectLeavesNoClusterPolicy(t *testing.T) {
	foreign := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "other"}
	for name, c := range map[string]struct {
		labels map[string]string
		stays  bool
	}{"its own": {shopLabels, false}, "of another project": {foreign, true}, "of an administrator": {nil, true}} {
		b := newTier(t, isolation.NewClusterPolicy(shopNamespace, c.labels))
		if got := steptest.Outcome(t, b.release(t.Context(), b.newScope(shop(deletedProject)))); got != "done" {
			t.Errorf("%s: got %q", name, got)
		}
		if stays := b.clusterPolicy() != nil; stays != c.stays {
			t.Errorf("%s: it stays: %t", name, stays)
		}
	}
}

// TestARemovedProjectForgetsItsClusterPolicyOnlyOnceItIsGone: an operator that may not read the kind never made one, unless one is recorded.
func TestARemovedProjectForgetsItsClusterPolicyOnlyOnceItIsGone(t *testing.T) {
	refuses := apierrors.NewForbidden(schema.GroupResource{Resource: "clusternetworkpolicies"}, shopNamespace, errors.New("no right"))
	for name, c := range map[string]struct {
		recorded bool
		mapper   meta.RESTMapper
		fault    error
		want     string
		kept     bool
	}{
		"a kind that is not served":                 {false, meta.NewDefaultRESTMapper(nil), nil, "done", false},
		"one that was made, and is not served":      {true, meta.NewDefaultRESTMapper(nil), nil, "done", false},
		"one that cannot be deleted":                {true, meta.NewDefaultRESTMapper(nil), errAway, "failed Failed: ClusterNetworkPolicy/kubeop-acme-shop: the API server is away", true},
		"nobody says whether it is served":          {true, silent{}, nil, "failed Failed: the server was unable to return a response", true},
		"the operator has no right, and made none":  {false, nil, refuses, "done", false},
		"the operator has no right any more":        {true, nil, refuses, `failed AccessDenied: clusternetworkpolicies "kubeop-acme-shop" is forbidden: no right`, true},
		"an API server that is away, and none made": {false, nil, errAway, "failed Failed: the API server is away", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTier(t)
			s := b.ruledBy("203.0.113.0/24")
			if c.recorded {
				if err := b.guard(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			s = b.again(s)
			if c.mapper != nil {
				b.Tier.Mapper = c.mapper
			}
			b.fault = func(_ string, o any, _ string) error {
				if policy, is := o.(*metav1.PartialObjectMetadata); is && policy.Kind == isolation.ClusterPolicyKind.Kind {
					return c.fault
				}
				return nil
			}
			if got := steptest.Outcome(t, b.release(t.Context(), s)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			b.fault = func(string, any, string) error { return nil }
			if kept := b.again(s).confined(); kept != c.kept || b.clusterPolicy() != nil != c.kept {
				t.Errorf("it is recorded: %t, there: %t", kept, b.clusterPolicy() != nil)
			}
		})
	}
}
