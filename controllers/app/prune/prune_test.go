package prune

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
)

const shop = "kubeop-acme-shop"

// fixture is a Pruner of the app "web" of project "shop" of tenant "acme" with a fake API server.
type fixture struct {
	*Pruner
	t      *testing.T
	api    client.WithWatch
	s      *subject.Subject
	events *events.FakeRecorder
}

// webApp is the app that the tests prune for.
func webApp() *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "web"}}
}

func newFixture(t *testing.T, app *v1alpha1.App, faults interceptor.Funcs, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, app)...).WithStatusSubresource(app).Build()
	b := &fixture{t: t, api: api, events: events.NewFakeRecorder(10)}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
		t.Fatal(err)
	}
	faulty := interceptor.NewClient(api, faults)
	b.Pruner = &Pruner{Client: faulty, Direct: api, Events: b.events, Live: unwatched}
	b.s = (&subject.Subjects{Clock: testclock.NewFakePassiveClock(time.Unix(1_000_000, 0))}).New(app)
	b.s.Owner, b.s.Client = own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: shop}, faulty
	return b
}

// unwatched is a watch without objects: each object is read from the API server.
func unwatched(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
	return nil, false, nil
}

// labelled gives an object the labels of an app of project "shop".
func labelled(o client.Object, app string, annotations ...string) client.Object {
	o.SetNamespace(shop)
	o.SetUID(types.UID(o.GetName()))
	o.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: app})
	if len(annotations) > 0 {
		o.SetAnnotations(map[string]string{annotations[0]: annotations[1]})
	}
	return o
}

func configMap(name string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func boundClaim(name string) client.Object {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
}

func entry(kind, name string) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{ID: shop + "_" + name + "__" + kind, Version: "v1"}
}

// has reports whether the API server still has an object.
func (b *fixture) has(o client.Object, name string) bool {
	b.t.Helper()
	err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: shop, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil
}

// confirm annotates the app with a confirmation, as a person would.
func (b *fixture) confirm(value string) {
	b.t.Helper()
	b.s.App.SetAnnotations(map[string]string{v1alpha1.ConfirmAnnotation: value, "a": "b"})
	if err := b.api.Update(b.t.Context(), b.s.App); err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) confirmation() (string, bool) {
	b.t.Helper()
	app := &v1alpha1.App{}
	if err := b.api.Get(b.t.Context(), b.s.Key(), app); err != nil {
		b.t.Fatal(err)
	}
	value, there := app.Annotations[v1alpha1.ConfirmAnnotation]
	return value, there
}

func set(entries ...v1alpha1.InventoryEntry) Set {
	return Set{Revision: "one", Stale: entries, Left: "the source", Kept: "is annotated"}
}

func TestOnlyObjectsOfTheAppAreDeleted(t *testing.T) {
	otherTenant := labelled(configMap("tenant"), "web")
	otherTenant.GetLabels()[v1alpha1.TenantLabel] = "beta"
	b := newFixture(t, webApp(), interceptor.Funcs{}, labelled(configMap("own"), "web"), labelled(configMap("moved"), "api"), otherTenant)
	removed, err := b.Prune(t.Context(), b.s, set(entry("ConfigMap", "own"), entry("ConfigMap", "moved"), entry("ConfigMap", "tenant"), entry("ConfigMap", "absent")))
	if err != nil {
		t.Fatal(err)
	}
	if b.has(&corev1.ConfigMap{}, "own") {
		t.Error("the app's own object is still there")
	}
	if !b.has(&corev1.ConfigMap{}, "moved") || !b.has(&corev1.ConfigMap{}, "tenant") {
		t.Error("an object of another owner was deleted")
	}
	if len(removed.Left) != 0 {
		t.Errorf("still in the inventory: %v", removed.Left)
	}
}

func TestProtectedObjectsAreDeletedOnlyAfterConfirmationOfTheirList(t *testing.T) {
	entries := []v1alpha1.InventoryEntry{entry("ConfigMap", "a"), entry("ConfigMap", "b")}
	cases := map[string]struct {
		confirmation string
		deleted      bool
	}{
		"nothing is confirmed":                  {"", false},
		"the list is confirmed":                 {token("one", entries, false), true},
		"the list of another revision":          {token("two", entries, false), false},
		"a shorter list":                        {token("one", entries[:1], false), false},
		"all, as for the removal of the app":    {v1alpha1.ConfirmAll, false},
		"the list with claims that are to stay": {token("one", entries, true), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(), interceptor.Funcs{},
				labelled(configMap("a"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneConfirm), labelled(configMap("b"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneConfirm))
			b.confirm(c.confirmation)
			removed, err := b.Prune(t.Context(), b.s, set(entries...))
			if err != nil {
				t.Fatal(err)
			}
			if gone := !b.has(&corev1.ConfigMap{}, "a") && !b.has(&corev1.ConfigMap{}, "b"); gone != c.deleted {
				t.Errorf("deleted: %t, want %t", gone, c.deleted)
			}
			if _, there := b.confirmation(); there == c.deleted {
				t.Errorf("the confirmation still exists: %t", there)
			}
			held, left := b.Held(b.s.App), len(removed.Left)
			if c.deleted && (left != 0 || len(removed.Held) != 0 || len(held.Objects) != 0 || held.Token != "") {
				t.Errorf("after the deletion the inventory has %d objects, held are %v", left, held)
			}
			if !c.deleted && (left != 2 || len(removed.Held) != 2 || held.Token != token("one", entries, false)) {
				t.Errorf("the inventory has %d objects, held are %v", left, held)
			}
		})
	}
}

// TestWithoutARevisionNothingIsConfirmed: the token is empty then, like the annotation of an app without one.
func TestWithoutARevisionNothingIsConfirmed(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{}, labelled(configMap("a"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneConfirm))
	what := set(entry("ConfigMap", "a"))
	what.Revision = ""
	removed, err := b.Prune(t.Context(), b.s, what)
	if err != nil {
		t.Fatal(err)
	}
	if !b.has(&corev1.ConfigMap{}, "a") || len(removed.Held) != 1 {
		t.Errorf("the object was deleted; held are %v", removed.Held)
	}
}

func TestNothingIsDeletedUnlessTheConfirmationCouldBeRemoved(t *testing.T) {
	cases := map[string]func(*fixture){
		"the API server refuses": func(b *fixture) {
			b.Client = interceptor.NewClient(b.api, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return errors.New("down")
			}})
		},
		"the app was changed meanwhile": func(b *fixture) {
			now := b.s.App.DeepCopy()
			now.Annotations["a"] = "c"
			if err := b.api.Update(b.t.Context(), now); err != nil {
				b.t.Fatal(err)
			}
		},
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(), interceptor.Funcs{}, labelled(configMap("a"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneConfirm))
			b.confirm(token("one", []v1alpha1.InventoryEntry{entry("ConfigMap", "a")}, false))
			fault(b)
			removed, err := b.Prune(t.Context(), b.s, set(entry("ConfigMap", "a")))
			if err == nil || !strings.Contains(err.Error(), "deleting what left the source: removing the confirmation") {
				t.Errorf("error %v", err)
			}
			if !b.has(&corev1.ConfigMap{}, "a") || len(removed.Left) != 1 {
				t.Errorf("the object was deleted; the inventory is %v", removed.Left)
			}
		})
	}
}

// TestAConfirmedDeletionKeepsTheRestInTheInventory: one object waits for its finalizer, one is kept for a sibling, and one deletion fails.
func TestAConfirmedDeletionKeepsTheRestInTheInventory(t *testing.T) {
	blocked := labelled(configMap("blocked"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneConfirm)
	blocked.SetFinalizers([]string{"example.com/wait"})
	b := newFixture(t, webApp(), interceptor.Funcs{}, blocked, labelled(configMap("free"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneConfirm),
		labelled(configMap("wanted"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneConfirm), labelled(configMap("early"), "web"))
	entries := []v1alpha1.InventoryEntry{entry("ConfigMap", "blocked"), entry("ConfigMap", "early"), entry("ConfigMap", "free"), entry("ConfigMap", "wanted")}
	b.confirm(token("one", []v1alpha1.InventoryEntry{entries[0], entries[2], entries[3]}, false))
	what := set(entries...)
	what.Wanted = func(_ context.Context, id inventory.ObjectID) (string, error) {
		return map[string]string{"wanted": "app api", "early": "app worker"}[id.Name], nil
	}
	removed, err := b.Prune(t.Context(), b.s, what)
	if !step.Waits(err) || err.Error() != "waits for ConfigMap/blocked, which the finalizer example.com/wait holds to be gone" {
		t.Errorf("error %v", err)
	}
	if b.has(&corev1.ConfigMap{}, "free") || !b.has(&corev1.ConfigMap{}, "wanted") || !b.has(&corev1.ConfigMap{}, "early") {
		t.Error("the wrong objects were deleted")
	}
	var left []string
	for _, e := range removed.Left {
		left = append(left, e.ID)
	}
	if diff := cmp.Diff([]string{entries[1].ID, entries[0].ID, entries[3].ID}, left, cmp.Transformer("sorted", sorted)); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ConfigMap/early for app worker", "ConfigMap/wanted for app api"}, removed.Wanted); diff != "" {
		t.Errorf("kept for others (-want +got):\n%s", diff)
	}
	if len(removed.Leaving) != 1 || len(removed.Held) != 0 {
		t.Errorf("being deleted are %v, held are %v", removed.Leaving, removed.Held)
	}
}

func sorted(all []string) map[string]bool {
	is := map[string]bool{}
	for _, s := range all {
		is[s] = true
	}
	return is
}

func TestClaimsStayUnderThePolicyRetainEvenWhenConfirmed(t *testing.T) {
	for policy, deleted := range map[v1alpha1.ClaimDeletionPolicy]bool{v1alpha1.ClaimRetain: false, "": false, v1alpha1.ClaimDelete: true} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			app := webApp()
			app.Spec.ClaimDeletionPolicy = policy
			b := newFixture(t, app, interceptor.Funcs{}, labelled(boundClaim("data"), "web"))
			entries := []v1alpha1.InventoryEntry{entry("PersistentVolumeClaim", "data")}
			b.confirm(token("one", entries, !deleted))
			what := set(entries...)
			what.Claims = true
			if _, err := b.Prune(t.Context(), b.s, what); err != nil {
				t.Fatal(err)
			}
			if gone := !b.has(&corev1.PersistentVolumeClaim{}, "data"); gone != deleted {
				t.Errorf("deleted: %t, want %t", gone, deleted)
			}
			held := b.Held(b.s.App)
			if want := map[bool]int{true: 0, false: 1}[deleted]; held.Retained != want || len(held.Objects) != want {
				t.Errorf("held %v", held)
			}
		})
	}
}

// TestAnOwnerOfClaimsIsHeld: Kubernetes would delete its claims with it.
func TestAnOwnerOfClaimsIsHeld(t *testing.T) {
	of := map[bool]client.Object{}
	for _, owned := range []bool{true, false} {
		name := map[bool]string{true: "owner", false: "other"}[owned]
		of[owned] = labelled(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}}, "web")
	}
	data := labelled(boundClaim("data"), "web")
	data.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "owner", UID: of[true].GetUID()}})
	elsewhere := labelled(boundClaim("elsewhere"), "web")
	elsewhere.SetNamespace("kubeop-acme-other")
	elsewhere.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "other", UID: of[false].GetUID()}})
	b := newFixture(t, webApp(), interceptor.Funcs{}, of[true], of[false], data, elsewhere)
	what := set(v1alpha1.InventoryEntry{ID: shop + "_owner_apps_StatefulSet", Version: "v1"}, v1alpha1.InventoryEntry{ID: shop + "_other_apps_StatefulSet", Version: "v1"})
	what.Claims = true
	removed, err := b.Prune(t.Context(), b.s, what)
	if err != nil || len(removed.Held) != 1 || removed.Held[0].ID != what.Stale[0].ID {
		t.Errorf("held are %v, %v", removed.Held, err)
	}
	if !b.has(&appsv1.StatefulSet{}, "owner") || b.has(&appsv1.StatefulSet{}, "other") {
		t.Error("the wrong one was deleted")
	}
}

// TestAConfirmationStaysWhileADeletionFails: it would be used up, and what it confirms deleted, in a pass that is repeated.
func TestAConfirmationStaysWhileADeletionFails(t *testing.T) {
	for fails, confirmed := range map[string]bool{"early": true, "late": false} {
		t.Run(fails, func(t *testing.T) {
			b := newFixture(t, webApp(), interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if o.GetName() == fails {
					return errors.New("down")
				}
				return c.Delete(ctx, o, opts...)
			}}, labelled(configMap("early"), "web"), labelled(configMap("late"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneConfirm))
			entries := []v1alpha1.InventoryEntry{entry("ConfigMap", "early"), entry("ConfigMap", "late")}
			b.confirm(token("one", entries[1:], false))
			removed, err := b.Prune(t.Context(), b.s, set(entries...))
			if err == nil || !strings.Contains(err.Error(), "ConfigMap/"+fails+": down") {
				t.Errorf("error %v", err)
			}
			if !b.has(&corev1.ConfigMap{}, "late") || b.has(&corev1.ConfigMap{}, "early") != confirmed || len(removed.Left) == 0 {
				t.Errorf("the wrong objects were deleted; the inventory is %v", removed.Left)
			}
			if _, there := b.confirmation(); there != confirmed {
				t.Errorf("the confirmation still exists: %t, want %t", there, confirmed)
			}
		})
	}
}

func TestNothingIsDeletedWhileTheClaimPolicyCannotBeRead(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, ok := o.(*v1alpha1.Tenant); ok {
			return errors.New("down")
		}
		return c.Get(ctx, key, o, opts...)
	}}, labelled(configMap("own"), "web"))
	what := set(entry("ConfigMap", "own"))
	what.Claims = true
	removed, err := b.Prune(t.Context(), b.s, what)
	if err == nil || err.Error() != "reading tenant acme: down" {
		t.Errorf("error %v", err)
	}
	if !b.has(&corev1.ConfigMap{}, "own") || len(removed.Left) != 1 {
		t.Errorf("the object was deleted; the inventory is %v", removed.Left)
	}
}

func TestObjectsThatAreNeverDeletedAreReportedOnce(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{}, labelled(configMap("kept"), "web", v1alpha1.PruneAnnotation, v1alpha1.PruneDisabled))
	removed, err := b.Prune(t.Context(), b.s, set(entry("ConfigMap", "kept")))
	if err != nil {
		t.Fatal(err)
	}
	if !b.has(&corev1.ConfigMap{}, "kept") || len(removed.Left) != 0 || len(removed.Kept) != 1 {
		t.Errorf("the inventory is %v, kept are %v", removed.Left, removed.Kept)
	}
	const want = "Normal " + v1alpha1.KeptReason + " left ConfigMap/kept, which is annotated: kubeop no longer looks after them"
	select {
	case got := <-b.events.Events:
		if got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	default:
		t.Error("there is no event")
	}
	b.ReportKept(t.Context(), b.s.App, nil, "is annotated")
	if len(b.events.Events) != 0 {
		t.Error("there is an event although nothing was kept")
	}
}

func TestAFailedDeletionIsRetriedAndStaysInTheInventory(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "own", errors.New("no"))
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"the API server fails": {errors.New("down"), "deleting what left the source: ConfigMap/own: down"},
		"it is forbidden":      {forbidden, "an administrator of the cluster may run: kubectl delete configmap own -n " + shop + ", or let the project do so: what is cluster-scoped by spec.clusterKinds of the Tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(), interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return c.err }},
				labelled(configMap("own"), "web"))
			removed, err := b.Prune(t.Context(), b.s, set(entry("ConfigMap", "own")))
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.err) || step.Waits(err) {
				t.Errorf("error %v", err)
			}
			if len(removed.Left) != 1 {
				t.Errorf("the inventory is %v", removed.Left)
			}
		})
	}
}

func TestOnlyAForbiddenDeletionNeedsAdministrators(t *testing.T) {
	other, forbidden := errors.New("down"), apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "a", errors.New("no"))
	if got := Forbidden(other, ", or more"); !errors.Is(got, other) || got.Error() != other.Error() {
		t.Errorf("got %v", got)
	}
	if got := Forbidden(nil, ""); got != nil {
		t.Errorf("got %v", got)
	}
	// The command is about an object that may not be deleted, although another one failed first.
	err := errors.Join(inventory.ErrorAbout(inventory.ObjectID{Kind: "ConfigMap", Name: "b"}, other), inventory.ErrorAbout(inventory.ObjectID{Kind: "Node", Name: "a"}, forbidden))
	want := err.Error() + "; an administrator of the cluster may run: kubectl delete node a, or let the project do so: what is cluster-scoped by " +
		"spec.clusterKinds of the Tenant, in tenant.yaml of the platform repository, or more"
	if got := Forbidden(err, ", or more"); !errors.Is(got, forbidden) || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
	want = err.Error() + `; an administrator of the cluster may run: kubectl patch node a --type merge -p '{"metadata":{"finalizers":null}}'`
	if got := FinalizersForbidden(err); !errors.Is(got, forbidden) || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAwaitGoneNamesDeletionsInProgress(t *testing.T) {
	s := newFixture(t, webApp(), interceptor.Funcs{}).s
	if err := AwaitGone(s, v1alpha1.ProgressingReason, nil); err != nil {
		t.Errorf("AwaitGone without objects: got %v, want nil", err)
	}
	err := AwaitGone(s, v1alpha1.ProgressingReason, []finalizer.Terminating{{Kind: "Pod", Name: "a"}, {Kind: "Job", Name: "b"}})
	if !step.Waits(err) || err.Error() != "waits for Pod/a; Job/b to be gone" {
		t.Errorf("error %v", err)
	}
}

// TestTheOperatorReadsClusterScopedObjectsThatTheDeployerMayNot: the deployer may read nothing.
func TestTheOperatorReadsClusterScopedObjectsThatTheDeployerMayNot(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "a", errors.New("no"))
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "any"}, "a")
	cases := map[string]struct {
		namespace          string
		deployer, operator error
		want               error
	}{
		"the deployer sees it":                        {"", nil, errors.New("not asked"), nil},
		"the deployer fails otherwise":                {"", missing, nil, missing},
		"the operator sees it":                        {"", forbidden, nil, nil},
		"the operator sees that it is gone":           {"", forbidden, missing, missing},
		"the operator may not see it either":          {"", forbidden, forbidden, forbidden},
		"objects of a namespace are the deployer's":   {shop, forbidden, nil, forbidden},
		"a namespaced object that the deployer finds": {shop, nil, missing, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answers := func(err error) client.WithWatch {
				return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
					Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
						return err
					},
				})
			}
			p := &Pruner{Direct: answers(c.operator)}
			got := p.Sees(&subject.Subject{Client: answers(c.deployer)}).Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "a"}, &corev1.ConfigMap{})
			if !errors.Is(got, c.want) || (got == nil) != (c.want == nil) {
				t.Errorf("got %v", got)
			}
		})
	}
}
