package app

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/release"
)

func TestHistoryFollowsStorage(t *testing.T) {
	recorded := []v1alpha1.ReleaseSnapshot{{Revision: 3, Status: "deployed", Chart: "web"}, {Revision: 2, Status: "superseded"}, {Revision: 1, Status: "superseded"}}
	outcome := &release.Outcome{
		History:   []v1alpha1.ReleaseSnapshot{{Revision: 4, Status: "deployed", Chart: "web"}, {Revision: 9, Status: "failed"}},
		Revisions: map[int]string{4: "deployed", 3: "superseded", 2: "superseded", 5: "failed"},
	}
	want := []v1alpha1.ReleaseSnapshot{{Revision: 4, Status: "deployed", Chart: "web"}, {Revision: 3, Status: "superseded", Chart: "web"}, {Revision: 2, Status: "superseded"}}
	if diff := cmp.Diff(want, historyOf(recorded, outcome)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnhealthyFrom(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	began := now.Add(-time.Minute)
	for name, c := range map[string]struct {
		told time.Time
		want time.Time
	}{
		"not told":                      {want: began},
		"told":                          {told: now.Add(-time.Hour), want: now.Add(-time.Hour)},
		"told a moment ago":             {told: now, want: now},
		"before the clock was set back": {told: now.Add(3 * time.Hour), want: began},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{}
			if !c.told.IsZero() {
				s.unhealthySince = &metav1.Time{Time: c.told}
			}
			if got := s.unhealthyFrom(began, now); !got.Equal(c.want) || !s.unhealthySince.Time.Equal(c.want) {
				t.Errorf("got %s, and the status tells %s, want %s", got, s.unhealthySince, c.want)
			}
		})
	}
}

func TestWhatAReleaseOutcomeIsCalled(t *testing.T) {
	broken := errors.New("Deployment/web: no")
	cases := map[string]struct {
		outcome release.Outcome
		want    string
	}{
		"the world":               {release.Outcome{World: true, Deployed: 1}, v1alpha1.RetryingReason},
		"a first install":         {release.Outcome{}, v1alpha1.InstallFailedReason},
		"an upgrade":              {release.Outcome{Deployed: 2}, v1alpha1.UpgradeFailedReason},
		"tests":                   {release.Outcome{Deployed: 2, Test: "Failed"}, v1alpha1.TestFailedReason},
		"the world, after a test": {release.Outcome{World: true, Test: "Failed"}, v1alpha1.RetryingReason},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.outcome.Failed = broken
			if got := failureReason(c.outcome); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestHeldSaysWhatWasDone(t *testing.T) {
	rolledBack := &release.Remediation{Kind: v1alpha1.RemediationRollback, To: 3}
	outcome := release.Outcome{Held: true, Attempts: 2, Failed: errors.New("Deployment/web: no"), Remediation: rolledBack}
	const want = "failed 2 times and was rolled back to revision 3; held until chart or values change, or the annotation reconcile.fluxcd.io/forceAt asks for another try: Deployment/web: no"
	if got := held(outcome).Error(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestPhases(t *testing.T) {
	r := &remembered{}
	at := time.Unix(100, 0)
	if got := r.began("release", at); got != at {
		t.Errorf("began at %s", got)
	}
	if got := r.began("release", at.Add(time.Minute)); got != at {
		t.Errorf("the same phase began anew at %s", got)
	}
	if got := r.began("health of 2/1", at.Add(time.Minute)); got != at.Add(time.Minute) {
		t.Errorf("another phase began at %s", got)
	}
}

func TestWhatIsAskedByAnnotation(t *testing.T) {
	cases := map[string]struct {
		value, handled string
		want           bool
	}{
		"nothing":             {"", "", false},
		"for the first time":  {"1", "", true},
		"what was done":       {"1", "1", false},
		"again":               {"2", "1", true},
		"the question is off": {"", "1", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{forceAnnotation: c.value}}}
			if got := asks(app, forceAnnotation, c.handled); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestWhatAProcessBeganIsTakenUpByTheNext has an app know of objects that an earlier process began to make, until the status tells
// what became of them.
func TestWhatAProcessBeganIsTakenUpByTheNext(t *testing.T) {
	api := fake.NewClientBuilder().Build()
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1"}}
	applied := v1alpha1.InventoryEntry{ID: "kubeop-a-b_applied__ConfigMap", Version: "v1", Digest: "1234"}
	begun := v1alpha1.InventoryEntry{ID: "kubeop-a-b_begun__ConfigMap", Version: "v1"}
	app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{applied}
	pass := func(r *Reconciler) *scope {
		t.Helper()
		s := newScope(app.DeepCopy(), &r.memory, nil)
		if err := r.recall(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	expect := func(s *scope, want ...v1alpha1.InventoryEntry) {
		t.Helper()
		if diff := cmp.Diff(want, s.inventory.Entries); diff != "" {
			t.Errorf("the inventory (-want +got):\n%s", diff)
		}
	}
	killed := &Reconciler{Journal: journal.New(api, "kubeop-system", time.Now)}
	s := pass(killed)
	if err := killed.announce(t.Context(), s, []v1alpha1.InventoryEntry{applied, begun}); err != nil {
		t.Fatal(err)
	}
	expect(s, applied, begun)

	next := &Reconciler{Journal: journal.New(api, "kubeop-system", time.Now)}
	s = pass(next)
	expect(s, applied, begun)
	s.inventory.Entries = []v1alpha1.InventoryEntry{applied}
	next.keep(s) // A quiet pass.
	s = pass(next)
	expect(s, applied)
	s.StatusWritten()
	next.keep(s)
	expect(pass(next), applied)
	if left, err := next.Journal.Of(t.Context(), "1"); len(left) > 0 || err != nil {
		t.Errorf("the journal still has %v, %v", left, err)
	}
}
