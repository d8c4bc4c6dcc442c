package project

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

// TestTheStatusOfAProjectSaysWhatItHas: its namespace, its pull Secrets, and a version of it that is refused.
func TestTheStatusOfAProjectSaysWhatItHas(t *testing.T) {
	hub := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "hub"}, Spec: v1alpha1.RegistrySpec{Host: "registry.example.com", Tenants: []string{"acme"}, SecretRef: v1alpha1.LocalSecretReference{Name: "hub-pull"}}}
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "hub-pull"}, Data: map[string][]byte{"username": []byte("ann"), "password": []byte("hunter2")}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "default"}}
	b := newFixture(t, acme(), hub, credentials, account, namespaceOf("uid-1"), shop(func(p *v1alpha1.Project) { p.Labels = map[string]string{v1alpha1.RepositoryLabel: "acme"} }))
	refused := v1alpha1.Refused{Revision: "main@sha1:1", Place: "projects/shop/project.yaml:1:1", Problem: "broken"}
	b.Refusals.Set("acme", map[refusal.Unit]refusal.Refusal{{Kind: v1alpha1.ProjectKind, ObjectKey: client.ObjectKeyFromObject(shop())}: {Revision: refused.Revision, Place: refused.Place, Problem: refused.Problem}})
	if err := b.onLooks().Start(t.Context(), newWoken()); err != nil {
		t.Fatal(err)
	}
	project := shop()
	b.get(project)
	if _, err := b.Reconcile(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	stored := shop()
	if b.get(stored); !conditions.IsTrue(stored, v1alpha1.ReadyCondition) || stored.Status.Namespace != shopNamespace {
		t.Errorf("the status is %+v", stored.Status)
	}
	if diff := cmp.Diff([]v1alpha1.PullSecret{{Registry: "hub", Host: "registry.example.com"}}, stored.Status.PullSecrets); diff != "" {
		t.Errorf("pull Secrets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&refused, stored.Status.Refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if copied := (&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: v1alpha1.PullSecretPrefix + "hub", Labels: shopLabels}}); !b.get(copied) {
		t.Error("the Secret was not copied")
	}
	if len(b.newScope(stored).pulls.Entries) != 1 {
		t.Errorf("the Secret is not recorded: %+v", stored.Status.Inventory)
	}
	b.looks.ask(shopNamespace, deletedAt)
	if err := b.api.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	b.get(stored)
	if _, err := b.Reconcile(t.Context(), stored); err != nil || b.looks.known(shopNamespace) {
		t.Errorf("%v, a look is due: %t", err, b.looks.known(shopNamespace))
	}
	if conditions.Get(stored, v1alpha1.AppsRemovedCondition) == nil {
		t.Errorf("it is not being removed: %+v", stored.Status.Conditions)
	}
}

func TestAProjectOfThePlatformNeedsNoTenant(t *testing.T) {
	project := platformProject("monitoring")
	b := platformFixture(t, kube.PlatformAppsNamespaced, project)
	b.Watch = watchtest.New(t, b.api, corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := b.onLooks().Start(t.Context(), newWoken()); err != nil {
		t.Fatal(err)
	}
	b.get(project)
	if _, err := b.Reconcile(t.Context(), project); err != nil || !conditions.IsTrue(project, v1alpha1.ReadyCondition) || b.guardrails() != nil {
		t.Errorf("%v: %+v", err, project.Status.Conditions)
	}
}

// TestNumbersOfAppsAreWrittenOnceInAWhile, however often the project is woken, and with them the version of rules that changed: so a new process writes nothing.
func TestNumbersOfAppsAreWrittenOnceInAWhile(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: "default"}}
	b, queue := newFixture(t, acme(), account, namespaceOf("uid-1"), shop()), newWoken()
	if err := b.onLooks().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	written := 0
	b.fault = func(verb string, o any, data string) error {
		if verb != "get" && strings.Contains(data, `"kind":"Guardrails"`) {
			written++
		}
		return nil
	}
	looks := func(apps, writes int) *v1alpha1.Project {
		t.Helper()
		written = 0
		project := shop()
		b.get(project)
		if _, err := b.Reconcile(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		if b.get(project); project.Status.Apps != apps || written != writes {
			t.Errorf("the status has %d apps, want %d; the rules were written %d times, want %d", project.Status.Apps, apps, written, writes)
		}
		return project
	}
	looks(0, 1)
	looks(0, 0)
	if err := b.api.Create(t.Context(), appOf(shopNamespace, "web")); err != nil {
		t.Fatal(err)
	}
	looks(0, 0)
	if diff := cmp.Diff([]string{"kubeop-acme/shop after 2s"}, queue.all(1)); diff != "" {
		t.Errorf("woken again (-want +got):\n%s", diff)
	}
	b.clock.Step(rollup.Pause)
	claim := &v1alpha1.HostnameClaim{ObjectMeta: metav1.ObjectMeta{Name: "a.example"}, Spec: v1alpha1.HostnameClaimSpec{Hostname: "a.example", Tenant: "acme", Project: "shop"}}
	if err := b.api.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	before := looks(1, 1)
	b.memory = memory{}
	after := looks(1, 0)
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("the status that a new process writes (-old +new):\n%s", diff)
	}
}
