package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/journal"
)

// TestAFixHasItsOwnTime writes the objects of an app that was unhealthy for an hour. Neither the quiet pass that did so nor
// the next one counts that hour against the fix.
func TestAFixHasItsOwnTime(t *testing.T) {
	now := time.Unix(100000, 0)
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "web"}}
	app.Status.UnhealthySince = &metav1.Time{Time: now.Add(-time.Hour)}
	m := &memory{}
	if s := newScope(app, m, nil); s.unhealthySince == nil {
		t.Fatal("nothing was written, and the hour is forgotten")
	}
	m.of(app).written = now
	if s := newScope(app, m, nil); s.unhealthySince != nil {
		t.Errorf("the fix is unhealthy since %s", s.unhealthySince)
	}
	app.Status.UnhealthySince = &metav1.Time{Time: now.Add(time.Second)}
	if s := newScope(app, m, nil); s.unhealthySince == nil {
		t.Error("what came after the write is forgotten")
	}
}

// TestWhatAQuietPassFoundIsKept holds the objects of a revision until the status has them.
func TestWhatAQuietPassFoundIsKept(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "web", Name: "web"}, Spec: v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{}}}
	app.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Deployed: 1}
	entries := []v1alpha1.InventoryEntry{{ID: "ns_a__ConfigMap", Digest: "2"}}
	m := &memory{}
	r := m.of(app)
	r.release, r.revision, r.entries, r.corrected = "web", 2, entries, "put back: x"
	s := newScope(app, m, nil)
	s.memory.settle()
	if recordedRevision(s).revision != 2 || len(recordedEntries(s)) != 1 || s.memory.corrected == "" {
		t.Errorf("it is forgotten before it was told: %+v", s.memory)
	}
	app.Status.Release.Deployed, app.Status.Inventory.Entries = 2, entries
	app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.DriftedCondition, Message: "put back: x"}}
	s = newScope(app, m, nil)
	if s.memory.revision != 0 || s.memory.entries != nil || s.memory.corrected != "" || recordedRevision(s).revision != 2 {
		t.Errorf("it is kept though the status has it: %+v", s.memory)
	}
}

// TestWhatWasPutBackIsForgottenOnceToldThoughItsNameIsSensitive: where it was not, drift after it was told as put back, too.
func TestWhatWasPutBackIsForgottenOnceToldThoughItsNameIsSensitive(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "web", Name: "web"}}
	m := &memory{}
	s := newScope(app, m, nil)
	s.sensitive = []string{"hunter22"}
	s.memory.putBack("ConfigMap/hunter22", time.Now())
	note := driftNote(s, v1alpha1.DriftCorrect)
	if note.Message != "put back: ConfigMap/***" {
		t.Errorf("told is %q", note.Message)
	}
	app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.DriftedCondition, Reason: note.Reason, Message: note.Message}}
	if s = newScope(app, m, nil); s.memory.corrected != "" {
		t.Errorf("%q is kept though the status has it", s.memory.corrected)
	}
}

// TestWhatWasWrittenIsKnownThoughAnotherFailed: the next pass writes only the rest, and takes what a watch that lags shows
// of the others for no drift and no health.
func TestWhatWasWrittenIsKnownThoughAnotherFailed(t *testing.T) {
	failing, version := "broken", "5"
	s := declaring(gitApp(1), "one", "good", "broken")
	s.client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			if o.GetName() == failing {
				return errors.New("away")
			}
			o.SetResourceVersion(version)
			return nil
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("nothing is to be read")
		},
	})
	clock := clocktesting.NewFakePassiveClock(time.Unix(100000, 0))
	r := &Reconciler{Clock: clock, Journal: journal.New(fake.NewClientBuilder().Build(), "kubeop-system", time.Now), Applier: &apply.Applier{Live: func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return nil, true, nil
	}}}
	pass := func(want map[string]string) {
		t.Helper()
		if err := r.apply(t.Context(), s); (err == nil) != (failing == "") {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.memory.floors); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	pass(map[string]string{"_good__ConfigMap": "5"})
	failing, version = "", "6"
	pass(map[string]string{"_good__ConfigMap": "5", "_broken__ConfigMap": "6"})
}

func TestAQuarrelIsLeftToPeople(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(100000, 0))
	r := &Reconciler{Clock: clock}
	m := &remembered{}
	corrected, began := 0, clock.Now()
	for clock.Now().Sub(began) < 5*time.Minute {
		if r.quarrel(m) <= 0 {
			corrected++
			m.corrections++
			m.correctedAt = clock.Now()
		}
		clock.SetTime(clock.Now().Add(100 * time.Millisecond))
	}
	if corrected < 6 || corrected > 14 {
		t.Errorf("corrected %d times in five minutes", corrected)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	if r.quarrel(m) > 0 || m.corrections != 0 {
		t.Error("an hour of peace is not enough")
	}
}

func TestWaitingIsQuietAtFirst(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(100000, 0))
	r := &Reconciler{Clock: clock}
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "web"}}
	s := newScope(app, &r.memory, nil)
	says := func() string { return r.wait(s, "release", patience, errors.New("installing")).Error() }
	if got := says(); got != "under way" {
		t.Errorf("at once it says %q", got)
	}
	clock.SetTime(clock.Now().Add(patience))
	if got := says(); got != "installing" {
		t.Errorf("after %s it says %q", patience, got)
	}
}
