package owners

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"context"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func newOwners(admins ...string) *Owners {
	o := New()
	o.Administer(admins, []string{"sre"})
	o.Synced, o.Behind = func(context.Context) error { return nil }, func() time.Duration { return 0 }
	return o
}

func owner(kind, name, role string) v1alpha1.Owner {
	return v1alpha1.Owner{Kind: kind, Name: name, Role: role}
}

func TestAPersonHasTheScopesOfItsTenants(t *testing.T) {
	o := newOwners("root")
	o.Put("acme", []v1alpha1.Owner{owner("User", "ann", "admin"), owner("User", "x", "admin")}) // As it was before.
	o.Put("acme", []v1alpha1.Owner{owner("User", "ann", "view"), owner("Group", "dev", "edit"), owner("User", "bob", ""), owner("User", "twice", "admin"), owner("User", "twice", "view")})
	o.Put("beta", []v1alpha1.Owner{owner("User", "ann", "admin"), owner("Group", "ann", "view")})
	o.Put("gone", []v1alpha1.Owner{owner("User", "ann", "admin")})
	o.Put("gone", []v1alpha1.Owner{owner("User", "bob", "edit")})
	o.Forget("gone")
	o.Put("platform", []v1alpha1.Owner{owner("User", "ann", "admin")})
	for name, c := range map[string]struct {
		user   string
		groups []string
		want   string
	}{
		"by the name":                      {"ann", nil, "[tenant:acme:view tenant:beta:admin]"},
		"by the name and a group":          {"ann", []string{"dev", "other"}, "[tenant:acme:edit tenant:beta:admin]"},
		"without a role":                   {"bob", nil, "[tenant:acme:view]"},
		"with two roles":                   {"twice", nil, "[tenant:acme:admin]"},
		"a group with the name of a user":  {"x", []string{"bob"}, "[]"},
		"a user with the name of a group":  {"dev", nil, "[]"},
		"an administrator":                 {"root", []string{"dev"}, "[admin]"},
		"an administrator by the group":    {"ann", []string{"sre"}, "[admin]"},
		"a group that is an administrator": {"x", []string{"root"}, "[]"},
		"nobody":                           {"", nil, "[]"},
	} {
		if got, err := o.Grant(t.Context(), c.user, c.groups); err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v, want %s", name, got, err, c.want)
		}
	}
	for _, tenant := range []string{"acme", "beta", "platform"} {
		o.Forget(tenant)
	}
	if len(o.of) != 0 || len(o.in) != 0 {
		t.Errorf("left are %v and %v", o.of, o.in)
	}
}

// TestUnknownOwnersGiveNoRights, but administrators have theirs.
func TestUnknownOwnersGiveNoRights(t *testing.T) {
	o := newOwners("root")
	o.Put("acme", []v1alpha1.Owner{owner("User", "ann", "view")})
	expect := func(what string, want error) {
		t.Helper()
		if _, err := o.Grant(t.Context(), "ann", nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := o.Grant(t.Context(), "root", nil); err != nil || fmt.Sprint(got) != "[admin]" {
			t.Errorf("%s: the administrator: %v, %v", what, got, err)
		}
	}
	expect("followed", nil)
	o.Behind = func() time.Duration { return time.Hour }
	expect("an hour behind", nil)
	o.Behind = func() time.Duration { return time.Hour + 1 }
	expect("further behind", ErrUnknown)
	o.Behind, o.Synced = func() time.Duration { return 0 }, func(context.Context) error { return errors.New("not read") }
	expect("not read", ErrUnknown)
}
