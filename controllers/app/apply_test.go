package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/own"
)

// patched answers the writes of objects by name; others are written.
func patched(errs map[string]error) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
		o.SetResourceVersion("7")
		return errs[o.GetName()]
	}}
}

// deliver applies ConfigMaps of these names from commit "one"; the app's inventory already has other objects.
func (b *fixture) deliver(names ...string) {
	b.t.Helper()
	var err error
	b.s.Owner = own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: shop}
	if b.s.Client, err = b.projects.Deployer(shop); err != nil {
		b.t.Fatal(err)
	}
	b.s.found.Revision = "one"
	b.s.objects = nil
	for _, name := range names {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("ConfigMap")
		o.SetName(name)
		b.s.objects = append(b.s.objects, o)
	}
	b.s.Owner.Stamp(b.s.objects)
}

func holding(entries ...v1alpha1.InventoryEntry) *v1alpha1.App {
	return webApp(func(app *v1alpha1.App) { app.Status.Inventory.Entries = entries })
}

func TestPruningFollowsASuccessfulApply(t *testing.T) {
	full := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "new", errors.New("exceeded quota: kubeop"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "new", nil)
	keeps := holding(entry("ConfigMap", "old"))
	keeps.Spec.Prune = new(bool)
	foreign := configMap("new")
	foreign.UID = "foreign"
	for name, c := range map[string]struct {
		app    *v1alpha1.App
		there  []client.Object
		errs   map[string]error
		ends   string
		stays  bool
		unheld bool
	}{
		"all is applied":            {ends: "done"},
		"the App does not prune":    {app: keeps, ends: "done", stays: true},
		"a write fails":             {errs: map[string]error{"new": errors.New("away")}, ends: "failed ApplyFailed: ConfigMap/new: away", stays: true},
		"the quota has no room":     {errs: map[string]error{"new": full}, ends: "failed ApplyFailed: ConfigMap/new: "},
		"another app has the name":  {there: []client.Object{labelled(configMap("new"), "api")}, ends: "failed ApplyFailed: ConfigMap/new: belongs to app api already", stays: true},
		"a foreign object has it":   {there: []client.Object{foreign}, ends: "stopped ApplyFailed: ConfigMap/new: exists already", stays: true},
		"it is invalid":             {errs: map[string]error{"new": invalid}, ends: "stopped ApplyFailed: ConfigMap/new: ", stays: true},
		"it is being deleted first": {there: []client.Object{labelled(configMap("new"), "web", heldBy("example.com/x"))}, ends: "waits Progressing: ConfigMap/new: ", stays: true},
		"contested, and the quota has no room": {
			there: []client.Object{labelled(configMap("new"), "api")}, errs: map[string]error{"second": full}, ends: "failed ApplyFailed: ", stays: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := c.app
			if app == nil {
				app = holding(entry("ConfigMap", "old"))
			}
			b := newFixture(t, app, patched(c.errs), append(c.there, labelled(configMap("old"), "web"))...)
			b.deliver("new", "second")
			if got := b.ended(b.applier.apply(t.Context(), b.s)); !strings.HasPrefix(got, c.ends) {
				t.Errorf("got %q, want %q", got, c.ends)
			}
			if b.has("ConfigMap", "old") != c.stays || strings.Contains(b.recorded(), "old") != c.stays {
				t.Errorf("the object that left the source exists: %t, want %t; the inventory is %s", b.has("ConfigMap", "old"), c.stays, b.recorded())
			}
			if b.s.outcome.applied != (c.ends == "done") {
				t.Errorf("the revision is recorded as applied: %t", b.s.outcome.applied)
			}
		})
	}
}

func TestAnExceededQuotaIsRetried(t *testing.T) {
	full := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "new", errors.New("exceeded quota: kubeop"))
	b := newFixture(t, holding(), patched(map[string]error{"new": full}))
	b.deliver("new")
	if got := b.ended(b.applier.apply(t.Context(), b.s)); !strings.HasSuffix(got, "raise the quota in project.yaml, or ask for less") {
		t.Errorf("got %q", got)
	}
}

func TestAClaimThatLeftTheSourceIsHeldUntilConfirmed(t *testing.T) {
	b := newFixture(t, holding(entry("PersistentVolumeClaim", "data")), patched(nil), labelled(boundClaim("data"), "web"))
	b.deliver("new")
	if got := b.ended(b.applier.apply(t.Context(), b.s)); got != "done" {
		t.Errorf("got %q, want %q", got, "done")
	}
	if !b.has("PersistentVolumeClaim", "data") || !strings.Contains(b.recorded(), "data") {
		t.Errorf("a claim that holds data was deleted, or removed from the inventory %s", b.recorded())
	}
	if len(b.s.held.Objects) != 1 || b.s.held.Token == "" || !b.s.outcome.applied {
		t.Errorf("the held objects are %+v", b.s.held)
	}
	b.app.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: b.s.held.Token}
	if err := b.api.Update(t.Context(), b.app); err != nil {
		t.Fatal(err)
	}
	b.s.inventory = b.app.Status.Inventory
	if got := b.ended(b.applier.apply(t.Context(), b.s)); got != "done" || !b.has("PersistentVolumeClaim", "data") {
		t.Errorf("a claim under the policy Retain was deleted because somebody confirmed it: %q", got)
	}
	b.s.inventory, b.app.Spec.Prune = b.app.Status.Inventory, new(bool)
	if got := b.ended(b.applier.apply(t.Context(), b.s)); got != "done" || b.s.held.Token != "" {
		t.Errorf("an App without prune has the held objects %+v: %q", b.s.held, got)
	}
}

func TestAnObjectThatAnotherAppDeclaresIsCeded(t *testing.T) {
	other := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "api", UID: "api", Generation: 1}}
	b := newFixture(t, holding(entry("ConfigMap", "old")), patched(nil), labelled(configMap("old"), "web"), other)
	b.deliver("new")
	if got := b.ended(b.applier.apply(t.Context(), b.s)); got != "done" {
		t.Errorf("got %q, want %q", got, "done")
	}
	if !b.has("ConfigMap", "old") || b.s.outcome.ceded.Count != 1 || !strings.Contains(b.recorded(), "old") {
		t.Errorf("the ceded objects are %+v, the inventory %s", b.s.outcome.ceded, b.recorded())
	}
	if len(b.s.outcome.ceded.Overdue) > 0 {
		t.Errorf("objects that just left are overdue: %v", b.s.outcome.ceded.Overdue)
	}
	b.clock.Step(step.Quiet)
	if got := b.ended(b.applier.apply(t.Context(), b.s)); got != "done" || !slices.Equal(b.s.outcome.ceded.Overdue, []string{"ConfigMap/old for the app that declares it: app api has not reported its objects yet"}) {
		t.Errorf("%s: overdue are %q", got, b.s.outcome.ceded.Overdue)
	}
}

func TestADeletionInProgressIsAwaitedAndStaysRecorded(t *testing.T) {
	b := newFixture(t, holding(entry("ConfigMap", "old")), patched(nil), labelled(configMap("old"), "web", func(o *corev1.ConfigMap) { o.Finalizers = []string{"example.com/x"} }))
	b.deliver("new")
	want := "waits Progressing: waits for ConfigMap/old, which the finalizer example.com/x holds to be gone, after 1s"
	if got := b.ended(b.applier.apply(t.Context(), b.s)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !strings.Contains(b.recorded(), "old") || b.s.outcome.applied {
		t.Errorf("the inventory is %s, applied is %t", b.recorded(), b.s.outcome.applied)
	}
}

// TestInvalidRulesForDriftStopTheApp before anything is written.
func TestInvalidRulesForDriftStopTheApp(t *testing.T) {
	app := holding()
	app.Spec.Drift.Ignore = []v1alpha1.IgnoreRule{{Paths: []string{"/data"}, Target: &kustomize.Selector{Name: "("}}}
	b := newFixture(t, app, interceptor.Funcs{})
	b.deliver("one")
	if got := b.ended(b.applier.apply(t.Context(), b.s)); !strings.HasPrefix(got, "stopped RenderFailed: ") || b.has("ConfigMap", "one") {
		t.Errorf("got %q", got)
	}
}

// TestObjectsAreRecordedBeforeTheyAreCreated: the process may end at any moment.
func TestObjectsAreRecordedBeforeTheyAreCreated(t *testing.T) {
	wrote := false
	b := newFixture(t, holding(entry("ConfigMap", "old")), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			wrote = true
			return nil
		},
	}, labelled(configMap("old"), "web"))
	away := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("away")
		},
	})
	b.applier.inventory.Journal = journal.New(away, "kubeop-system", time.Now)
	b.deliver("new")
	got := b.ended(b.applier.apply(t.Context(), b.s))
	if !strings.HasPrefix(got, "failed ApplyFailed: recording what will be applied: ") {
		t.Errorf("got %q", got)
	}
	if wrote || !b.has("ConfigMap", "old") || !strings.Contains(b.recorded(), "old") {
		t.Errorf("the object was written: %t, the inventory is %s", wrote, b.recorded())
	}
}

// TestForceDeletesNoObjectThatAnotherAppTookMeanwhile: the owner of an object is read again before it is deleted to be recreated.
func TestForceDeletesNoObjectThatAnotherAppTookMeanwhile(t *testing.T) {
	for name, taken := range map[string]bool{"another app took it": true, "it is still the app's": false} {
		t.Run(name, func(t *testing.T) {
			recorded := entry("ConfigMap", "one")
			recorded.Digest = "of before"
			app := holding(recorded)
			app.Spec.Force = true
			refused := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "one", nil)
			deletions := 0
			b := newFixture(t, app, interceptor.Funcs{
				Patch: func(ctx context.Context, api client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
					live := &corev1.ConfigMap{}
					if err := api.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
						o.SetResourceVersion("7")
						return client.IgnoreNotFound(err)
					}
					if taken {
						live.Labels[v1alpha1.AppLabel] = "api"
					}
					return errors.Join(api.Update(ctx, live), refused)
				},
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, "one") // to a dry run
				},
				Delete: func(ctx context.Context, api client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					deletions++
					return api.Delete(ctx, o)
				},
			}, labelled(configMap("one"), "web"))
			b.deliver("one")
			got := b.ended(b.applier.apply(t.Context(), b.s))
			if (deletions == 0) != taken || b.has("ConfigMap", "one") != taken {
				t.Errorf("deleted %d times: %q", deletions, got)
			}
			if taken && !strings.Contains(got, "belongs to app api already") {
				t.Errorf("got %q", got)
			}
		})
	}
}
