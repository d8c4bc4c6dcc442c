package promotion

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/writeback"
	"github.com/kubeop/kubeop/controllers/writeback/update"
	gitreport "github.com/kubeop/kubeop/gitops/report"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

var (
	now        = time.Unix(1_000_000, 0)
	production = types.NamespacedName{Namespace: "kubeop-acme", Name: "production"}
)

// fixture is a Promoter over a cluster with the projects staging and production of the tenant acme. Its queue keeps what is asked for.
type fixture struct {
	*testing.T
	*Promoter
	client   client.Client
	clock    *clocktesting.FakeClock
	reported int
}

func newFixture(t *testing.T, spec v1alpha1.Promotion, apps ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: clocktesting.NewFakeClock(now)}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	project := func(name string) *v1alpha1.Project {
		return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: production.Namespace, Name: name, UID: types.UID(name)}}
	}
	to := project(production.Name)
	to.Spec.Promotion = &spec
	f.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(apps, project("staging"), to)...).Build()
	f.Promoter = &Promoter{
		Reader: f.client, Clock: f.clock, Writes: writeback.New(writeback.Options{Queue: gitreport.NewQueue(f.clock, nil)}),
		Again: func(types.NamespacedName) {}, Report: func(types.NamespacedName) { f.reported++ },
	}
	return f
}

func app(project, name, reference string) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProjectNamespace("acme", project), Name: name}}
	a.Spec = v1alpha1.AppSpec{Type: v1alpha1.AppImage, Image: &v1alpha1.ImageSource{Reference: reference}}
	a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	return a
}

// pass reconciles production, and returns the project as the next one sees it, with the condition that its status gets.
func (f *fixture) pass() (project *v1alpha1.Project, reason, message string, again time.Duration) {
	f.Helper()
	result, err := f.Reconcile(f.Context(), reconcile.Request{NamespacedName: production})
	if err != nil {
		f.Fatal(err)
	}
	project = &v1alpha1.Project{}
	if err := f.client.Get(f.Context(), production, project); err != nil {
		f.Fatal(err)
	}
	note, status := f.StatusOf(project)
	project.Status.PromotionStatus = status
	if (note.Message != "") != (note.Status == metav1.ConditionTrue) || note.Condition != v1alpha1.PromotionPendingCondition {
		f.Errorf("the condition is %+v", note)
	}
	return project, note.Reason, note.Message, result.RequeueAfter
}

func (f *fixture) wants(reason, message string) {
	f.Helper()
	if _, r, m, _ := f.pass(); r != reason || !strings.Contains(m, message) {
		f.Errorf("the condition is %s %q, want %s %q", r, m, reason, message)
	}
}

func TestAppsWithTheSameNameArePromoted(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging"},
		app("staging", "web", "web:1.1"), app("production", "web", "web:1.0"), app("staging", "same", "web:1.0"), app("production", "same", "web:1.0"),
		app("staging", "new", "web:1.1"), app("production", "old", "web:1.0"), app("dev", "old", "web:1.1"))
	f.wants(v1alpha1.ProgressingReason, "web: writing image.reference: web:1.0 → web:1.1")
	if keys := f.states[production].keys; !cmp.Equal(keys, map[string]bool{"promotion production web": true}) || f.reported != 1 {
		t.Errorf("asked for %v, reported %d times", keys, f.reported)
	}
	// What is equal meanwhile is asked for no more.
	web := app("production", "web", "web:1.1")
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
		t.Fatal(err)
	}
	web.Spec.Image.Reference = "web:1.1"
	if err := f.client.Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	f.wants("", "")
	if keys := f.states[production].keys; len(keys) != 0 {
		t.Errorf("asked for %v", keys)
	}
	project, _, _, _ := f.pass()
	project.Spec.Promotion = nil
	if err := f.client.Update(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	if project, _, _, _ = f.pass(); len(f.states) != 0 || len(project.Status.Promoted) != 0 {
		t.Errorf("without a promotion: %v, %v", f.states, project.Status.Promoted)
	}
}

func TestAnAppHasToBeHealthyLongEnough(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging", HealthyFor: &metav1.Duration{Duration: 2 * time.Hour}}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.0"))
	if _, reason, message, again := f.pass(); reason != v1alpha1.ProgressingReason || message != "web: image.reference: web:1.0 → web:1.1: staging/web is healthy since 12:46:40 UTC, and has to be for 2h0m0s" || again != time.Hour {
		t.Errorf("%s, %s, again after %s", reason, message, again)
	}
	if keys := f.states[production].keys; len(keys) != 0 {
		t.Errorf("asked for %v", keys)
	}
	f.clock.Step(time.Hour)
	f.wants(v1alpha1.ProgressingReason, "web: writing image.reference: web:1.0 → web:1.1")
}

// TestAVersionIsPromotedOnlyOnce: if the file has another version afterwards, a person wrote it.
func TestAVersionIsPromotedOnlyOnce(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging", Approval: v1alpha1.ApprovalAnnotation}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.0"))
	project, reason, message, _ := f.pass()
	_, token, _ := strings.Cut(message, "confirm-promotion=")
	held := v1alpha1.HeldPromotion{App: "web", Token: token, Changes: "image.reference: web:1.0 → web:1.1"}
	if reason != v1alpha1.PromotionHeldReason || len(token) != 8 || !slices.Equal(project.Status.HeldPromotions, []v1alpha1.HeldPromotion{held}) {
		t.Fatalf("%s, %s, %+v", reason, message, project.Status.HeldPromotions)
	}
	for _, pullRequest := range []string{"", "https://example.com/7"} {
		want := ""
		if pullRequest != "" {
			want = "web: waits for " + pullRequest
		}
		project.Spec.Promotion.Write = map[bool]v1alpha1.WriteMode{true: v1alpha1.WritePullRequest, false: v1alpha1.WriteCommit}[pullRequest != ""]
		project.Status.Promoted = []v1alpha1.Promoted{{App: "web", Version: token, Commit: "c0ffee", PullRequest: pullRequest}}
		if err := f.client.Update(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		delete(f.states, production) // A restart.
		got, _, message, _ := f.pass()
		if message != want || !slices.Equal(got.Status.Promoted, project.Status.Promoted) {
			t.Errorf("the condition says %q, want %q; promoted is %+v", message, want, got.Status.Promoted)
		}
	}
	// Another way to write counts as new.
	project.Spec.Promotion.Write = v1alpha1.WriteCommit
	if err := f.client.Update(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	f.wants(v1alpha1.PromotionHeldReason, "confirm-promotion="+token)
}

// wrote is a writer that has written the update of one app, which the status does not know yet.
type wrote struct{ update.Writer }

func (w wrote) Last(key string) (update.Update, *update.Written) {
	if key != keyOf("production", "web") {
		return update.Update{}, nil
	}
	return update.Update{Version: "1a2b3c4d", What: "image.reference: web:1.0 → web:1.1"}, &update.Written{Commit: "c0ffee"}
}

// TestACommitThatArrivesBeforeThePassIsRecorded: otherwise it would be promoted again after a person has taken it back.
func TestACommitThatArrivesBeforeThePassIsRecorded(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging"}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.1"), app("staging", "api", "a"), app("production", "api", "a"))
	f.Writes = wrote{f.Writes}
	project, _, _, _ := f.pass()
	want := []v1alpha1.Promoted{{App: "web", Version: "1a2b3c4d", Changes: "image.reference: web:1.0 → web:1.1", Commit: "c0ffee"}}
	if !slices.Equal(project.Status.Promoted, want) {
		t.Errorf("promoted is %+v, want %+v", project.Status.Promoted, want)
	}
}

// writer writes what it is asked for, once it may.
type writer struct {
	writes  bool
	note    step.Note
	asked   []update.Update
	dropped []string
}

func (w *writer) Ask(u update.Update) *update.Written {
	w.asked = append(w.asked, u)
	if !w.writes {
		return nil
	}
	return &update.Written{Commit: "c0ffee", PullRequest: "https://example.com/7"}
}

func (w *writer) Note(string, string) step.Note { return w.note }

func (w *writer) Last(string) (update.Update, *update.Written) { return update.Update{}, nil }

func (w *writer) Drop(key string) { w.dropped = append(w.dropped, key) }

// TestAWrittenPromotionIsRecordedOnce, also while the status does not have it yet, and what is not asked for any more is dropped.
func TestAWrittenPromotionIsRecordedOnce(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging", Write: v1alpha1.WritePullRequest}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.0"))
	w := &writer{note: step.Note{Reason: v1alpha1.WriteFailedReason, Message: "refused by a hook"}}
	again := 0
	f.Writes, f.Again = w, func(key types.NamespacedName) {
		if key == production {
			again++
		}
	}
	f.wants(v1alpha1.WriteFailedReason, "web: refused by a hook")
	u := w.asked[0]
	if u.Title != "Promote web from staging to production" || u.Mode != v1alpha1.WritePullRequest || u.Branch != "promote-production-web-"+u.Version || u.App.Namespace != "kubeop-acme-production" ||
		u.Body != "It is healthy in staging.\n\nimage.reference: web:1.0 → web:1.1" || len(u.Changes) != 1 {
		t.Errorf("asked for %+v", u)
	}
	if u.Done(); again != 1 {
		t.Error("the end of an attempt does not look at the project again")
	}
	w.writes = true
	want := []v1alpha1.Promoted{{App: "web", Version: u.Version, Changes: "image.reference: web:1.0 → web:1.1", Commit: "c0ffee", PullRequest: "https://example.com/7"}}
	for range 3 { // The first pass records it, and the others see what the first one kept.
		if project, _, _, _ := f.pass(); !slices.Equal(project.Status.Promoted, want) {
			t.Errorf("promoted is %+v, want %+v", project.Status.Promoted, want)
		}
	}
	if len(w.asked) != 2 {
		t.Errorf("asked for it %d times", len(w.asked))
	}
	if !slices.Equal(w.dropped, []string{u.Key}) {
		t.Errorf("dropped are %v", w.dropped)
	}
	w.dropped = nil
	f.states[production].keys[u.Key] = true
	if err := f.client.Delete(t.Context(), &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: production.Namespace, Name: production.Name}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: production}); err != nil || len(f.states) != 0 || !slices.Equal(w.dropped, []string{u.Key}) {
		t.Errorf("of a deleted project stays %v, dropped are %v: %v", f.states, w.dropped, err)
	}
}

// TestAStatusIsWrittenOnlyIfItChanges.
func TestAStatusIsWrittenOnlyIfItChanges(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging"}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.1"))
	if f.pass(); f.reported != 0 {
		t.Errorf("nothing to promote is reported %d times", f.reported)
	}
	f = newFixture(t, v1alpha1.Promotion{From: "stage"})
	project, reason, message, _ := f.pass()
	for name, c := range map[string]struct {
		condition metav1.Condition
		promoted  []v1alpha1.Promoted
		want      int
	}{
		"the same":        {condition: metav1.Condition{Reason: reason, Message: message}},
		"another message": {condition: metav1.Condition{Reason: reason, Message: "b"}, want: 1},
		"another reason":  {condition: metav1.Condition{Reason: "Other", Message: message}, want: 1},
		"more promoted":   {condition: metav1.Condition{Reason: reason, Message: message}, promoted: []v1alpha1.Promoted{{App: "web"}}, want: 1},
	} {
		project.Status.Conditions, project.Status.Promoted = []metav1.Condition{c.condition}, c.promoted
		project.Status.Conditions[0].Type, project.Status.Conditions[0].Status = v1alpha1.PromotionPendingCondition, metav1.ConditionTrue
		if err := f.client.Update(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		f.reported = 0
		if f.pass(); f.reported != c.want {
			t.Errorf("%s: reported %d times, want %d", name, f.reported, c.want)
		}
	}
}

// TestNothingIsPromotedWhileTheCacheFails.
func TestNothingIsPromotedWhileTheCacheFails(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging"}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.0"))
	w := &writer{}
	f.Writes = w
	if n := steptest.EachRequest(t, func(failing *steptest.Failing) error {
		f.Reader = failing.Client(f.client.(client.WithWatch))
		_, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: production})
		return err
	}); n != 5 || len(w.asked) != 1 {
		t.Errorf("%d requests, asked for %d updates", n, len(w.asked))
	}
}

// TestNothingIsAskedForThatMayNotBePromoted: what is refused, held or deleted.
func TestNothingIsAskedForThatMayNotBePromoted(t *testing.T) {
	leaving := app("production", "web", "web:1.0")
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: now}, []string{v1alpha1.Finalizer}
	policy := app("production", "web", "web:1.0")
	policy.Spec.Image.Policy = &v1alpha1.ImagePolicy{}
	for name, c := range map[string]struct {
		to       *v1alpha1.App
		approval v1alpha1.Approval
		asked    int
	}{
		"all is well": {to: app("production", "web", "web:1.0"), asked: 1}, "it is being deleted": {to: leaving}, "it is refused": {to: policy},
		"it is held": {to: app("production", "web", "web:1.0"), approval: v1alpha1.ApprovalAnnotation},
	} {
		f, w := newFixture(t, v1alpha1.Promotion{From: "staging", Approval: c.approval}, app("staging", "web", "web:1.1"), c.to), &writer{}
		f.Writes = w
		if f.pass(); len(w.asked) != c.asked {
			t.Errorf("%s: asked for %d updates, want %d", name, len(w.asked), c.asked)
		}
	}
}

// TestAConfirmedVersionIsPromoted, and also one after another that was promoted before.
func TestAConfirmedVersionIsPromoted(t *testing.T) {
	f, w := newFixture(t, v1alpha1.Promotion{From: "staging", Approval: v1alpha1.ApprovalAnnotation}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.0")), &writer{}
	f.Writes = w
	project, _, _, _ := f.pass()
	project.Annotations = map[string]string{v1alpha1.ConfirmPromotionAnnotation: project.Status.HeldPromotions[0].Token}
	project.Status.Promoted = []v1alpha1.Promoted{{App: "web", Version: "another", Commit: "c0ffee"}}
	if err := f.client.Update(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	delete(f.states, production)
	if f.pass(); len(w.asked) != 1 || w.asked[0].Version != project.Status.HeldPromotions[0].Token {
		t.Errorf("asked for %+v", w.asked)
	}
}

// TestTheFirstOfSeveralAppsToBecomeDueSetsTheNextLook, whatever their order.
func TestTheFirstOfSeveralAppsToBecomeDueSetsTheNextLook(t *testing.T) {
	since := func(name string, ago time.Duration) *v1alpha1.App {
		a := app("staging", name, "web:1.1")
		a.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-ago))
		return a
	}
	suspended := since("d", time.Minute)
	suspended.Spec.Suspend = true
	f := newFixture(t, v1alpha1.Promotion{From: "staging"}, since("a", 2*time.Minute), since("b", 7*time.Minute), since("c", time.Minute), suspended,
		app("production", "a", "web:1.0"), app("production", "b", "web:1.0"), app("production", "c", "web:1.0"), app("production", "d", "web:1.0"))
	if _, _, _, again := f.pass(); again != 3*time.Minute {
		t.Errorf("it looks again after %s, want 3m", again)
	}
}

func TestPromotionsOfSeveralAppsAreAllRecorded(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging"}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.0"), app("staging", "api", "api:1.1"), app("production", "api", "api:1.0"))
	f.Writes = &writer{writes: true}
	var names []string
	project, _, _, _ := f.pass()
	for _, promoted := range project.Status.Promoted {
		names = append(names, promoted.App)
	}
	if !slices.Equal(names, []string{"api", "web"}) {
		t.Errorf("promoted are %q", names)
	}
}

// TestAProjectThatIsBeingDeletedPromotesNothing, and one without a promotion has none in its status.
func TestAProjectThatIsBeingDeletedPromotesNothing(t *testing.T) {
	f, w := newFixture(t, v1alpha1.Promotion{From: "staging"}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.0")), &writer{}
	f.Writes = w
	project, _, _, _ := f.pass()
	project.Finalizers = []string{v1alpha1.Finalizer}
	if err := f.client.Update(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Delete(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	if f.pass(); len(f.states) != 0 || len(w.dropped) != 1 {
		t.Errorf("it keeps %v, dropped are %v", f.states, w.dropped)
	}
	project.Spec.Promotion, project.Status.Promoted = nil, []v1alpha1.Promoted{{App: "web"}}
	if note, status := f.StatusOf(project); note.Status != "" || len(status.Promoted) != 0 {
		t.Errorf("without a promotion: %+v, %+v", note, status)
	}
}

func TestAProjectPromotesFromAnotherOne(t *testing.T) {
	newFixture(t, v1alpha1.Promotion{From: "stage"}).wants(v1alpha1.PromotionRefusedReason, "the tenant has no project stage: name another one as spec.promotion.from in project.yaml")
	newFixture(t, v1alpha1.Promotion{From: "production"}).wants(v1alpha1.PromotionRefusedReason, "spec.promotion.from is this project itself: name another one in project.yaml")
	helm := app("staging", "web", "")
	helm.Spec = v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Chart: "web"}}
	newFixture(t, v1alpha1.Promotion{From: "staging"}, helm, app("production", "web", "web:1")).wants(v1alpha1.PromotionRefusedReason, "web: its type is Image, and that of staging/web is Helm")
}

// TestARestartChangesNoStatus until the first pass.
func TestARestartChangesNoStatus(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging"})
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: production.Namespace, Name: production.Name, UID: "production"}}
	project.Spec.Promotion = &v1alpha1.Promotion{From: "staging"}
	project.Status.Promoted = []v1alpha1.Promoted{{App: "web"}}
	note, status := f.StatusOf(project)
	if !note.Stays || len(status.Promoted) != 1 {
		t.Errorf("%+v, %v", note, status)
	}
	f.pass()
	if note, status := f.StatusOf(project); note.Status != "" || note.Stays || len(status.Promoted) != 0 {
		t.Errorf("after the first pass: %+v, %v", note, status)
	}
	project.UID = "another"
	if note, _ := f.StatusOf(project); !note.Stays {
		t.Errorf("another project of the name: %+v", note)
	}
}

func TestTheMessageBeginsWithTheTasksOfPeople(t *testing.T) {
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: production.Namespace, Name: production.Name}}
	s := &state{}
	s.add(v1alpha1.ProgressingReason, "a")
	s.add(v1alpha1.PullRequestOpenReason, "b")
	for i := range 40 {
		s.hold(v1alpha1.HeldPromotion{App: fmt.Sprintf("app%d", i), Token: fmt.Sprintf("%08x", i), Changes: "c"})
	}
	note := s.note(project)
	_, tokens, _ := strings.Cut(note.Message, v1alpha1.ConfirmPromotionAnnotation+"=")
	if note.Reason != v1alpha1.PromotionHeldReason || note.Message != "app0: c; app1: c; app2: c; app3: c; app4: c; and 37 more; to confirm, an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl annotate project production -n kubeop-acme --overwrite paas.kubeop.io/confirm-promotion=00000000,00000001,00000002,00000003,00000004,00000005,00000006,00000007,00000008,00000009,0000000a,0000000b,0000000c,0000000d,0000000e,0000000f,00000010,00000011,00000012,00000013,00000014,00000015,00000016,00000017,00000018,00000019,0000001a,0000001b" || len(tokens) > 253 || strings.Count(tokens, ",") != 27 || note.Event != "" {
		t.Errorf("%+v", note)
	}
	s.add(v1alpha1.WriteFailedReason, "d")
	if note := s.note(project); note.Reason != v1alpha1.WriteFailedReason || note.Event != corev1.EventTypeWarning || note.Message != "d; app0: c; app1: c; app2: c; app3: c; and 38 more; to confirm, an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl annotate project production -n kubeop-acme --overwrite paas.kubeop.io/confirm-promotion=00000000,00000001,00000002,00000003,00000004,00000005,00000006,00000007,00000008,00000009,0000000a,0000000b,0000000c,0000000d,0000000e,0000000f,00000010,00000011,00000012,00000013,00000014,00000015,00000016,00000017,00000018,00000019,0000001a,0000001b" {
		t.Errorf("%+v", note)
	}
}

func TestAnAppConcernsTheProjectsThatPromoteIt(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging"})
	for namespace, want := range map[string]int{"kubeop-acme-staging": 1, "kubeop-acme-production": 1, "kubeop-acme-dev": 0, "kubeop-other-staging": 0} {
		if got := f.concerned(t.Context(), &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}); len(got) != want || want > 0 && got[0] != production {
			t.Errorf("an app in %s concerns %v", namespace, got)
		}
	}
}

func TestAConfirmationNamesTokens(t *testing.T) {
	project := &v1alpha1.Project{}
	for annotation, want := range map[string]bool{"": false, "a1": true, "b2,a1": true, "b2, a1": true, "a1b2": false, "b2": false} {
		project.Annotations = map[string]string{v1alpha1.ConfirmPromotionAnnotation: annotation}
		if got := slices.Contains(project.ConfirmedPromotions(), "a1"); got != want {
			t.Errorf("%q confirms a1: %t", annotation, got)
		}
	}
}

// TestNothingOfAFrozenTenantIsPromoted, until administrators end that.
func TestNothingOfAFrozenTenantIsPromoted(t *testing.T) {
	f := newFixture(t, v1alpha1.Promotion{From: "staging"}, app("staging", "web", "web:1.1"), app("production", "web", "web:1.0"),
		&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Frozen: true}})
	_, reason, message, again := f.pass()
	if reason != v1alpha1.ProgressingReason || message != "web: image.reference: web:1.0 → web:1.1: the tenant is frozen until an administrator of the cluster removes spec.frozen from tenant.yaml of the platform repository in Git" || again != thawLook {
		t.Errorf("%s, %s, again after %s", reason, message, again)
	}
	if keys := f.states[production].keys; len(keys) != 0 {
		t.Errorf("asked for %v", keys)
	}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	if err := f.client.Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"frozen":null}}`))); err != nil {
		t.Fatal(err)
	}
	f.wants(v1alpha1.ProgressingReason, "web: writing image.reference: web:1.0 → web:1.1")
}
