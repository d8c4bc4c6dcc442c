package tenant

import (
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestTheSummaryNamesSettingsThatAreSeldomMeant(t *testing.T) {
	owners := []v1alpha1.Owner{{Kind: "User", Name: "lead", Role: "admin"}}
	tests := map[string]struct {
		owners     []v1alpha1.Owner
		unfollowed int
		want       string
	}{
		"nothing to tell": {owners: owners, want: "Home is namespace kubeop-acme"},
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
