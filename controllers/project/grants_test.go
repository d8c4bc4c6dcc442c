package project

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

const (
	priorities = "PriorityClass.scheduling.k8s.io"
	storages   = "StorageClass.storage.k8s.io"
	unserved   = "Widget.example.com"
	namespaced = "Deployment.apps"
)

func allowing(kinds ...string) *v1alpha1.Tenant {
	return acme(func(t *v1alpha1.Tenant) { t.Spec.ClusterKinds = kinds })
}

func TestTheDeployerMayWriteTheKindsOfItsTenantAndNoOthers(t *testing.T) {
	const fix = "failed ApplyFailed: granting spec.clusterKinds of the Tenant; a ClusterRole labelled paas.kubeop.io/aggregate-to-cluster-kinds has to give the operator the rights that it grants: "
	refuse := func(resource string) func(string, any, string) error {
		return func(_ string, _ any, data string) error {
			if !strings.Contains(data, `"`+resource+`"`) {
				return nil
			}
			return apierrors.NewForbidden(rbacv1.Resource("clusterroles"), "kubeop-cluster-acme-shop", fmt.Errorf("no right to %s", resource))
		}
	}
	for name, c := range map[string]struct {
		before, now []string
		fault       func(string, any, string) error
		want        string
		resources   []string
	}{
		"none":                       {want: "done"},
		"one":                        {now: []string{priorities}, want: "done", resources: []string{"priorityclasses"}},
		"one more":                   {before: []string{priorities}, now: []string{priorities, storages}, want: "done", resources: []string{"priorityclasses", "storageclasses"}},
		"one less":                   {before: []string{priorities, storages}, now: []string{storages}, want: "done", resources: []string{"storageclasses"}},
		"none any more":              {before: []string{priorities}, want: "done"},
		"one that is not served":     {now: []string{unserved, priorities}, resources: []string{"priorityclasses"}, want: "waits DependencyNotReady: spec.clusterKinds of the Tenant names what the cluster does not serve: Widget.example.com, after 1m0s"},
		"one of namespaces":          {now: []string{namespaced, priorities}, resources: []string{"priorityclasses"}, want: "stopped ApplyFailed: spec.clusterKinds of the Tenant names kinds that live in namespaces, which every project may have anyway: Deployment.apps"},
		"both: people have to help":  {now: []string{unserved, namespaced}, want: "stopped ApplyFailed: spec.clusterKinds of the Tenant names kinds that live in namespaces, which every project may have anyway: Deployment.apps"},
		"the last one is not served": {before: []string{priorities}, now: []string{unserved}, want: "waits DependencyNotReady: spec.clusterKinds of the Tenant names what the cluster does not serve: Widget.example.com, after 1m0s"},
		"one that cannot be granted": {now: []string{priorities, storages}, fault: refuse("storageclasses"), resources: []string{"priorityclasses"}, want: fix},
		"none that can be granted":   {now: []string{storages}, fault: refuse("storageclasses"), want: fix},
		"one that a policy forbids": {now: []string{priorities, storages}, resources: []string{"priorityclasses"}, want: strings.Replace(fix, "failed", "stopped", 1), fault: func(_ string, _ any, data string) error {
			if !strings.Contains(data, `"storageclasses"`) {
				return nil
			}
			return apierrors.NewInvalid(rbacv1.SchemeGroupVersion.WithKind("ClusterRole").GroupKind(), "kubeop-cluster-acme-shop", nil)
		}},
		"the last one cannot any more": {before: []string{priorities}, now: []string{storages}, fault: refuse("storageclasses"), want: fix},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			s := b.with(shop(), allowing(c.before...))
			if err := b.grantCluster(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			s = b.again(s)
			s.tenant = allowing(c.now...)
			if c.fault != nil {
				b.fault = c.fault
			}
			if got := steptest.Outcome(t, b.grantCluster(t.Context(), s)); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(c.resources, b.resources()); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
			s = b.again(s)
			if c.resources != nil && !s.hadCluster() {
				t.Errorf("recorded: %v", s.project.Status.Inventory.Entries)
			}
		})
	}
}

func TestRightsInTheClusterAreNotTakenOverFromOthers(t *testing.T) {
	theirs := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cluster-acme-shop"}}
	b := newFixture(t, theirs)
	got := steptest.Outcome(t, b.grantCluster(t.Context(), b.with(shop(), allowing(priorities))))
	if !strings.HasPrefix(got, "stopped ApplyFailed: granting spec.clusterKinds of the Tenant") {
		t.Errorf("got %q", got)
	}
	if b.get(theirs); len(theirs.Rules) != 0 {
		t.Errorf("a role that kubeop did not make has rules now: %v", theirs.Rules)
	}
}

func TestAProjectThatIsDeletedKeepsTheRightsThatItsTenantStillHas(t *testing.T) {
	for name, c := range map[string]struct {
		granted bool
		tenant  *v1alpha1.Tenant
		want    []string
	}{
		"all of them":       {true, allowing(priorities, storages), []string{"priorityclasses", "storageclasses"}},
		"one taken back":    {true, allowing(storages), []string{"storageclasses"}},
		"all taken back":    {true, allowing(), nil},
		"no tenant":         {true, nil, []string{"priorityclasses", "storageclasses"}},
		"none were granted": {false, allowing(priorities), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.tenant != nil {
				objects = append(objects, c.tenant)
			}
			b := newFixture(t, objects...)
			s := b.with(shop(deletedProject), allowing(priorities, storages))
			if c.granted {
				if err := b.grantCluster(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			s = b.again(s)
			s.tenant = nil // The removal of a project does not resolve its tenant.
			if err := b.retract(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, b.resources()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestResolveFindsTheTenantByWhereTheProjectIs(t *testing.T) {
	elsewhere := func(namespace string) func(*v1alpha1.Project) {
		return func(p *v1alpha1.Project) { p.Namespace = namespace }
	}
	for name, c := range map[string]struct {
		project *v1alpha1.Project
		fault   func(string, any, string) error
		want    string
		apps    int
	}{
		"in its home":             {project: shop(), want: "done", apps: 2},
		"of a tenant that is not": {project: shop(elsewhere("kubeop-rival")), want: "waits DependencyNotReady: namespace kubeop-rival is the home of no tenant; a Project belongs in the namespace kubeop-<tenant>, after 1m0s"},
		"outside of any home":     {project: shop(elsewhere("acme")), want: "waits DependencyNotReady: namespace acme is the home of no tenant; a Project belongs in the namespace kubeop-<tenant>, after 1m0s"},
		"the tenant is not known": {project: shop(), fault: func(_ string, o any, _ string) error {
			if _, is := o.(*v1alpha1.Tenant); is {
				return errAway
			}
			return nil
		}, want: "failed Failed: reading tenant acme: the API server is away"},
		"the apps are not known": {project: shop(), fault: func(_ string, o any, _ string) error {
			if _, is := o.(*v1alpha1.AppList); is {
				return errAway
			}
			return nil
		}, want: "failed Failed: listing the apps of kubeop-acme-shop: the API server is away"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, acme(), appOf(shopNamespace, "web"), appOf(shopNamespace, "api"), appOf("kubeop-acme-blog", "web"))
			if c.fault != nil {
				b.fault = c.fault
			}
			s := b.newScope(c.project)
			if got := steptest.Outcome(t, b.resolve(t.Context(), s)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if s.apps == nil {
				s.apps = &rollup.Apps{}
			}
			if s.apps.All != c.apps {
				t.Errorf("%d apps, want %d", s.apps.All, c.apps)
			}
			if c.want == "done" && (s.tenant == nil || s.tenant.UID != "uid-1") {
				t.Errorf("the tenant is %v", s.tenant)
			}
		})
	}
}

func TestRightsThatAreTakenBackGoBeforeAnyOtherStep(t *testing.T) {
	tenant := allowing(priorities)
	b := newFixture(t, tenant)
	s := b.with(shop(), tenant)
	if err := b.grantCluster(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	tenant.Spec.ClusterKinds = nil
	if err := b.api.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	s = b.again(s)
	s.revoked = errAway
	if err := b.grant(t.Context(), s); !errors.Is(err, errAway) {
		t.Errorf("what revoke did not take away is no error of grant: %v", err)
	}
	if got := steptest.Outcome(t, b.revoke(t.Context(), b.again(s))); got != "skipped" || b.resources() != nil {
		t.Errorf("after revoke, which ends with %q and says nothing of what grant makes, the deployer may write %v", got, b.resources())
	}
}

func TestGrantMakesTheDeployerAndBindsTheOwners(t *testing.T) {
	tenant := acme(func(a *v1alpha1.Tenant) { a.Spec.Owners = []v1alpha1.Owner{{Kind: "User", Name: "ann", Role: "admin"}} })
	left := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "kubeop-edit", Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}}}
	b := newFixture(t, left, appOf(shopNamespace, "web"))
	s := b.with(shop(), tenant)
	if got := steptest.Outcome(t, b.revoke(t.Context(), s)); got != "skipped" {
		t.Fatalf("revoke: %q", got)
	}
	if got := steptest.Outcome(t, b.grant(t.Context(), s)); got != "done" || s.apps.All != 1 {
		t.Fatalf("got %q, %d apps", got, s.apps.All)
	}
	for name, want := range map[string]bool{"kubeop-admin": true, "kubeop-deployer": true, "kubeop-edit": false, "kubeop-view": false} {
		if got := b.get(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: name}}); got != want {
			t.Errorf("binding %s is there: %t, want %t", name, got, want)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "kubeop-deployer"}}
	if !b.get(account) || account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Errorf("the deployer is %v; its token may be mounted nowhere", account)
	}
	if len(s.made.Inventory().Entries) != 3 {
		t.Errorf("recorded: %v", s.made.Inventory().Entries)
	}
}

// TestTheDeployerMayWriteNetworkPoliciesOnceTheProjectHasSuch: also to remove those that are left.
func TestTheDeployerMayWriteNetworkPoliciesOnceTheProjectHasSuch(t *testing.T) {
	b := newFixture(t)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "kubeop-deployer-network-policies"}}
	s := b.with(shop(), acme())
	for _, allowed := range []*v1alpha1.AllowedNetwork{{}, nil} {
		s.network.allowed = allowed
		if got := steptest.Outcome(t, b.grant(t.Context(), s)); got != "done" || b.get(binding) != (allowed != nil) {
			t.Errorf("got %q, bound: %t, want %t", got, b.get(binding), allowed != nil)
		}
		s = b.with(s.project, s.tenant) // Nothing was recorded, as if the process had ended.
	}
}

func TestGrantReportsRulesThatCannotBeGranted(t *testing.T) {
	b := newFixture(t)
	if got := steptest.Outcome(t, b.grant(t.Context(), b.with(shop(), allowing(unserved)))); got != "waits DependencyNotReady: spec.clusterKinds of the Tenant names what the cluster does not serve: Widget.example.com, after 1m0s" {
		t.Errorf("a kind that is not served: %q", got)
	}
	theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "kubeop-deployer"}}
	b = newFixture(t, theirs)
	if got := steptest.Outcome(t, b.grant(t.Context(), b.with(shop(), acme()))); got != "stopped ApplyFailed: ServiceAccount/kubeop-deployer: exists already; if nobody needs it, an administrator of the cluster may run: kubectl delete serviceaccount kubeop-deployer -n kubeop-acme-shop, or give this one another name in Git" {
		t.Errorf("an account of others: %q", got)
	}
}

// TestAnAPIServerThatDoesNotAnswerTakesNoRights: only a refusal says that a right cannot be granted.
func TestAnAPIServerThatDoesNotAnswerTakesNoRights(t *testing.T) {
	b := newFixture(t)
	s := b.with(shop(), allowing(priorities))
	if err := b.grantCluster(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s = b.again(s)
	s.tenant = allowing(priorities, storages)
	b.fault = func(verb string, _ any, data string) error {
		switch {
		case !strings.Contains(data, "storageclasses"):
			return nil
		case verb == "apply": // The dry-run of one rule.
			return errAway
		}
		return apierrors.NewForbidden(rbacv1.Resource("clusterroles"), "kubeop-cluster-acme-shop", errors.New("no right"))
	}
	if got := steptest.Outcome(t, b.grantCluster(t.Context(), s)); !strings.HasPrefix(got, "failed ") || !strings.HasSuffix(got, errAway.Error()) {
		t.Errorf("got %q", got)
	}
	b.fault = func(string, any, string) error { return nil }
	if diff := cmp.Diff([]string{"priorityclasses"}, b.resources()); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if granted, err := b.grantable(t.Context(), s, nil); err != nil || granted != nil {
		t.Errorf("of no rules granted are %v, %v", granted, err)
	}
}
