package project

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

func TestAProjectWaitsForItsAppsAndDeletesThem(t *testing.T) {
	const waits = "waits Deleting: waits for apps api, web; kubectl get apps -n kubeop-acme-shop says what holds them, after 1s"
	for name, c := range map[string]struct {
		policy    v1alpha1.DeletionPolicy
		appPolicy v1alpha1.AppDeletionPolicy
	}{
		"delete": {policy: v1alpha1.DeletionDelete},
		"orphan": {policy: v1alpha1.DeletionOrphan, appPolicy: v1alpha1.AppDeletionOrphan},
		"unset":  {},
	} {
		t.Run(name, func(t *testing.T) {
			web, api, other := appOf(shopNamespace, "web"), appOf(shopNamespace, "api"), appOf("kubeop-acme-blog", "web")
			project := shop(deletedProject, func(p *v1alpha1.Project) { p.Spec.DeletionPolicy = c.policy })
			b := newFixture(t, acme(), web, api, other)
			s := b.newScope(project)
			if got := steptest.Outcome(t, b.removeApps(t.Context(), s)); got != waits || s.apps.All != 2 {
				t.Errorf("got %q, %d apps", got, s.apps.All)
			}
			for _, app := range []*v1alpha1.App{web, api} {
				if !b.get(app) || app.DeletionTimestamp == nil || app.Spec.DeletionPolicy != c.appPolicy {
					t.Errorf("app %s is deleted at %v with policy %q", app.Name, app.DeletionTimestamp, app.Spec.DeletionPolicy)
				}
			}
			if !b.get(other) || other.DeletionTimestamp != nil {
				t.Error("the app of another project is deleted")
			}
			if len(b.requests) != 0 {
				t.Errorf("the deployer sent %v", b.requests)
			}
			for _, app := range []*v1alpha1.App{web, api} {
				app.Finalizers = nil
				if err := b.api.Update(t.Context(), app); err != nil {
					t.Fatal(err)
				}
			}
			if got := steptest.Outcome(t, b.removeApps(t.Context(), s)); got != "done" || s.apps.All != 0 {
				t.Errorf("without apps: got %q, %d apps", got, s.apps.All)
			}
		})
	}
}

func TestRightsThatCannotBeTakenBackDoNotKeepTheAppsFromGoing(t *testing.T) {
	tenant := allowing(namespaced)
	b := newFixture(t, tenant, appOf(shopNamespace, "web"))
	s := b.with(shop(deletedProject), allowing(priorities))
	if err := b.grantCluster(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s = b.again(s)
	want := "waits Deleting: waits for apps web; kubectl get apps -n kubeop-acme-shop says what holds them; " +
		"spec.clusterKinds of the Tenant names kinds that live in namespaces, which every project may have anyway: Deployment.apps, after 1s"
	if got := steptest.Outcome(t, b.removeApps(t.Context(), s)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if b.resources() != nil {
		t.Errorf("the deployer still may write %v", b.resources())
	}
}

func TestAFailureToRevokeRightsFailsTheRemovalOfApps(t *testing.T) {
	for name, fault := range map[string]error{
		"the API server is away": errAway,
		"the operator lacks it":  apierrors.NewForbidden(rbacv1.Resource("clusterroles"), "kubeop-cluster-acme-shop", errors.New("no right to storageclasses")),
	} {
		t.Run(name, func(t *testing.T) {
			web := appOf(shopNamespace, "web")
			b := newFixture(t, allowing(storages), web)
			s := b.with(shop(deletedProject), allowing(priorities, storages))
			if err := b.grantCluster(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			s = b.again(s)
			b.fault = func(_ string, _ any, data string) error {
				if strings.Contains(data, `"storageclasses"`) {
					return fault
				}
				return nil
			}
			got := steptest.Outcome(t, b.removeApps(t.Context(), s))
			if !strings.HasPrefix(got, "failed ApplyFailed: granting spec.clusterKinds of the Tenant") || !strings.Contains(got, "; waits for apps web; kubectl get apps") {
				t.Errorf("got %q", got)
			}
			if !b.get(web) || web.DeletionTimestamp == nil {
				t.Error("the failure keeps the app")
			}
		})
	}
}

func TestRightsCannotBeRevokedWithoutKnowingTheTenant(t *testing.T) {
	b := newFixture(t, allowing(storages))
	s := b.with(shop(deletedProject), allowing(priorities, storages))
	if err := b.grantCluster(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s = b.again(s)
	b.fault = func(_ string, o any, _ string) error {
		if _, is := o.(*v1alpha1.Tenant); is {
			return errAway
		}
		return nil
	}
	if got := steptest.Outcome(t, b.retract(t.Context(), s)); got != "failed Failed: reading tenant acme: the API server is away" {
		t.Errorf("got %q", got)
	}
}

func TestAFailedListOfAppsIsNoEmptyProject(t *testing.T) {
	b := newFixture(t, acme(), appOf(shopNamespace, "web"))
	b.fault = func(verb string, o any, _ string) error {
		if _, is := o.(*v1alpha1.AppList); is {
			return errAway
		}
		return nil
	}
	if got := steptest.Outcome(t, b.removeApps(t.Context(), b.newScope(shop(deletedProject)))); got != "failed Failed: listing the apps of kubeop-acme-shop: the API server is away" {
		t.Errorf("got %q, want %q", got, "failed Failed: listing the apps of kubeop-acme-shop: the API server is away")
	}
}

func TestPodsThatAppsWaitForAreEndedAfterTheGrace(t *testing.T) {
	short := metav1.Duration{Duration: time.Minute}
	ending := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "web-1", UID: "1", DeletionTimestamp: &metav1.Time{Time: deletedAt}}}
	running := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "web-2", UID: "2"}}
	for name, c := range map[string]struct {
		tenant *v1alpha1.Tenant
		waited time.Duration
		want   bool
	}{
		"at once":                  {acme(), 0, false},
		"at the end of an hour":    {acme(), time.Hour, false},
		"after an hour":            {acme(), time.Hour + time.Second, true},
		"at the tenant's grace":    {acme(func(a *v1alpha1.Tenant) { a.Spec.MaxTerminationGracePeriod = &short }), time.Minute, false},
		"nothing is about to end":  {acme(), 2 * time.Hour, false},
		"after the tenant's grace": {acme(func(a *v1alpha1.Tenant) { a.Spec.MaxTerminationGracePeriod = &short }), time.Minute + time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.tenant, appOf(shopNamespace, "web"))
			b.pods = []metav1.PartialObjectMetadata{ending, running}
			if name == "nothing is about to end" {
				b.pods = []metav1.PartialObjectMetadata{running}
			}
			b.clock.SetTime(deletedAt.Add(c.waited))
			if got := steptest.Outcome(t, b.removeApps(t.Context(), b.newScope(shop(deletedProject)))); !strings.HasPrefix(got, "waits Deleting: waits for apps web; ") {
				t.Errorf("got %q", got)
			}
			var want []string
			const pods = "/api/v1/namespaces/kubeop-acme-shop/pods"
			if deployer := b.Clients.Of(shopNamespace); c.want {
				want = []string{deployer + " GET " + pods, deployer + " DELETE " + pods + "/web-1"}
			} else if c.waited > time.Hour {
				want = []string{deployer + " GET " + pods}
			}
			if diff := cmp.Diff(want, b.requests); diff != "" {
				t.Errorf("requests of the deployer (-want +got):\n%s", diff)
			}
			if got := len(b.events.Events) == 1; got != c.want {
				t.Errorf("an event: %t, want %t", got, c.want)
			}
		})
	}
}

func TestTheFormerTenantIsKnownByTheHomeNamespaceWhenItIsGone(t *testing.T) {
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme", Annotations: map[string]string{v1alpha1.TenantUIDAnnotation: "uid-of-before"}}}
	b := newFixture(t, acme(), home)
	if tenant, err := b.formerTenant(t.Context(), b.newScope(shop())); err != nil || tenant.UID != "uid-1" {
		t.Errorf("while it is there: %v, %v", tenant, err)
	}
	b = newFixture(t, home)
	if tenant, err := b.formerTenant(t.Context(), b.newScope(shop())); err != nil || tenant.UID != "uid-of-before" {
		t.Errorf("after it: %v, %v", tenant, err)
	}
	b = newFixture(t)
	if tenant, err := b.formerTenant(t.Context(), b.newScope(shop())); err == nil || tenant != nil || err.Error() != `finding the tenant of project shop: namespaces "kubeop-acme" not found` {
		t.Errorf("with neither: %v, %v", tenant, err)
	}
	b = newFixture(t, home)
	b.fault = func(_ string, o any, _ string) error {
		if _, is := o.(*v1alpha1.Tenant); is {
			return errAway
		}
		return nil
	}
	if tenant, err := b.formerTenant(t.Context(), b.newScope(shop())); err == nil || tenant != nil {
		t.Errorf("a tenant that cannot be read is taken for %v, %v", tenant, err)
	}
}

func namespaceOf(uid string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: shopNamespace, UID: "ns-1", Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"},
		Annotations: map[string]string{v1alpha1.TenantUIDAnnotation: uid},
	}}
}

func TestTheNamespaceIsDeletedLastAndThenForgotten(t *testing.T) {
	tenant := allowing(priorities)
	b := newFixture(t, tenant, namespaceOf("uid-1"))
	s := b.with(shop(deletedProject), tenant)
	if err := b.grantCluster(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s = b.again(s)
	for i, want := range []string{
		"soon, after 500ms", "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s", "done",
	} {
		if got := steptest.Outcome(t, b.removeNamespace(t.Context(), s)); got != want {
			t.Errorf("look %d: got %q, want %q", i+1, got, want)
		}
		if forgot := len(b.forgot) > 0; forgot != (want == "done") {
			t.Errorf("look %d: forgotten %v", i+1, b.forgot)
		}
		if b.resources() != nil {
			t.Errorf("look %d: the deployer may still write %v in the cluster", i+1, b.resources())
		}
	}
	if b.get(namespaceOf("uid-1")) {
		t.Error("the namespace is still there")
	}
}

// TestANamespaceThatIsBeingDeletedIsReadOnlyWhenThatTakesLong: each object in it that goes wakes the project.
func TestANamespaceThatIsBeingDeletedIsReadOnlyWhenThatTakesLong(t *testing.T) {
	going := namespaceOf("uid-1")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: deletedAt}, []string{"example.com/held"}
	going.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "held by x"}}
	for after, want := range map[time.Duration]string{
		-time.Hour: "waits Deleting: namespace kubeop-acme-shop is being deleted, after 10s", 0: "waits Deleting: namespace kubeop-acme-shop is being deleted, after 10s", 9 * time.Second: "waits Deleting: namespace kubeop-acme-shop is being deleted, after 1s",
		10 * time.Second: "waits Deleting: namespace kubeop-acme-shop is being deleted: held by x, after 2s",
		time.Hour:        "waits Deleting: namespace kubeop-acme-shop is being deleted: held by x, after 30s",
	} {
		b := newFixture(t, acme(), going)
		b.clock.SetTime(deletedAt.Add(after))
		var asked []string
		b.fault = func(verb string, o any, _ string) error {
			asked = append(asked, fmt.Sprintf("%s %T", verb, o))
			return nil
		}
		if got := steptest.Outcome(t, b.removeNamespace(t.Context(), b.newScope(shop(deletedProject)))); got != want {
			t.Errorf("after %s: got %q, want %q", after, got, want)
		}
		if read := slices.Contains(asked, "get *v1.Namespace"); read != (after >= 10*time.Second) {
			t.Errorf("after %s: it was read: %t; requests %v", after, read, asked)
		}
	}
	orphaned := newFixture(t, acme(), going)
	project := shop(deletedProject, func(p *v1alpha1.Project) { p.Spec.DeletionPolicy = v1alpha1.DeletionOrphan })
	if got := steptest.Outcome(t, orphaned.removeNamespace(t.Context(), orphaned.newScope(project))); got != "done" {
		t.Errorf("under the policy Orphan: got %q", got)
	}
	going.DeletionTimestamp = &metav1.Time{Time: deletedAt.Add(-time.Second)}
	going.Annotations[v1alpha1.TenantUIDAnnotation] = "uid-of-before"
	earlier := newFixture(t, acme(), going)
	if got := steptest.Outcome(t, earlier.removeNamespace(t.Context(), earlier.newScope(shop(deletedProject)))); got != "done" {
		t.Errorf("of an earlier tenant: got %q", got)
	}
}

// TestPodsThatHoldANamespaceAreEndedAfterTheGrace of the tenant.
func TestPodsThatHoldANamespaceAreEndedAfterTheGrace(t *testing.T) {
	ending := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "web-1", UID: "1", DeletionTimestamp: &metav1.Time{Time: deletedAt}}}
	for grace, ended := range map[time.Duration]bool{time.Minute: true, time.Hour: false} {
		tenant := acme(func(a *v1alpha1.Tenant) { a.Spec.MaxTerminationGracePeriod = &metav1.Duration{Duration: grace} })
		b := newFixture(t, tenant, namespaceOf("uid-1"))
		b.pods = []metav1.PartialObjectMetadata{ending}
		b.clock.SetTime(deletedAt.Add(2 * time.Minute))
		for range 2 {
			_ = steptest.Outcome(t, b.removeNamespace(t.Context(), b.newScope(shop(deletedProject))))
		}
		const pods = "/api/v1/namespaces/kubeop-acme-shop/pods"
		if got := slices.Contains(b.requests, b.Clients.Of(shopNamespace)+" DELETE "+pods+"/web-1"); got != ended {
			t.Errorf("after a grace of %s, it is ended: %t; requests %v", grace, got, b.requests)
		}
		if looked := b.Clients.Of(shopNamespace) + " GET /api/v1/namespaces/kubeop-acme-shop/configmaps"; !slices.Contains(b.requests, looked) {
			t.Errorf("not all kinds were looked at: %v", b.requests)
		}
	}
}

func TestTheNamespaceOfAnOrphanedProjectStays(t *testing.T) {
	b := newFixture(t, acme(), namespaceOf("uid-1"))
	project := shop(deletedProject, func(p *v1alpha1.Project) { p.Spec.DeletionPolicy = v1alpha1.DeletionOrphan })
	if got := steptest.Outcome(t, b.removeNamespace(t.Context(), b.newScope(project))); got != "done" || !b.get(namespaceOf("")) || len(b.forgot) != 1 {
		t.Errorf("got %q, forgot %v", got, b.forgot)
	}
}

func TestANamespaceOfAnEarlierTenantIsLeft(t *testing.T) {
	same := acme(func(a *v1alpha1.Tenant) {
		a.Spec.Repository = &v1alpha1.TenantRepository{URL: "https://git.example.com/acme.git"}
	})
	restored := namespaceOf("uid-of-before")
	restored.Annotations[v1alpha1.TenantIdentityAnnotation] = namespace.Identity(same)
	again := newFixture(t, same, restored)
	if got := steptest.Outcome(t, again.removeNamespace(t.Context(), again.newScope(shop(deletedProject)))); got != "soon, after 500ms" {
		t.Errorf("of the same tenant, restored from a backup: %q", got)
	}

	b := newFixture(t, acme(), namespaceOf("uid-of-before"))
	if got := steptest.Outcome(t, b.removeNamespace(t.Context(), b.newScope(shop(deletedProject)))); got != "done" || !b.get(namespaceOf("")) {
		t.Errorf("got %q", got)
	}
}

func TestClaimsGoByThePolicyOfTheProjectFirst(t *testing.T) {
	confirmed := map[string]string{v1alpha1.ConfirmedClaimsAnnotation: deletedAt.Format(time.RFC3339) + " uid-data"}
	for name, c := range map[string]struct {
		project, tenant v1alpha1.ClaimDeletionPolicy
		where           string
		retained        bool
	}{
		"no policy":                              {where: "project", retained: true},
		"the tenant's says delete":               {tenant: v1alpha1.ClaimDelete, where: "project"},
		"the project's says delete":              {project: v1alpha1.ClaimDelete, where: "project"},
		"the project's says retain, not its own": {project: v1alpha1.ClaimRetain, tenant: v1alpha1.ClaimDelete, where: "project", retained: true},
		"nobody confirmed":                       {project: v1alpha1.ClaimDelete, retained: true},
		"confirmed with the tenant":              {project: v1alpha1.ClaimDelete, where: "tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "data", UID: "uid-data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
			}
			tenant := acme(func(a *v1alpha1.Tenant) {
				a.Spec.ClaimDeletionPolicy, a.Finalizers = c.tenant, []string{v1alpha1.Finalizer}
				a.DeletionTimestamp = &metav1.Time{Time: deletedAt}
			})
			project := shop(deletedProject, func(p *v1alpha1.Project) { p.Spec.ClaimDeletionPolicy = c.project })
			switch c.where {
			case "project":
				project.Annotations = confirmed
			case "tenant":
				tenant.Annotations = confirmed
			}
			b := newFixture(t, tenant, claim, namespaceOf("uid-1"))
			for range 2 {
				_ = steptest.Outcome(t, b.removeNamespace(t.Context(), b.newScope(project)))
			}
			ns := namespaceOf("")
			if got := b.get(ns) && ns.Labels[v1alpha1.RetainedLabel] != ""; got != c.retained {
				t.Errorf("the namespace is retained: %t, want %t", got, c.retained)
			}
		})
	}
}
