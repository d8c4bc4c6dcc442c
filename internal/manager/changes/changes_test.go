package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/eventtype"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

// stage is a cluster, and a store in which the webhook "all" records what is sent.
type stage struct {
	*testing.T
	cluster client.Client
	store   store.Store
	now     time.Time
	uid     int
	// seen is how many messages were looked at.
	seen int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "manager.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	st := &stage{T: t, store: s, cluster: fake.NewClientBuilder().WithScheme(scheme).Build(), now: time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)}
	st.hook("all", "")
	return st
}

// hook stores a webhook of the tenant that has a name now, or of the platform.
func (s *stage) hook(id, tenant string) {
	s.Helper()
	of := &v1alpha1.Tenant{}
	if err := s.cluster.Get(s.Context(), client.ObjectKey{Name: tenant}, of); tenant != "" && err != nil {
		s.Fatal(err)
	}
	if err := s.store.CreateWebhook(s.Context(), store.Webhook{ID: id, Tenant: tenant, TenantUID: string(of.UID), Types: []string{"*"}, Created: s.now, Secret: store.Sealed{Kind: store.KindWebhookSecret, ID: id, Data: []byte("x")}}, store.Event{}); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) create(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		s.uid++
		o.SetUID(types.UID(fmt.Sprint(s.uid)))
		o.SetGeneration(1)
		if err := s.cluster.Create(s.Context(), o); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *stage) update(o client.Object) {
	s.Helper()
	if err := s.cluster.Update(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) remove(o client.Object) {
	s.Helper()
	if err := s.cluster.Delete(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

// watcher is a manager that has just started.
func (s *stage) watcher() *Watcher {
	s.Helper()
	w := &Watcher{Reader: s.cluster, Store: s.store, Now: func() time.Time { return s.now }, changed: map[subject]bool{}}
	if err := w.load(s.Context()); err != nil {
		s.Fatal(err)
	}
	return w
}

// watch is what a manager does that runs for a minute: all objects are compared twice.
func (s *stage) watch() {
	s.Helper()
	w := s.watcher()
	for range 2 {
		if err := w.round(s.Context(), true); err != nil {
			s.Fatal(err)
		}
		s.now = s.now.Add(confirm)
	}
}

// sent returns what was sent, the oldest first.
func (s *stage) sent(webhook string) (all []string) {
	s.Helper()
	found, err := s.store.ListDeliveries(s.Context(), webhook, "", 0, 1000)
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range slices.Backward(found) {
		var body struct {
			Type string
			Data data
		}
		if err := json.Unmarshal(d.Body, &body); err != nil || body.Type != d.Type || body.Data.Tenant != d.Tenant {
			s.Errorf("%v: %+v", err, d)
		}
		text := d.Type + " " + d.Object
		for _, more := range []string{body.Data.Revision, body.Data.Reason, body.Data.Hostname} {
			if more != "" {
				text += " " + more
			}
		}
		all = append(all, text)
	}
	return all
}

func (s *stage) expect(what string, want ...string) {
	s.Helper()
	s.watch()
	s.watch() // Nothing is sent twice.
	got := s.sent("all")[s.seen:]
	if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
		s.Errorf("%s (-want +sent):\n%s", what, diff)
	}
	s.seen += len(got)
}

func app(revision, status, reason string) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web"}}
	judged(a, revision, status, reason)
	return a
}

// judged is what the operator says of an app.
func judged(a *v1alpha1.App, revision, status, reason string) {
	a.Status.LastAttemptedRevision = revision
	if status == "True" {
		a.Status.LastAppliedRevision = revision
	}
	a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionStatus(status), Reason: reason, ObservedGeneration: a.Generation, LastTransitionTime: metav1.Now()}}
}

func TestEachChangeIsReportedOnceAlsoIfNobodyWatched(t *testing.T) {
	s := newStage(t)
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	s.create(tenant)
	s.expect("what was there before anybody watched is not sent")
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}}
	claim := &v1alpha1.HostnameClaim{ObjectMeta: metav1.ObjectMeta{Name: "wildcard--of.example.com"}, Spec: v1alpha1.HostnameClaimSpec{Hostname: "*.example.com", Tenant: "acme", Project: "shop"}}
	web := app("main@sha1:1", "Unknown", "Progressing")
	s.create(claim, web, project)
	s.create(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-platform", Name: "edge"}}, &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ingress", Name: "nginx"}},
		&v1alpha1.HostnameClaim{ObjectMeta: metav1.ObjectMeta{Name: "edge.example.org"}, Spec: v1alpha1.HostnameClaimSpec{Hostname: "edge.example.org", Tenant: "platform", Project: "edge"}})
	s.expect("new objects; those of the platform are not sent", "project.created project/acme/shop", "claim.created claim/wildcard--of.example.com *.example.com")
	judged(web, "main@sha1:1", "True", "Succeeded")
	web.Status.Conditions[0].ObservedGeneration = 1
	s.update(web)
	tenant.Generation = 2
	s.update(tenant)
	s.expect("a spec and an app", "tenant.updated tenant/acme", "app.applied app/acme/shop/web main@sha1:1", "app.healthy app/acme/shop/web main@sha1:1")
	for _, status := range []string{"Unknown", "True"} { // It is looked at again.
		judged(web, "main@sha1:1", status, "Progressing")
		web.Status.Conditions[0].ObservedGeneration = 1
		s.update(web)
		s.expect("the same again")
	}
	judged(web, "main@sha1:2", "False", "HealthCheckFailed")
	web.Status.Conditions[0].ObservedGeneration = 1
	s.update(web)
	s.expect("a failure", "app.failed app/acme/shop/web main@sha1:2 HealthCheckFailed")
	web.Status.Conditions = append(web.Status.Conditions, metav1.Condition{Type: v1alpha1.RemediatedCondition, Status: "True", Reason: v1alpha1.RollbackSucceededReason, Message: "to revision 1", LastTransitionTime: metav1.NewTime(s.now)})
	s.update(web)
	s.expect("a rollback", "app.rolledback app/acme/shop/web main@sha1:2")
	judged(web, "main@sha1:3", "True", "Succeeded")
	web.Status.Conditions[0].ObservedGeneration = 1
	s.update(web)
	s.expect("a success", "app.applied app/acme/shop/web main@sha1:3", "app.healthy app/acme/shop/web main@sha1:3")
	s.remove(tenant)
	s.create(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	s.expect("another one of the same name", "tenant.deleted tenant/acme", "tenant.created tenant/acme")
	project.Generation = 2
	s.update(project)
	s.expect("the spec of a project", "project.updated project/acme/shop")
	s.remove(web)
	s.remove(claim)
	s.remove(project)
	s.expect("deletions", "project.deleted project/acme/shop", "app.deleted app/acme/shop/web", "claim.deleted claim/wildcard--of.example.com *.example.com")
	sent := map[string]bool{}
	for _, text := range s.sent("all") {
		kind, _, _ := strings.Cut(text, " ")
		sent[kind] = true
	}
	for _, kind := range eventtype.All {
		if !sent[kind] && !strings.HasPrefix(kind, "invoice.") && kind != eventtype.BudgetReached { // The package invoices sends those.
			t.Errorf("%s may be wanted, and is not sent", kind)
		}
	}
}

// TestWebhooksOfATenantThatIsGoneAreNotThoseOfTheNextOne: only administrators see them. One that the new tenant has by then is not.
func TestWebhooksOfATenantThatIsGoneAreNotThoseOfTheNextOne(t *testing.T) {
	s := newStage(t)
	first := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	s.create(first)
	s.watch()
	s.hook("first", "acme")
	s.remove(first)
	s.watch()
	if diff := cmp.Diff([]string{"tenant.deleted tenant/acme"}, s.sent("first")); diff != "" {
		t.Errorf("-want +sent:\n%s", diff)
	}
	// The clock of the API server is ahead of that of the manager.
	s.create(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", CreationTimestamp: metav1.NewTime(s.now.Add(2 * time.Second))}}, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}})
	s.hook("second", "acme")
	s.watch()
	if w, err := s.store.GetWebhook(t.Context(), "acme", "first"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v: %+v", err, w)
	}
	if w, err := s.store.GetWebhook(t.Context(), "", "first"); err != nil || !w.Disabled || w.Tenant != store.OfEarlier("acme") {
		t.Errorf("%v: %+v", err, w)
	}
	if diff := cmp.Diff([]string{"tenant.created tenant/acme", "project.created project/acme/shop"}, s.sent("second")); diff != "" {
		t.Errorf("-want +sent:\n%s", diff)
	}
}

// TestATenantLearnsNothingOfAnEarlierOneOfItsName, also if the tenant was made anew while nobody watched: neither the names of what the
// earlier one had, nor that what has the same name was deleted.
func TestATenantLearnsNothingOfAnEarlierOneOfItsName(t *testing.T) {
	s := newStage(t)
	project := func(name string) *v1alpha1.Project {
		return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: name}}
	}
	claim := &v1alpha1.HostnameClaim{ObjectMeta: metav1.ObjectMeta{Name: "old.example.com"}, Spec: v1alpha1.HostnameClaimSpec{Hostname: "old.example.com", Tenant: "acme", Project: "old"}}
	earlier := []client.Object{&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, project("old"), project("shop"), app("main@sha1:1", "Unknown", "Progressing"), claim}
	s.create(earlier...)
	s.watch()
	s.hook("first", "acme")
	for _, o := range earlier {
		s.remove(o)
	}
	s.create(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, project("shop"))
	s.hook("second", "acme")
	s.watch()
	s.remove(project("shop"))
	s.watch()
	for webhook, want := range map[string][]string{
		"first": nil, "second": {"tenant.created tenant/acme", "project.created project/acme/shop", "project.deleted project/acme/shop"},
		"all": {
			"tenant.deleted tenant/acme", "tenant.created tenant/acme", "project.deleted project/acme/shop", "project.created project/acme/shop",
			"project.deleted project/acme/old", "app.deleted app/acme/shop/web", "claim.deleted claim/old.example.com old.example.com", "project.deleted project/acme/shop",
		},
	} {
		if diff := cmp.Diff(want, s.sent(webhook)); diff != "" {
			t.Errorf("%s: -want +sent:\n%s", webhook, diff)
		}
	}
}

// TestWebhooksOfATenantThatStaysAwayAreRemoved after 30 days, and those of tenants that there are stay.
func TestWebhooksOfATenantThatStaysAwayAreRemoved(t *testing.T) {
	s := newStage(t)
	gone := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	s.create(gone, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "beta"}})
	s.watch()
	s.hook("gone", "acme")
	s.hook("stays", "beta")
	s.remove(gone)
	for _, c := range []struct {
		after time.Duration
		left  []string
	}{{0, []string{"all", "gone", "stays"}}, {store.KeepWebhooks - time.Hour, []string{"all", "gone", "stays"}}, {2 * time.Hour, []string{"all", "stays"}}} {
		s.now = s.now.Add(c.after)
		s.watch()
		all, err := s.store.ListWebhooks(t.Context(), "", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, w := range all {
			left = append(left, w.ID)
		}
		if diff := cmp.Diff(c.left, left); diff != "" {
			t.Errorf("-want +left:\n%s", diff)
		}
	}
}

// TestAManagerWhoseCachesAreBehindSendsNoOlderChange: neither what is older than what was observed, nor a deletion of what it has not seen yet.
func TestAManagerWhoseCachesAreBehindSendsNoOlderChange(t *testing.T) {
	s := newStage(t)
	s.watch()
	web := app("main@sha1:1", "True", "Succeeded")
	s.create(web)
	behind := web.DeepCopy()
	judged(web, "main@sha1:2", "True", "Succeeded")
	web.Status.Conditions[0].ObservedGeneration = 1
	s.update(web)
	s.watch()
	s.seen = len(s.sent("all"))
	w := s.watcher()
	w.Reader = fake.NewClientBuilder().WithScheme(s.cluster.Scheme()).Build()
	rounds := func(noticed bool) {
		t.Helper()
		if noticed {
			w.changed[subject{"app", "acme/shop/web"}] = true
		}
		if err := w.round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	rounds(false) // It has not seen the app.
	s.now = s.now.Add(confirm - time.Second)
	rounds(false)
	w.Reader = older{s.cluster, behind}
	rounds(true)
	if got := s.sent("all")[s.seen:]; len(got) > 0 {
		t.Errorf("it sent %q", got)
	}
	w.Reader = fake.NewClientBuilder().WithScheme(s.cluster.Scheme()).Build()
	rounds(true) // The deletion was noticed.
	if diff := cmp.Diff([]string{"app.deleted app/acme/shop/web"}, s.sent("all")[s.seen:]); diff != "" {
		t.Errorf("-want +sent:\n%s", diff)
	}
}

// TestAfterARestoreOfTheClusterChangesAreSent: objects have lower versions than were observed, and keep them.
func TestAfterARestoreOfTheClusterChangesAreSent(t *testing.T) {
	s := newStage(t)
	s.watch()
	web := app("main@sha1:1", "True", "Succeeded")
	s.create(web)
	restored := web.DeepCopy()
	judged(web, "main@sha1:2", "True", "Succeeded")
	web.Status.Conditions[0].ObservedGeneration = 1
	s.update(web)
	s.watch()
	s.seen = len(s.sent("all"))
	w := s.watcher()
	judged(restored, "main@sha1:1", "False", "HealthCheckFailed")
	restored.Status.Conditions[0].ObservedGeneration = 1
	w.Reader = older{s.cluster, restored}
	round := func() []string {
		t.Helper()
		if err := w.round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		return s.sent("all")[s.seen:]
	}
	early := round()
	s.now = s.now.Add(confirm - time.Second)
	if early = append(early, round()...); len(early) > 0 {
		t.Errorf("it sent while the caches may be behind: %q", early)
	}
	s.now = s.now.Add(time.Second)
	if got := round(); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "app.failed app/acme/shop/web") {
		t.Errorf("it sent %q", got)
	}
	if len(w.missing) > 0 {
		t.Errorf("still waited for are %v", w.missing)
	}
}

// older is a cache that has an app as it was.
type older struct {
	client.Reader
	app *v1alpha1.App
}

// Get implements client.Reader.
func (o older) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if a, is := object.(*v1alpha1.App); is {
		o.app.DeepCopyInto(a)
		return nil
	}
	return o.Reader.Get(ctx, key, object, options...)
}

// TestMessagesAreBounded: texts as long as the API allows, of characters that are longest when they are encoded.
func TestMessagesAreBounded(t *testing.T) {
	s := newStage(t)
	s.watch()
	text := strings.Repeat("\x01", 32<<10)
	web := app(text, "False", "Failed")
	web.Status.Conditions[0].Message, web.Status.Conditions[0].ObservedGeneration, web.Status.URL = text, 1, "https://example.com/"+strings.Repeat("\u2028", 4096)
	s.create(web)
	s.watch()
	if got := s.sent("all"); len(got) != 1 || !strings.HasPrefix(got[0], "app.failed app/acme/shop/web \x01") {
		t.Errorf("it sent %.200q", got)
	}
}

// TestOneOfTwoManagersSendsChanges: the other one reads anew what was sent.
func TestOneOfTwoManagersSendsChanges(t *testing.T) {
	s := newStage(t)
	s.watch()
	two := []*Watcher{s.watcher(), s.watcher()}
	s.create(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	if err := two[0].round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := two[1].round(t.Context(), true); !errors.Is(err, errConflict) {
		t.Errorf("the second one sends: %v", err)
	}
	if diff := cmp.Diff([]string{"tenant.created tenant/acme"}, s.sent("all")); diff != "" {
		t.Errorf("-want +sent:\n%s", diff)
	}
}

// TestAWatcherFollowsChanges, and sends nothing while the caches are behind.
func TestAWatcherFollowsChanges(t *testing.T) {
	s := newStage(t)
	s.watch()
	behind := make(chan error, 100)
	behind <- errors.New("behind")
	w := &Watcher{Reader: s.cluster, Store: s.store, Now: func() time.Time { return s.now }, Following: func(context.Context) error {
		select {
		case err := <-behind:
			return err
		default:
			return nil
		}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	s.create(tenant)
	wait := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if all := s.sent("all"); len(all) > 0 && all[len(all)-1] == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s is not sent", want)
			}
		}
	}
	wait("tenant.created tenant/acme")
	tenant.Generation = 2
	s.update(tenant)
	w.Changed(tenant)
	wait("tenant.updated tenant/acme")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.Changed(tenant) // Nobody watches any more.
}

func TestLongTextsAreCut(t *testing.T) {
	whole := strings.Repeat("é", maxText)
	for text, want := range map[string]string{"": "", whole: whole, whole + "b": strings.Repeat("é", maxText-1) + "…", "a\xffb": "a\uFFFDb"} {
		if got := short(text); got != want {
			t.Errorf("%.20q has %d characters: %.20q", text, utf8.RuneCountInString(got), got)
		}
	}
	longest := short(strings.Repeat("\x01", 2*maxText))
	if _, _, err := eventtype.Encode(eventtype.AppFailed, time.Now(), data{URL: longest, Revision: longest, Message: longest}); err != nil {
		t.Error(err)
	}
}
