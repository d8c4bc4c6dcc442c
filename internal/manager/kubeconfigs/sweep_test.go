package kubeconfigs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/owners"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

// left wants so many kubeconfigs, and Secrets.
func (p *plane) left(records, secrets int) {
	p.t.Helper()
	left, err := p.Served.Store.ListKubeconfigs(p.t.Context(), store.KubeconfigFilter{}, 1000)
	if err != nil || len(left) != records || len(p.secrets) != secrets {
		p.t.Errorf("%v: %d records and %d Secrets are left, want %d and %d", err, len(left), len(p.secrets), records, secrets)
	}
}

// TestEndedKubeconfigsAreRemoved soon, also once the token of their creator is revoked. One that cannot be removed does not keep the others.
func TestEndedKubeconfigsAreRemoved(t *testing.T) {
	p := newPlane(t)
	var made []KubeconfigToken
	for i, ttl := range []string{"10m", "10m", "30m", "30m"} {
		made = append(made, p.create(p.Token(fmt.Sprint("ann", i), "tenant:acme:view"), `{"role":"view","ttl":"`+ttl+`"}`))
	}
	sweep := func(fails bool) {
		t.Helper()
		if err := p.Sweep(t.Context()); (err != nil) != fails {
			t.Error(err)
		}
	}
	p.Time = p.Time.Add(10*time.Minute + 59*time.Second) // The API server still accepts them.
	sweep(false)
	p.left(4, 4)
	p.Time = p.Time.Add(time.Second)
	p.refuseOnly("DELETE", made[0].ID, 500)
	sweep(true)
	p.left(3, 3)
	p.refuseOnly("DELETE", made[0].ID, 403) // There are no rights yet.
	sweep(true)
	p.left(3, 3)
	p.refuse = func(string) int { return 0 }
	sweep(false)
	p.left(2, 2)
	if err := p.Served.Store.RevokeToken(t.Context(), "", "ann3", store.Event{At: p.Time, Action: "revokeToken"}); err != nil {
		t.Fatal(err)
	}
	sweep(false)
	p.left(1, 1)
	p.Time, p.projects["acme"] = p.Time.Add(time.Hour), []string{"blog"}
	p.refuseOnly("DELETE", "", 403)
	sweep(false)
	p.left(0, 1)
}

// TestALostRoleRemovesItsKubeconfigs as soon as the Tenant does not have the role any more. Nobody else loses one. A role that a group has counts.
func TestALostRoleRemovesItsKubeconfigs(t *testing.T) {
	p := newPlane(t)
	known := owners.ErrUnknown
	of := owners.New()
	of.Synced, of.Behind = func(context.Context) error { return known }, func() time.Duration { return 0 }
	of.Administer([]string{"root"}, nil)
	p.Grant = of.Grant
	for i, k := range []store.Kubeconfig{{CreatedBy: "user:ann", Role: "edit"}, {CreatedBy: "user:bob", Role: "view", Groups: []string{"dev"}}, {CreatedBy: "user:root", Role: "admin"}, {CreatedBy: "token", Role: "admin"}} {
		k.ID, k.Tenant, k.TenantUID, k.Project, k.Created, k.Expires = fmt.Sprint(i), "acme", "acme 0", "shop", p.Time, p.Time.Add(time.Hour)
		if err := p.Served.Store.BeginKubeconfig(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		p.secrets["kubeop-acme-shop/kubeop-kubeconfig-"+k.ID] = corev1.Secret{}
	}
	ann := v1alpha1.Owner{Kind: "User", Name: "ann", Role: "edit"}
	dev := v1alpha1.Owner{Kind: "Group", Name: "dev", Role: "view"}
	for _, step := range []struct {
		name   string
		owners []v1alpha1.Owner
		known  error
		want   int
	}{
		{"the owners are not known", nil, owners.ErrUnknown, 4},
		{"all have their roles", []v1alpha1.Owner{ann, dev}, nil, 4},
		{"ann may only read", []v1alpha1.Owner{{Kind: "User", Name: "ann", Role: "view"}, dev}, nil, 3},
		{"the group is gone", []v1alpha1.Owner{ann}, nil, 2},
	} {
		of.Put("acme", step.owners)
		known = step.known
		if err := p.Sweep(t.Context()); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		t.Log(step.name)
		p.left(step.want, step.want)
	}
}

// TestASecretThatCouldNotBeDeletedIsSwept: the store keeps the kubeconfig as long as there may be a Secret.
func TestASecretThatCouldNotBeDeletedIsSwept(t *testing.T) {
	p := newPlane(t)
	ann := p.Token("ann", "tenant:acme:view")
	p.refuse = func(what string) int {
		if strings.HasPrefix(what, "DELETE") || strings.HasSuffix(what, "/token") {
			return 500
		}
		return 0
	}
	operated.Refused(t, p.Do(ann, "POST", all, `{"role":"view"}`), problem.Unavailable)
	p.left(1, 1)
	p.refuse, p.Time = func(string) int { return 0 }, p.Time.Add(2*time.Hour)
	if err := p.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	p.left(0, 0)
}
