package repository

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// platformTree returns the tree of the platform repository with files as "policies/strict.yaml" or "tenants/acme/tenant.yaml", and their specs.
func platformTree(t *testing.T, files map[string][3]string) *tree.Tree {
	t.Helper()
	r, err := reader()
	if err != nil {
		t.Fatal(err)
	}
	texts := fstest.MapFS{"kubeop.yaml": &fstest.MapFile{Data: []byte("layout: v1\n")}}
	for file, c := range files {
		texts[file] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", v1alpha1.GroupVersion, c[0], c[1], c[2])}
	}
	return r.Read(memory{MapFS: texts}, tree.Scope{Repository: "platform"}, nil)
}

// ofPlatform is the scope of the platform repository, whose newest commit declares the tree.
func (c *cluster) ofPlatform(now *tree.Tree) *scope {
	s := c.scope(now)
	s.repository.Name, s.repository.Spec.Tenant = "platform", ""
	return s
}

func policyOf(name, repository string) *v1alpha1.Policy {
	return fromAcme(&v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(p *v1alpha1.Policy) { p.Labels[v1alpha1.RepositoryLabel] = repository })
}

// tenantOf is a Tenant of the platform repository, which stays while its finalizer is there.
func tenantOf(name string, change ...func(*v1alpha1.Tenant)) *v1alpha1.Tenant {
	tenant := fromAcme(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.Finalizer}}}, change...)
	tenant.Labels[v1alpha1.RepositoryLabel] = "platform"
	return tenant
}

// TestPoliciesAreAppliedBeforeTheTenantsThatNameThem, and registries and price lists as well, in batches of their own, because one batch is applied at once.
func TestPoliciesAreAppliedBeforeTheTenantsThatNameThem(t *testing.T) {
	prices := [3]string{"PriceList", "standard", `{default: true, currency: EUR, meters: [{name: pods, unit: hour, periods: [{from: "2026-01-01", tiers: [{price: "1"}]}]}]}`}
	registry := [3]string{"Registry", "ghcr", "{host: ghcr.io, secretRef: {name: ghcr}, tenants: [acme]}"}
	for name, c := range map[string]struct {
		files map[string][3]string
		first []string
	}{
		"policies beside others": {map[string][3]string{
			"policies/strict.yaml": {"Policy", "strict", "{}"}, "policies/base.yaml": {"Policy", "base", "{default: true}"}, "registries/ghcr.yaml": registry, "prices/standard.yaml": prices,
			"tenants/acme/tenant.yaml": {"Tenant", "acme", "{policies: [strict]}"},
		}, []string{"standard", "ghcr", "base", "strict"}},
		"a price list": {map[string][3]string{"prices/standard.yaml": prices}, []string{"standard"}},
		"a registry":   {map[string][3]string{"registries/ghcr.yaml": registry}, []string{"ghcr"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := watching(t)
			if c.files["tenants/acme/tenant.yaml"][0] == "" {
				c.files["tenants/acme/tenant.yaml"] = [3]string{"Tenant", "acme", "{}"}
			}
			s := k.ofPlatform(platformTree(t, c.files))
			tree.Changes(nil, s.found, func(r identity.Ref) { s.progress.look(r) })
			for _, want := range [][]string{c.first, {"acme"}} {
				todo, err := k.next(t.Context(), s, failures{})
				var names []string
				for _, o := range todo {
					names = append(names, o.GetName())
				}
				if diff := cmp.Diff(want, names); diff != "" || err != nil {
					t.Fatalf("%v (-want +got):\n%s", err, diff)
				}
				if err := k.applyBatch(t.Context(), s, todo, failures{}); err != nil {
					t.Fatal(err)
				}
			}
			policy := &v1alpha1.Policy{}
			if err := k.api.Get(t.Context(), client.ObjectKey{Name: "base"}, policy); c.files["policies/base.yaml"][1] != "" && (err != nil || !policy.Spec.Default || len(policy.Finalizers) > 0) {
				t.Errorf("the policy is %+v, %v", policy, err)
			}
		})
	}
}

// TestPoliciesAreDeletedWhenAllElseIsGone: one commit removes an app, a policy and a registry. While the app is being deleted, its pods run under the policy.
func TestPoliciesAreDeletedWhenAllElseIsGone(t *testing.T) {
	policy := policyOf("strict", "platform")
	registry := fromAcme(&v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "ghcr"}}, func(r *v1alpha1.Registry) { r.Labels[v1alpha1.RepositoryLabel] = "platform" })
	web := fromAcme(app("kubeop-acme-shop", "web"), func(a *v1alpha1.App) {
		a.Labels[v1alpha1.RepositoryLabel], a.Finalizers = "platform", []string{v1alpha1.Finalizer}
	})
	k := watching(t, policy, registry, web, fromAcme(project("kubeop-acme", "shop")))
	s := k.ofPlatform(platformTree(t, map[string][3]string{"policies/other.yaml": {"Policy", "other", "{}"}}))
	gone := []identity.Ref{{Policy: "strict"}, {Registry: "ghcr"}, ref("acme/shop/web")}
	s.progress.Gone.Insert(gone...)
	for _, what := range []string{"the deletion begins", "it goes on"} {
		if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "waits Deleting: waits for App kubeop-acme-shop/web to be gone, after 5s" {
			t.Errorf("%s: %q", what, got)
		}
		if !k.has(policy) || !k.has(registry) || !k.has(web) || web.DeletionTimestamp == nil {
			t.Errorf("%s: the policy exists: %t, the registry: %t, the app is deleted at %v", what, k.has(policy), k.has(registry), web.DeletionTimestamp)
		}
	}
	web.Finalizers = nil
	if err := k.api.Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "waits Deleting: waits for Registry ghcr, Policy strict to be gone, after 5s" || k.has(policy) || k.has(registry) {
		t.Errorf("when the app is gone: %q; the policy exists: %t, the registry: %t", got, k.has(policy), k.has(registry))
	}
}

// TestAConfirmedPolicyIsDeletedAfterItsTenant, without another confirmation. A new process knows nothing of the first one: it deletes nothing without another.
func TestAConfirmedPolicyIsDeletedAfterItsTenant(t *testing.T) {
	for name, c := range map[string]struct {
		again func(*scope)
		held  int
	}{
		"the same process":         {func(*scope) {}, 0},
		"a new process":            {func(s *scope) { s.progress.confirmed = plan.Confirmed{} }, 1},
		"a newer commit meanwhile": {func(s *scope) { s.commit.Revision = "main@sha1:3" }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			k, acme := watching(t), tenantOf("acme", func(a *v1alpha1.Tenant) { a.Spec.Policies = []string{"strict"} })
			policy, rival := policyOf("strict", "platform"), tenantOf("rival", func(a *v1alpha1.Tenant) { a.Spec.Policies = []string{"strict"} })
			for _, o := range []client.Object{acme, rival, policy} {
				k.create(o)
			}
			s := k.ofPlatform(platformTree(t, map[string][3]string{"tenants/rival/tenant.yaml": {"Tenant", "rival", "{policies: [strict]}"}}))
			s.progress.Gone.Insert(identity.Ref{Tenant: "acme"}, identity.Ref{Policy: "strict"})
			if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "done" || len(s.verdict.Held) != 2 {
				t.Fatalf("%q; held are %+v", got, s.verdict.Held)
			}
			s.repository.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: s.verdict.Token}
			k.create(s.repository)
			if got := steptest.Outcome(t, k.collect(t.Context(), s)); got != "waits Deleting: waits for Tenant acme to be gone, after 5s" || !k.has(policy) {
				t.Fatalf("confirmed: %q; the policy exists: %t", got, k.has(policy))
			}
			s.repository.Annotations = nil
			if !k.has(acme) {
				t.Fatal("the tenant is gone at once")
			}
			acme.Finalizers = nil
			if err := k.api.Update(t.Context(), acme); err != nil {
				t.Fatal(err)
			}
			c.again(s)
			_ = k.collect(t.Context(), s)
			if k.has(policy) != (c.held > 0) || len(s.verdict.Held) != c.held || !k.has(rival) {
				t.Errorf("the policy exists: %t; held are %+v", k.has(policy), s.verdict.Held)
			}
		})
	}
}

func TestAPolicyIsLostOnlyToItsRepository(t *testing.T) {
	byHand := policyOf("by-hand", "platform")
	byHand.ManagedFields = nil
	restored := policyOf("restored", "platform")
	restored.ManagedFields, restored.Annotations = nil, map[string]string{v1alpha1.FolderAnnotation: "policies/restored.yaml"}
	k := newCluster(t, policyOf("gone", "platform"), policyOf("kept", "platform"), policyOf("other", "acme"), byHand, restored)
	now := platformTree(t, map[string][3]string{"policies/kept.yaml": {"Policy", "kept", "{}"}})
	for name, want := range map[string][]string{"platform": {"gone", "restored"}, "acme": nil} {
		s := k.ofPlatform(now)
		if name == "acme" {
			s.repository.Name, s.repository.Spec.Tenant = "acme", "acme"
		}
		for _, policy := range []string{"gone", "kept", "other", "by-hand", "restored", "never-there"} {
			s.progress.Gone.Insert(identity.Ref{Policy: policy})
		}
		lost, leaving, err := k.lost(t.Context(), s)
		var names []string
		for ref := range lost {
			names = append(names, ref.Policy)
		}
		slices.Sort(names)
		if diff := cmp.Diff(want, names); diff != "" || len(leaving) > 0 || err != nil {
			t.Errorf("%s: %v, %v leave (-want +got):\n%s", name, err, leaving, diff)
		}
	}
	there, err := k.declaredBy(t.Context(), "platform")
	want := map[identity.Ref]string{{Policy: "gone"}: "", {Policy: "kept"}: "", {Policy: "restored"}: ""}
	if diff := cmp.Diff(want, there); diff != "" || err != nil {
		t.Errorf("declared are: %v (-want +got):\n%s", err, diff)
	}
}

// TestThePolicyOfTenantsIsNotDeletedWithoutAConfirmation: what it refuses would be allowed.
func TestThePolicyOfTenantsIsNotDeletedWithoutAConfirmation(t *testing.T) {
	base := policyOf("base", "platform")
	base.Spec.Default = true
	named := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Policies: []string{"strict"}}}
	unnamed := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "rival"}}
	acme := func(spec string) [3]string { return [3]string{"Tenant", "acme", spec} }
	for name, c := range map[string]struct {
		lost *v1alpha1.Policy
		acme [3]string
		why  string
	}{
		"a default policy":                  {base, acme("{policies: [other]}"), "it removes a policy that 1 tenant is under"},
		"a default policy of two":           {base, acme("{}"), "it removes a policy that 2 tenants are under"},
		"a policy that nobody names":        {policyOf("idle", "platform"), acme("{}"), ""},
		"one that its tenant names no more": {policyOf("strict", "platform"), acme("{policies: [other]}"), ""},
		"one that its tenant still names":   {policyOf("strict", "platform"), acme("{policies: [strict]}"), "it removes a policy that 1 tenant is under"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCluster(t, c.lost.DeepCopy(), named.DeepCopy(), unnamed.DeepCopy())
			s := k.ofPlatform(platformTree(t, map[string][3]string{"policies/other.yaml": {"Policy", "other", "{}"}, "tenants/acme/tenant.yaml": c.acme, "tenants/rival/tenant.yaml": {"Tenant", "rival", "{}"}}))
			verdict, err := k.verdict(t.Context(), s, map[identity.Ref]client.Object{{Policy: c.lost.Name}: c.lost}, "")
			if err != nil || verdict.Why != c.why || (len(verdict.Go) == 0) != (c.why != "") {
				t.Errorf("%q, %v goes, %v; want %q", verdict.Why, verdict.Go, err, c.why)
			}
		})
	}
	k := newCluster(t, base)
	k.fails = ".TenantList"
	if _, err := k.verdict(t.Context(), k.ofPlatform(platformTree(t, nil)), map[identity.Ref]client.Object{{Policy: "base"}: base}, ""); err == nil {
		t.Error("the tenants were not counted, and yet there is a verdict")
	}
}

// TestARegistryInUseIsNotDeletedWithoutAConfirmation: pods of projects that have its credentials could not pull their images any more.
func TestARegistryInUseIsNotDeletedWithoutAConfirmation(t *testing.T) {
	for projects, why := range map[int]string{0: "", 1: "it removes a registry whose credentials 1 project has", 3: "it removes a registry whose credentials 3 projects have"} {
		registry := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "ghcr", Labels: map[string]string{v1alpha1.RepositoryLabel: "platform"}}}
		registry.Status.Projects = projects
		k := newCluster(t, registry.DeepCopy())
		left := platformTree(t, map[string][3]string{"policies/other.yaml": {"Policy", "other", "{}"}})
		verdict, err := k.verdict(t.Context(), k.ofPlatform(left), map[identity.Ref]client.Object{{Registry: "ghcr"}: registry}, "")
		if err != nil || verdict.Why != why || (len(verdict.Go) == 0) != (why != "") {
			t.Errorf("%d: %q, %v goes, %v; want %q", projects, verdict.Why, verdict.Go, err, why)
		}
	}
}
