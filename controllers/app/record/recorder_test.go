package record

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/journal"
)

// TestObjectsOfAnInterruptedPassAreKnownAfterARestart: the journal has the objects that an earlier process began to create, until the status
// reports them.
func TestObjectsOfAnInterruptedPassAreKnownAfterARestart(t *testing.T) {
	api := fake.NewClientBuilder().Build()
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1"}}
	applied := v1alpha1.InventoryEntry{ID: "kubeop-a-b_applied__ConfigMap", Version: "v1", Digest: "1234"}
	begun := v1alpha1.InventoryEntry{ID: "kubeop-a-b_begun__ConfigMap", Version: "v1"}
	app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{applied}
	expect := func(r *Recorder, want ...v1alpha1.InventoryEntry) v1alpha1.Inventory {
		t.Helper()
		got, err := r.Load(t.Context(), app)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Entries); diff != "" {
			t.Errorf("the inventory (-want +got):\n%s", diff)
		}
		return got
	}
	killed := &Recorder{Journal: journal.New(api, "kubeop-system", time.Now)}
	before := expect(killed, applied)
	if err := killed.Announce(t.Context(), app, before.Entries, []v1alpha1.InventoryEntry{applied, begun}); err != nil {
		t.Fatal(err)
	}

	next := &Recorder{Journal: journal.New(api, "kubeop-system", time.Now)}
	expect(next, applied, begun)
	next.Keep(app, v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{applied}}, false) // A pass that writes no status.
	last := expect(next, applied)
	next.Keep(app, last, true)
	expect(next, applied)
	if left, err := next.Journal.Of(t.Context(), "1"); len(left) > 0 || err != nil {
		t.Errorf("the journal still has %v, %v", left, err)
	}
}

// TestWritesOfAPartlyFailedPassStillCount: the next pass writes only the remaining objects.
func TestWritesOfAPartlyFailedPassStillCount(t *testing.T) {
	w, now := &Writes{}, time.Unix(100000, 0)
	entries := []v1alpha1.InventoryEntry{{ID: "a"}, {ID: "b"}}
	w.Add(entries, map[string]string{"a": "5"}, now)
	w.Add(entries, map[string]string{"b": "6"}, now.Add(time.Second))
	if diff := cmp.Diff(map[string]string{"a": "5", "b": "6"}, w.Unsettled()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.Settled()
	if w.Unsettled() != nil || len(w.Recent(now.Add(watchLag))) != 2 {
		t.Errorf("once healthy, the unsettled writes are %v, the recent ones %v", w.Unsettled(), w.Recent(now))
	}
	if late := now.Add(watchLag + 2*time.Second); !w.Shown(late) || w.Recent(late) != nil {
		t.Error("a write is still recent after the lag of a watch")
	}
}

func TestAPassContinuesFromTheInventoryOfAnUnreportedOne(t *testing.T) {
	made := v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: "kubeop-a-b_made__ConfigMap", Version: "v1"}}}
	reported := v1alpha1.InventoryEntry{ID: "kubeop-a-b_reported__ConfigMap", Version: "v1"}
	for name, c := range map[string]struct {
		change func(*v1alpha1.App)
		then   func(*Recorder, *v1alpha1.App)
		want   string
	}{
		"a pass that was not reported":        {func(*v1alpha1.App) {}, func(*Recorder, *v1alpha1.App) {}, made.Entries[0].ID},
		"its App is being removed":            {func(*v1alpha1.App) {}, (*Recorder).Drop, reported.ID},
		"its App is gone":                     {func(*v1alpha1.App) {}, (*Recorder).Forget, reported.ID},
		"a later pass that was reported":      {func(*v1alpha1.App) {}, func(r *Recorder, a *v1alpha1.App) { r.Keep(a, made, true) }, reported.ID},
		"a suspended App":                     {func(a *v1alpha1.App) { a.Spec.Suspend = true }, func(*Recorder, *v1alpha1.App) {}, reported.ID},
		"a Helm App, which its release knows": {func(a *v1alpha1.App) { a.Spec.Helm = &v1alpha1.HelmSource{} }, func(*Recorder, *v1alpha1.App) {}, reported.ID},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1"}}
			app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{reported}
			c.change(app)
			r := &Recorder{Journal: journal.New(fake.NewClientBuilder().Build(), "kubeop-system", time.Now)}
			r.Keep(app, made, false)
			c.then(r, app)
			got, err := r.Load(t.Context(), app)
			if err != nil || len(got.Entries) != 1 || got.Entries[0].ID != c.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestAFailedLoadIsReported: without the journal nothing may be deleted.
func TestAFailedLoadIsReported(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1"}}
	app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: "kubeop-a-b_reported__ConfigMap", Version: "v1"}}
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("down")
		},
	})
	r := &Recorder{Journal: journal.New(api, "kubeop-system", time.Now)}
	got, err := r.Load(t.Context(), app)
	if err == nil || len(got.Entries) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	app.Spec.Helm = &v1alpha1.HelmSource{} // The release's records have its objects.
	if got, err := r.Load(t.Context(), app); err != nil || len(got.Entries) != 1 {
		t.Errorf("a Helm App: got %v, %v", got, err)
	}
}

// TestAFullJournalIsReplacedByTheStatus: the objects are recorded before they are created in any case.
func TestAFullJournalIsReplacedByTheStatus(t *testing.T) {
	entries := func(n int) (all []v1alpha1.InventoryEntry) {
		for i := range n {
			all = append(all, v1alpha1.InventoryEntry{ID: fmt.Sprintf("kubeop-a-b_%d__ConfigMap", i), Version: "v1"})
		}
		return all
	}
	for name, c := range map[string]struct {
		entries []v1alpha1.InventoryEntry
		writes  int
		journal bool
	}{
		"few objects":  {entries(2), 0, true},
		"many objects": {entries(1000), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1", Finalizers: []string{v1alpha1.Finalizer}}}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(app).WithStatusSubresource(app).Build()
			r := &Recorder{Journal: journal.New(fake.NewClientBuilder().Build(), "kubeop-system", time.Now)}
			runner := &step.Runner{Client: api, Events: events.NewFakeRecorder(1), Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
				t.Fatal(err)
			}
			s := &announced{app: app, entries: c.entries}
			written := 0
			_, err := runner.Run(t.Context(), app, s, step.Of(v1alpha1.AppliedCondition, s, func(ctx context.Context, s *announced) error {
				if err := r.Announce(ctx, app, nil, c.entries); err != nil {
					return err
				}
				live := &v1alpha1.App{}
				err := api.Get(ctx, client.ObjectKeyFromObject(app), live)
				written = len(live.Status.Inventory.Entries)
				return err
			}))
			if err != nil {
				t.Fatal(err)
			}
			if want := c.writes * len(c.entries); written != want {
				t.Errorf("before the objects are created, the status has %d, want %d", written, want)
			}
			if begun, err := r.Journal.Of(t.Context(), "1"); err != nil || (len(begun) == len(c.entries)) != c.journal {
				t.Errorf("the journal has %d objects, %v", len(begun), err)
			}
		})
	}
	away := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
	})
	r := &Recorder{Journal: journal.New(away, "kubeop-system", time.Now)}
	if err := r.Announce(t.Context(), &v1alpha1.App{}, nil, entries(1)); err == nil {
		t.Error("the journal cannot be read, and that is no error")
	}
}

// announced records entries in the status of an App.
type announced struct {
	app     *v1alpha1.App
	entries []v1alpha1.InventoryEntry
}

func (a *announced) Record()         { a.app.Status.Inventory.Entries = a.entries }
func (a *announced) Summary() string { return "" }

func TestAForgottenAppLeavesNothingBehind(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1"}}
	r := &Recorder{Journal: journal.New(fake.NewClientBuilder().Build(), "kubeop-system", time.Now)}
	begun := []v1alpha1.InventoryEntry{{ID: "kubeop-a-b_begun__ConfigMap", Version: "v1"}}
	if err := r.Announce(t.Context(), app, nil, begun); err != nil {
		t.Fatal(err)
	}
	r.Writes(app).Add(begun, map[string]string{begun[0].ID: "5"}, time.Unix(100000, 0))
	r.Forget(app)
	if left, err := r.Recorded(t.Context(), app); err != nil || len(left.Entries) != 0 {
		t.Errorf("the journal has %v, %v", left.Entries, err)
	}
	if left := r.Writes(app).Unsettled(); len(left) != 0 {
		t.Errorf("the writes are %v", left)
	}
}

func TestObjectsAreSplitByTheNamespaceOfTheApp(t *testing.T) {
	in, of, near := v1alpha1.InventoryEntry{ID: "kubeop-a-b_one__ConfigMap"}, v1alpha1.InventoryEntry{ID: "_one__PersistentVolume"}, v1alpha1.InventoryEntry{ID: "kubeop-a-bc_one__ConfigMap"}
	for name, c := range map[string]struct{ all, inside, outside []v1alpha1.InventoryEntry }{
		"both":         {[]v1alpha1.InventoryEntry{of, in, near}, []v1alpha1.InventoryEntry{in}, []v1alpha1.InventoryEntry{of, near}},
		"only inside":  {[]v1alpha1.InventoryEntry{in}, []v1alpha1.InventoryEntry{in}, []v1alpha1.InventoryEntry{}},
		"only outside": {[]v1alpha1.InventoryEntry{of}, []v1alpha1.InventoryEntry{}, []v1alpha1.InventoryEntry{of}},
	} {
		if diff := cmp.Diff(c.inside, Inside(c.all, "kubeop-a-b")); diff != "" {
			t.Errorf("%s, inside (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.outside, Outside(c.all, "kubeop-a-b")); diff != "" {
			t.Errorf("%s, outside (-want +got):\n%s", name, diff)
		}
	}
}
