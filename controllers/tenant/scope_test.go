package tenant

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

func TestTheSummaryNamesSettingsThatAreSeldomMeant(t *testing.T) {
	owners := []v1alpha1.Owner{{Kind: "User", Name: "lead", Role: "admin"}}
	tests := map[string]struct {
		owners     []v1alpha1.Owner
		unfollowed int
		want       string
	}{
		"nothing more": {owners: owners, want: "Home is namespace kubeop-acme"},
		"nobody has access": {
			want: "Home is namespace kubeop-acme; spec.owners is empty, so that only administrators have access",
		},
		"the repository was taken out": {
			owners: owners, unfollowed: 2,
			want: "Home is namespace kubeop-acme; 2 of its projects stay as they are, because spec.repository was removed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := scope{tenant: &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Owners: test.owners}}, home: "kubeop-acme", unfollowed: test.unfollowed}
			if got := s.Summary(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDeclaredByCountsTheProjectsOfOneRepository(t *testing.T) {
	var projects []v1alpha1.Project
	for _, repository := range []string{"acme", "platform", "", "acme", "acme"} {
		p := v1alpha1.Project{}
		p.Labels = map[string]string{v1alpha1.RepositoryLabel: repository}
		projects = append(projects, p)
	}
	if n := declaredBy("acme", projects); n != 3 {
		t.Errorf("counted %d, want 3", n)
	}
}

// TestAReconcileThatStopsEarlyKeepsWhatIsKnown: the first step may fail before anything is counted.
func TestAReconcileThatStopsEarlyKeepsWhatIsKnown(t *testing.T) {
	tenant := acme(func(a *v1alpha1.Tenant) {
		a.Status.Projects, a.Status.Budget = 3, &v1alpha1.BudgetStatus{Summary: "pods 1/2"}
		a.Status.Guards = []v1alpha1.GuardStatus{{Name: "Network", State: v1alpha1.GuardRenderedOnly}}
	})
	before := tenant.DeepCopy()
	before.Status.Namespace = "kubeop-acme"
	newFixture(t).newScope(tenant).Record()
	if diff := cmp.Diff(before.Status, tenant.Status, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-was +is:\n%s", diff)
	}
}

func TestOnlyATenantThatIsFrozenGetsAnEvent(t *testing.T) {
	for frozen, want := range map[bool]string{true: "Normal", false: ""} {
		notes := newFixture(t).newScope(acme(func(a *v1alpha1.Tenant) { a.Spec.Frozen = frozen })).Notes()
		if i := slices.IndexFunc(notes, func(n step.Note) bool { return n.Condition == v1alpha1.FrozenCondition }); i < 0 || notes[i].Event != want {
			t.Errorf("frozen %t: %+v, want the event %q", frozen, notes, want)
		}
	}
}
