package app

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/handover"
	"github.com/kubeop/kubeop/controllers/app/history"
	"github.com/kubeop/kubeop/controllers/app/notice"
	"github.com/kubeop/kubeop/controllers/app/record"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/journal"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/release"
)

func TestTheUnhealthyTimeContinuesFromTheStatus(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	began := now.Add(-time.Minute)
	for name, c := range map[string]struct {
		since time.Time
		want  time.Time
	}{
		"not in the status":             {want: began},
		"in the status":                 {since: now.Add(-time.Hour), want: now.Add(-time.Hour)},
		"since a moment ago":            {since: now, want: now},
		"before the clock was set back": {since: now.Add(3 * time.Hour), want: began},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{}
			if !c.since.IsZero() {
				s.unhealthySince = &metav1.Time{Time: c.since}
			}
			if got := s.unhealthyFrom(began, now); !got.Equal(c.want) || !s.unhealthySince.Time.Equal(c.want) {
				t.Errorf("got %s, and the status has %s, want %s", got, s.unhealthySince, c.want)
			}
		})
	}
}

func TestTheOutcomeOfAReleaseHasItsReason(t *testing.T) {
	broken := errors.New("Deployment/web: no")
	cases := map[string]struct {
		outcome release.Outcome
		want    string
	}{
		"the environment": {release.Outcome{Environment: true, Deployed: release.Deployed{Revision: 1}}, v1alpha1.RetryingReason},
		"a first install": {release.Outcome{}, v1alpha1.InstallFailedReason},
		"an upgrade":      {release.Outcome{Deployed: release.Deployed{Revision: 2}}, v1alpha1.UpgradeFailedReason},
		"an upgrade after one that was not healthy": {release.Outcome{Records: release.Records{Statuses: map[int]string{1: "superseded", 2: "failed", 3: "failed"}}}, v1alpha1.UpgradeFailedReason},
		"an install after an uninstall":             {release.Outcome{Records: release.Records{Statuses: map[int]string{1: "superseded", 2: "uninstalled", 3: "failed"}}}, v1alpha1.InstallFailedReason},
		"an install that is tried again":            {release.Outcome{Records: release.Records{Statuses: map[int]string{1: "failed", 2: "failed"}}}, v1alpha1.InstallFailedReason},
		"tests":                                     {release.Outcome{Deployed: release.Deployed{Revision: 2}, Test: release.Test{Result: "Failed"}}, v1alpha1.TestFailedReason},
		"the environment, after a test":             {release.Outcome{Environment: true, Test: release.Test{Result: "Failed"}}, v1alpha1.RetryingReason},
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

func TestHeldReportsTheRemediation(t *testing.T) {
	rolledBack := &release.Remediation{Kind: v1alpha1.RemediationRollback, To: 3}
	outcome := release.Outcome{Retry: release.Retry{Held: true, Attempts: 2}, Failed: errors.New("Deployment/web: no"), Remediation: rolledBack}
	const want = "failed 2 times and was rolled back to revision 3; held until chart or values change; to try again before, " +
		`an owner of the tenant with the role edit or admin may run: kubectl annotate app web -n kubeop-acme-shop --overwrite reconcile.fluxcd.io/forceAt="$(date +%s)"` + ": Deployment/web: no"
	if got := held(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web"}}, outcome).Error(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestAFixGetsTheFullTimeout writes the objects of an App that was unhealthy for an hour. Neither the quiet pass that did so nor the next one counts
// that hour against the fix.
func TestAFixGetsTheFullTimeout(t *testing.T) {
	now := time.Unix(100000, 0)
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "web"}}
	app.Status.UnhealthySince = &metav1.Time{Time: now.Add(-time.Hour)}
	r := newReconciler(t, app)
	if s := r.newScope(app); s.unhealthySince == nil {
		t.Fatal("nothing was written, and the time since which the App is unhealthy was reset")
	}
	r.recorder.Writes(app).Add(nil, nil, now)
	if s := r.newScope(app); s.unhealthySince != nil {
		t.Errorf("after the fix the App is unhealthy since %s, want none", s.unhealthySince)
	}
	app.Status.UnhealthySince = &metav1.Time{Time: now.Add(time.Second)}
	if s := r.newScope(app); s.unhealthySince == nil {
		t.Error("the unhealthy time after the write was lost")
	}
}

// TestFindingsOfAPassWithoutStatusAreKept keeps the objects of a revision in memory until the status has them.
func TestFindingsOfAPassWithoutStatusAreKept(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: "web", Name: "web"}, Spec: v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{}}}
	app.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Deployed: 1}
	entries := []v1alpha1.InventoryEntry{{ID: "ns_a__ConfigMap", Digest: "2"}}
	r := &releaser{}
	m := r.memory.Get(app)
	m.name, m.deployed.revision, m.entries = "web", 2, entries
	s := scopeOf(app, r)
	if s.recordedRevision().revision != 2 || len(s.recordedEntries()) != 1 {
		t.Errorf("the findings were dropped before the status had them: %+v", s.release.memory)
	}
	app.Status.Release.Deployed, app.Status.Inventory.Entries = 2, entries
	s = scopeOf(app, r)
	if m.deployed.revision != 0 || m.entries != nil || s.recordedRevision().revision != 2 {
		t.Errorf("the findings are kept although the status has them: %+v", m)
	}
}

// TestWrittenVersionsAreKnownAfterAPartialFailure: the next pass writes only the remaining objects, and does not take the old versions in a
// watch that lags for drift or bad health.
func TestWrittenVersionsAreKnownAfterAPartialFailure(t *testing.T) {
	failing, version := "broken", "5"
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "api", UID: "1", Generation: 1}}
	r := newReconciler(t, app)
	s := r.newScope(app)
	for _, name := range []string{"good", "broken"} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("ConfigMap")
		o.SetName(name)
		s.objects = append(s.objects, o)
	}
	s.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
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
	pass := func(want map[string]string) {
		t.Helper()
		if err := r.applier.apply(t.Context(), s); (err == nil) != (failing == "") {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.writes.Unsettled()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	pass(map[string]string{"_good__ConfigMap": "5"})
	failing, version = "", "6"
	pass(map[string]string{"_good__ConfigMap": "5", "_broken__ConfigMap": "6"})
}

// TestAnActThatDoesNotApplyIsSkipped: the last act that applies ends the Reconcile.
func TestAnActThatDoesNotApplyIsSkipped(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1", Finalizers: []string{v1alpha1.Finalizer}}}
	r := newReconciler(t, app)
	for name, fails := range map[string]bool{"all succeed": false, "one fails": true} {
		t.Run(name, func(t *testing.T) {
			s, did := r.newScope(app), ""
			do := func(what string) func(context.Context, *scope) error {
				return func(context.Context, *scope) error {
					did += what
					if fails {
						return errors.New("no")
					}
					return nil
				}
			}
			never := func(*v1alpha1.App) bool { return false }
			steps := s.applicable(
				act{v1alpha1.RenderedCondition, never, do("a")}, act{v1alpha1.AppliedCondition, always, do("b")}, act{v1alpha1.ReleasedCondition, never, do("c")},
			)
			_, _ = r.steps.Run(t.Context(), app, s, steps...)
			if did != "b" || s.outcome.done == fails {
				t.Errorf("did %s, done is %t", did, s.outcome.done)
			}
		})
	}
}

// TestAPassIsBrokenIfAStepFailed: not if it waits, if an earlier pass failed, or if only the health check fails.
func TestAPassIsBrokenIfAStepFailed(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		source, health error
		broken         bool
	}{
		"all is well":                      {nil, nil, false},
		"the source is broken":             {step.Stop("R", no), nil, true},
		"the source cannot be reached":     {step.Fail("R", no), nil, true},
		"what was delivered stays":         {step.Degrade(no), nil, true},
		"an answer is awaited":             {step.Unanswered(time.Second, no), nil, false},
		"the source waits for its turn":    {step.Wait("R", time.Second, "later"), nil, false},
		"the App is unhealthy":             {nil, no, false},
		"the source is skipped, unhealthy": {step.Skip(), no, false},
		"the source is broken, unhealthy":  {step.Degrade(no), no, true},
	} {
		app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1", Finalizers: []string{v1alpha1.Finalizer}}}
		conditions.MarkFalse(app, v1alpha1.SourceReadyCondition, "R", "no")
		r := newReconciler(t, app)
		s := r.newScope(app)
		does := func(err error) func(context.Context, *scope) error {
			return func(context.Context, *scope) error { return err }
		}
		_, _ = r.steps.Run(t.Context(), app, s, s.applicable(act{v1alpha1.SourceReadyCondition, always, does(c.source)}, act{v1alpha1.HealthyCondition, always, does(c.health)})...)
		if s.outcome.broken != c.broken {
			t.Errorf("%s: broken %t, want %t", name, s.outcome.broken, c.broken)
		}
	}
}

// schemeOf knows kubeop's kinds.
func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newReconciler returns a Reconciler over a fake API server that holds an App.
func newReconciler(t *testing.T, app *v1alpha1.App) *Reconciler {
	t.Helper()
	if app.Name == "" {
		app.Name = "web"
	}
	api := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(app.DeepCopy()).WithStatusSubresource(app).Build()
	clock := clocktesting.NewFakeClock(time.Unix(100000, 0))
	live := func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return nil, true, nil
	}
	return New(Options{
		Cluster: Cluster{Client: api, Direct: api, Clients: kube.NewClients(&rest.Config{}, api.Scheme(), api.RESTMapper(), kube.Deployers{})},
		Engines: Engines{Applier: &apply.Applier{Live: live}, Journal: journal.New(fake.NewClientBuilder().Build(), "kubeop-system", time.Now)},
		Tenants: Tenants{Rendered: &usage.Rendered{}, Refusals: &refusal.Index{}},
		Sources: &source.Fetcher{},
		Steps:   &step.Runner{Client: api, Events: events.NewFakeRecorder(10), Clock: clock},
		Clock:   clock,
	})
}

// scopeOf begins a Reconcile of a Helm App.
func scopeOf(app *v1alpha1.App, r *releaser) *scope {
	subjects := &subject.Subjects{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	retained := ""
	return &scope{
		Subject: subjects.New(app), writes: &record.Writes{}, release: r.facts(app), volumes: notice.Volumes{LastRetained: &retained},
		inventory: app.Status.Inventory, outcome: outcome{deliveries: (&history.Keeper{}).Begin(app)},
	}
}

func TestTheSummaryNamesOnlyObjectsThatAreLeftForOthersForTooLong(t *testing.T) {
	for want, ceded := range map[string]handover.Ceded{
		"Applied 1 object, healthy": {Count: 1},
		"Applied 1 object, healthy; no longer declared and left for others: ConfigMap/a": {Count: 1, Overdue: []string{"ConfigMap/a"}},
	} {
		s := &scope{Subject: (&subject.Subjects{}).New(&v1alpha1.App{})}
		s.inventory.Entries, s.outcome.ceded = make([]v1alpha1.InventoryEntry, 2), ceded
		if got := s.delivery(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTheStatusSaysWhereTheAppIsAndWhatRuns: kubectl get shows both.
func TestTheStatusSaysWhereTheAppIsAndWhatRuns(t *testing.T) {
	b := newFixture(t, webApp(func(app *v1alpha1.App) {
		app.Spec.Hosts = []v1alpha1.AppHost{{Host: "shop.example.com", Path: "/web"}}
	}), interceptor.Funcs{})
	b.s.found.Revision = "main@sha1:0123456789abcdef0123456789abcdef01234567"
	if b.s.Record(); b.app.Status.ShortRevision != "" || b.app.Status.URL != "shop.example.com/web" {
		t.Errorf("before the app is applied, the status has the revision %q and the URL %q", b.app.Status.ShortRevision, b.app.Status.URL)
	}
	b.s.outcome.applied = true
	want := few.ShortRevision(b.s.found.Revision)
	if b.s.Record(); b.app.Status.LastAppliedRevision != b.s.found.Revision || b.app.Status.ShortRevision != want || len(want) >= len(b.s.found.Revision) {
		t.Errorf("the status has the revision %q, in short %q", b.app.Status.LastAppliedRevision, b.app.Status.ShortRevision)
	}
}

// TestOnlyACompleteReconcileIsRecordedAsOne: what the status says of the folder, and of the delivery.
func TestOnlyACompleteReconcileIsRecordedAsOne(t *testing.T) {
	for name, tc := range map[string]struct {
		done, kept bool
		tree       string
		deliveries []string
	}{
		"complete":            {done: true, tree: "new", deliveries: []string{v1alpha1.DeliverySucceeded}},
		"in progress":         {tree: "old", deliveries: []string{v1alpha1.DeliveryProgressing}},
		"of an older version": {done: true, kept: true, tree: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, webApp(func(app *v1alpha1.App) {
				app.Annotations = map[string]string{v1alpha1.TreeAnnotation: "new"}
				app.Status.ObservedTree = "old"
			}), interceptor.Funcs{})
			b.s.found.Revision, b.s.found.Kept, b.s.outcome.done = "main@sha1:0123", tc.kept, tc.done
			b.s.Record()
			if got := b.s.App.Status.ObservedTree; got != tc.tree {
				t.Errorf("the status is about the folder %q, want %q", got, tc.tree)
			}
			var results []string
			for _, d := range b.s.App.Status.Deliveries {
				results = append(results, d.Result)
			}
			if diff := cmp.Diff(tc.deliveries, results); diff != "" {
				t.Errorf("deliveries (-want +got):\n%s", diff)
			}
		})
	}
}
