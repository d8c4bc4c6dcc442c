package reach

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/isolation"
)

// tiers answers a list of ClusterNetworkPolicies, of which each is a name and a tier.
type tiers struct {
	client.Reader
	there [][2]string
	err   error
}

func (r tiers) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for _, one := range r.there {
		policy := isolation.NewClusterPolicy(one[0], nil)
		policy.Object["spec"] = map[string]any{"tier": one[1]}
		list.(*unstructured.UnstructuredList).Items = append(list.(*unstructured.UnstructuredList).Items, *policy)
	}
	return r.err
}

// TestTheVerdictSaysWhichPoliciesItLeavesOut: those that no NetworkPolicy overrides.
func TestTheVerdictSaysWhichPoliciesItLeavesOut(t *testing.T) {
	kind := schema.GroupResource{Group: isolation.ClusterPolicyKind.Group, Resource: "clusternetworkpolicies"}
	admin := func(names ...string) (all [][2]string) {
		for _, name := range names {
			all = append(all, [2]string{name, "Admin"})
		}
		return all
	}
	for name, c := range map[string]struct {
		reader tiers
		want   string
		fails  bool
	}{
		"the API server is away":   {tiers{err: errors.New("away")}, "", true},
		"they may not be read":     {tiers{err: apierrors.NewForbidden(kind, "", nil)}, "ClusterNetworkPolicies, which you may not read, may decide otherwise", false},
		"the kind is not served":   {tiers{err: &meta.NoKindMatchError{}}, "", false},
		"it is not served anymore": {tiers{err: apierrors.NewNotFound(kind, "")}, "", false},
		"none":                     {tiers{}, "", false},
		"only defaults":            {tiers{there: [][2]string{{"defaults", "Baseline"}}}, "", false},
		"some":                     {tiers{there: append(admin("b", "a"), [2]string{"defaults", "Baseline"})}, "ClusterNetworkPolicies of the tier Admin, which may decide otherwise: a, b", false},
		"many":                     {tiers{there: admin("a", "b", "c", "d", "e", "f")}, "which may decide otherwise: a, b, c, d", false},
	} {
		got, err := uncomputed(t.Context(), c.reader)
		if (err != nil) != c.fails || !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}
