package auth

import (
	"testing"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/store"
)

// TestOnlyAdministratorsHaveTheShareOfAdministrators: whoever owns nothing, or several tenants, must not use it up.
func TestOnlyAdministratorsHaveTheShareOfAdministrators(t *testing.T) {
	for name, c := range map[string]struct {
		tenant string
		grant  access.Grant
		want   string
	}{
		"an administrator":                     {"", access.Grant{{Role: access.Admin}}, ""},
		"an administrator who owns a tenant":   {"", access.Grant{{Role: access.TenantView, Tenant: "acme"}, {Role: access.Admin}}, ""},
		"the owner of one tenant":              {"acme", access.Grant{{Role: access.TenantView, Tenant: "acme"}}, "acme"},
		"the owner of several tenants":         {"", access.Grant{{Role: access.TenantView, Tenant: "acme"}, {Role: access.TenantView, Tenant: "beta"}}, "user:ann"},
		"somebody who owns nothing":            {"", nil, "user:ann"},
		"a program with a token of one tenant": {"beta", access.Grant{{Role: access.ProjectDeploy, Tenant: "beta", Project: "shop"}}, "beta"},
	} {
		if got := (Caller{Token: store.Token{ID: "user:ann", Tenant: c.tenant}, Grant: c.grant}).Share(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
