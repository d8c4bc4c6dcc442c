package offline

import (
	"testing"

	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

func TestThePlaceOfAnObject(t *testing.T) {
	for name, want := range map[string]string{
		"acme/shop/web":     "tenants/acme/projects/shop/apps/web/app.yaml",
		"platform/shop/web": "platform/shop/apps/web/app.yaml",
	} {
		if got, err := placeOf(target.App, name, true); err != nil || got != want {
			t.Errorf("%s in the platform repository: got %s, %v; want %s", name, got, err, want)
		}
	}
	if got, err := placeOf(target.App, "shop/web", false); err != nil || got != "projects/shop/apps/web/app.yaml" {
		t.Errorf("in a tenant's repository: got %s, %v", got, err)
	}
}

// TestANameIsNotAPath: a name has the right number of parts and still leads to the file of another object, or out of the repository.
func TestANameIsNotAPath(t *testing.T) {
	for _, tc := range []struct {
		kind     target.Kind
		name     string
		platform bool
	}{
		{target.App, "shop/..", false},
		{target.App, "../web", false},
		{target.App, "acme/../web", true},
		{target.App, "../shop/web", true},
		{target.App, "shop/.", false},
		{target.App, "./web", false},
		{target.App, "shop/", false},
		{target.App, "/web", false},
		{target.App, `shop/..\web`, false},
		{target.App, "shop/c:", false},
		{target.Project, "..", false},
		{target.Tenant, "..", true},
		{target.Tenant, "", true},
	} {
		if got, err := placeOf(tc.kind, tc.name, tc.platform); err == nil {
			t.Errorf("%s %q, platform %t: got %s, want an error", tc.kind.Name, tc.name, tc.platform, got)
		}
	}
}
