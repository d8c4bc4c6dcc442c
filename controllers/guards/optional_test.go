package guards

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/api"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// discovered answers as the mapper of the operator does.
type discovered struct {
	meta.RESTMapper
	versions []string
	err      error
}

func (d *discovered) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if d.err != nil {
		return nil, d.err
	}
	if kind == isolation.ClusterPolicyKind.GroupKind() && slices.Contains(d.versions, versions[0]) {
		return &meta.RESTMapping{}, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// TestDependentsOfAKindAreWokenWhenItComesOrGoes, and not by the other kinds that come and go.
func TestDependentsOfAKindAreWokenWhenItComesOrGoes(t *testing.T) {
	d, woken := &discovered{}, 0
	kind := &OptionalKind{Kind: isolation.ClusterPolicyKind, Mapper: d}
	kind.OnChange(func() { woken++ })
	for _, c := range []struct {
		name     string
		versions []string
		err      error
		served   bool
		woken    int
	}{
		{"not served", nil, nil, false, 0},
		{"in a version that kubeop does not know", []string{"v1"}, nil, false, 0},
		{"discovery fails", nil, errors.New("away"), false, 0},
		{"served", []string{"v1alpha2"}, nil, true, 1},
		{"something else came", []string{"v1alpha2", "v1"}, nil, true, 1},
		{"discovery fails again", nil, errors.New("away"), false, 1},
		{"gone", nil, nil, false, 2},
		{"back", []string{"v1alpha2"}, nil, true, 3},
	} {
		d.versions, d.err = c.versions, c.err
		kind.Look()
		if served, err := kind.Served(); served != c.served || (err != nil) != (c.err != nil) || woken != c.woken {
			t.Errorf("%s: served %t (%v), woken %d times, want %t, %d times", c.name, served, err, woken, c.served, c.woken)
		}
	}
}

// TestTheAdminTierIsNotSaidToBeEnforced: only the network plugin knows that, and that is no reason to say NotEnforced.
func TestTheAdminTierIsNotSaidToBeEnforced(t *testing.T) {
	all, err := Cluster{Admission: &Admission{}, Tier: true, Version: api.LatestVersion()}.Of(&v1alpha1.Tenant{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(g v1alpha1.GuardStatus) bool { return g.Name == Tier })
	if all[i].State != v1alpha1.GuardRenderedOnly {
		t.Errorf("got %+v", all[i])
	}
	if note := Note(all[i : i+1]); note.Status != "" {
		t.Errorf("the condition says %q", note.Message)
	}
}
