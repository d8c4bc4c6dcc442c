package tenant

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// TestEachStepReturnsTheErrorOfEachRequest: a step that passes over an error would report the tenant Ready, or removed, when it is not.
func TestEachStepReturnsTheErrorOfEachRequest(t *testing.T) {
	repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{Tenant: "acme"}}
	repository.Name, repository.Finalizers = "acme", []string{v1alpha1.Finalizer}
	budgeted := func(a *v1alpha1.Tenant) { a.Spec.Budget = quantities("16", "200") }
	lead := func(a *v1alpha1.Tenant) {
		a.Spec.Owners = []v1alpha1.Owner{{Kind: "User", Name: "lea", Role: "admin"}}
	}
	for name, c := range map[string]struct {
		tenant *v1alpha1.Tenant
		there  []client.Object
		before func(*fixture, *scope) error
		do     func(*fixture, *scope) error
		least  int
	}{
		"the namespace is made":    {tenant: acme(), do: func(b *fixture, s *scope) error { return b.makeNamespace(t.Context(), s) }, least: 1},
		"the namespace is removed": {tenant: acme(deletedTenant), before: func(b *fixture, s *scope) error { return b.makeNamespace(t.Context(), s) }, do: func(b *fixture, s *scope) error { return b.removeNamespace(t.Context(), s) }, least: 2},
		"guardrails": {
			tenant: acme(budgeted), there: []client.Object{project("acme", "shop", nil)}, least: 5,
			do: func(b *fixture, s *scope) error { return b.guard(t.Context(), s) },
		},
		"domains are compared": {
			tenant: acme(func(a *v1alpha1.Tenant) { a.Spec.Domains = []string{"example.com"} }), least: 1,
			do: func(b *fixture, s *scope) error { return b.compareDomains(t.Context(), s) },
		},
		"access is given": {tenant: acme(owned), do: func(b *fixture, s *scope) error { return b.grant(t.Context(), s) }, least: 4},
		"access is taken back": {
			tenant: acme(owned), least: 4,
			before: func(b *fixture, _ *scope) error { return b.grant(t.Context(), b.newScope(acme(owned, lead))) },
			do:     func(b *fixture, s *scope) error { return b.grant(t.Context(), s) },
		},
		"the repository is bound": {tenant: following(), do: func(b *fixture, s *scope) error { return b.applyRepository(t.Context(), s) }, least: 1},
		"the repository is taken out": {
			tenant: acme(), least: 1,
			before: func(b *fixture, s *scope) error {
				bound := b.newScope(following())
				err := b.applyRepository(t.Context(), bound)
				bound.Record()
				s.tenant.Status = bound.tenant.Status
				return err
			},
			do: func(b *fixture, s *scope) error { return b.applyRepository(t.Context(), s) },
		},
		"the repository is removed": {tenant: acme(deletedTenant), there: []client.Object{repository}, do: func(b *fixture, s *scope) error { return b.removeRepository(t.Context(), s) }, least: 2},
		"projects are removed": {
			tenant: acme(deletedTenant), there: []client.Object{project("acme", "shop", nil)}, least: 3,
			do: func(b *fixture, s *scope) error { return b.removeProjects(t.Context(), s) },
		},
		"access is removed": {
			tenant: acme(deletedTenant), least: 3,
			before: func(b *fixture, s *scope) error { return b.grant(t.Context(), s) },
			do:     func(b *fixture, s *scope) error { return b.removeProjects(t.Context(), s) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests := steptest.EachRequest(t, func(f *steptest.Failing) error {
				var there []client.Object
				for _, o := range c.there {
					there = append(there, o.DeepCopyObject().(client.Object))
				}
				b := newFixture(t, there...)
				b.FlowControl, b.OwnerRequests = true, true
				s := b.newScope(c.tenant.DeepCopy())
				if c.before != nil {
					if err := c.before(b, s); err != nil {
						t.Fatal(err)
					}
				}
				away := f.Client(b.api)
				b.Client, b.Direct, b.Kinds.Roles, b.Budgets.Reader = away, away, away, away
				s.made = b.newScope(s.tenant).made
				return c.do(b, s)
			})
			if requests < c.least {
				t.Errorf("%d requests, want %d at least", requests, c.least)
			}
		})
	}
}

func TestTheStatusCountsTheAppsOfTheTenantsProjects(t *testing.T) {
	app := &v1alpha1.App{}
	app.Namespace, app.Name = "kubeop-acme-shop", "web"
	b := newFixture(t, project("acme", "shop", nil), app)
	tenant := acme()
	s := b.newScope(tenant)
	if s.Record(); tenant.Status.AppCounts != (v1alpha1.AppCounts{}) || len(s.Notes()) != 2 {
		t.Errorf("before they were counted: %+v, %v", tenant.Status.AppCounts, s.Notes())
	}
	if err := b.guard(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if s.Record(); tenant.Status.Apps != 1 || len(s.Notes()) != 6 {
		t.Errorf("status %+v, notes %v", tenant.Status.AppCounts, s.Notes())
	}
}
