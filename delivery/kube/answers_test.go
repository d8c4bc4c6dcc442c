package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The tests of this file need no API server: its answers are given.

var widgetResource = schema.GroupResource{Resource: "widgets"}

func TestOnlyPassingFailuresOfAListAreRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no connection":          {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		"the end of a request":   {context.Canceled, true},
		"a timeout":              {context.DeadlineExceeded, true},
		"too many requests":      {apierrors.NewTooManyRequests("x", 1), true},
		"an unavailable server":  {apierrors.NewServiceUnavailable("x"), true},
		"a timeout of a server":  {apierrors.NewServerTimeout(widgetResource, "list", 1), true},
		"a timeout of a gateway": {apierrors.NewTimeoutError("x", 1), true},
		"an old version":         {apierrors.NewResourceExpired("x"), true},
		"a version that is gone": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonGone}}, true},
		"a refusal":              {apierrors.NewForbidden(widgetResource, "", errors.New("x")), false},
		"no login":               {apierrors.NewUnauthorized("x"), false},
		"a broken webhook":       {apierrors.NewInternalError(errors.New("x")), false},
		"no such kind":           {apierrors.NewNotFound(widgetResource, ""), false},
		"another error":          {errors.New("x"), false},
	} {
		if got := passes(fmt.Errorf("listing: %w", tc.err)); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if got, want := refused(tc.err), name == "a refusal" || name == "no login"; got != want {
			t.Errorf("%s is taken for a refusal: %v", name, got)
		}
	}
}

// woken counts the calls of a function that is called on another goroutine.
type woken struct{ times atomic.Int32 }

func (w *woken) wake() { w.times.Add(1) }

func (w *woken) want(t *testing.T, what string, times int32) {
	t.Helper()
	for begun := time.Now(); w.times.Load() < times && time.Since(begun) < 10*time.Second; time.Sleep(time.Millisecond) {
	}
	time.Sleep(2 * time.Millisecond)
	if got := w.times.Load(); got != times {
		t.Errorf("%s: woken %d times, want %d", what, got, times)
	}
}

func TestAFirstListWakesAllThatWaitForIt(t *testing.T) {
	since := time.Unix(1000, 0)
	l := newFirstList("ConfigMap", since)
	first := l.unready()
	if first.What != "ConfigMap" || !first.Since.Equal(since) || first.Unlisted() || first.Error() != "watching ConfigMap: the first list has not arrived yet" || errors.Unwrap(first) != nil {
		t.Errorf("got %+v: %v", first, first)
	}
	var dropped, a, b woken
	first.Wake("a", dropped.wake)
	first.Wake("a", a.wake) // Of the same key the last counts.
	first.Wake("b", b.wake)
	refusal := errors.New("refused")
	l.fail(refusal)
	dropped.want(t, "replaced", 0)
	a.want(t, "at the first failure", 1)
	b.want(t, "at the first failure", 1)
	failed := l.unready()
	if !errors.Is(failed, refusal) || !failed.Unlisted() || failed.Error() != "watching ConfigMap: the API server does not list it: refused" {
		t.Errorf("got %v", failed)
	}
	first.Wake("a", a.wake)
	a.want(t, "at once, by an error that it does not know", 2)
	failed.Wake("a", a.wake)
	l.fail(errors.New("refused again"))
	a.want(t, "at another failure", 2)
	if got := l.unready(); got.Err == nil || got.Err.Error() != "refused again" {
		t.Errorf("the last failure is %v", got.Err)
	}
	l.end()
	a.want(t, "when the list is there", 3)
	b.want(t, "when the list is there", 1)
	failed.Wake("b", b.wake)
	b.want(t, "at once, after the list", 2)
	l.fail(refusal)
	if !l.isOver() || l.unready().Err != nil {
		t.Error("a list that is there fails")
	}
	(&Unready{}).Wake("a", func() { t.Error("woken by no list") })
}

func TestAwaitEndsWithItsContextAndLeavesNothing(t *testing.T) {
	l := newFirstList("ConfigMap", time.Time{})
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	err := Await(ctx, func() error { looks++; cancel(); return fmt.Errorf("looking: %w", l.unready()) })
	if !errors.Is(err, context.Canceled) || !errors.As(err, new(*Unready)) || looks != 1 || len(l.waiting) != 0 {
		t.Errorf("after %d looks: %v; %d wait", looks, err, len(l.waiting))
	}
	looks = 0
	if err := Await(t.Context(), func() error {
		if looks++; looks == 1 {
			defer l.end()
			return l.unready()
		}
		return nil
	}); err != nil || looks != 2 {
		t.Errorf("after %d looks: %v", looks, err)
	}
	failed, other := newFirstList("Secret", time.Time{}), errors.New("other")
	failed.fail(other)
	for _, want := range []error{other, failed.unready()} {
		if err := Await(t.Context(), func() error { return want }); !errors.Is(err, other) {
			t.Errorf("got %v", err)
		}
	}
}

// TestAFirstListFailsAtItsSecondRefusal, or after five seconds of failures that may pass.
func TestAFirstListFailsAtItsSecondRefusal(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	refusal, away := apierrors.NewForbidden(widgetResource, "", errors.New("x")), apierrors.NewServiceUnavailable("away")
	for name, tc := range map[string]struct {
		answers []error
		after   time.Duration
		failed  bool
	}{
		"one refusal":                {[]error{refusal}, 0, false},
		"two refusals":               {[]error{refusal, refusal}, 0, true},
		"an answer":                  {[]error{nil, nil, nil}, time.Hour, false},
		"a refusal and an answer":    {[]error{refusal, nil}, time.Hour, false},
		"away for five seconds":      {[]error{away, away, away}, passesWithin, false},
		"away for longer":            {[]error{away}, passesWithin + 1, true},
		"a refusal while it is away": {[]error{away, refusal, away}, passesWithin, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
			watched := &kindWatch{firstList: newFirstList("ConfigMap", clock.Now()), gone: make(chan struct{})}
			w := &Watch{clock: clock, kinds: map[schema.GroupVersionKind]*kindWatch{kind: watched}}
			clock.Step(tc.after)
			for _, err := range tc.answers {
				w.listAnswered(kind, err)
			}
			if failed := watched.unready().Err != nil; failed != tc.failed {
				t.Errorf("failed: %v, want %v", failed, tc.failed)
			}
			if !w.awaitsList(kind) || w.awaitsList(schema.GroupVersionKind{Kind: "Other"}) {
				t.Error("the list is there, or that of a kind that nobody watches is awaited")
			}
			w.listAnswered(schema.GroupVersionKind{Kind: "Other"}, refusal)
			w.giveUp(kind, &kindWatch{})
			if w.kinds[kind] != watched {
				t.Error("the watch that replaced another was given up")
			}
			w.giveUp(kind, watched)
			if w.awaitsList(kind) || !watched.isOver() || w.kinds[kind] != nil {
				t.Error("a watch that was given up awaits its list")
			}
			select {
			case <-watched.gone:
			default:
				t.Error("nobody is notified of the end of the watch")
			}
		})
	}
}

// TestTheAnswersOfListsAreObserved: those of plain lists and of watches, and the cause of a watch that ends with an error.
func TestTheAnswersOfListsAreObserved(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	refusal, cut := errors.New("refused"), errors.New("cut")
	yes, no := true, false
	for name, tc := range map[string]struct {
		initial  *bool
		awaits   bool
		watchErr error
		want     []error
	}{
		"the first list as a watch": {&yes, true, nil, []error{refusal}},
		"a later watch":             {nil, true, nil, nil},
		"one without the objects":   {&no, true, nil, nil},
		"when the list is there":    {&yes, false, nil, nil},
		"a watch that is refused":   {&yes, true, cut, []error{cut}},
	} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan error, 10)
			l := NewLists(clocktesting.NewFakeClock(time.Time{}))
			l.awaitsList = func(of schema.GroupVersionKind) bool { return of == kind && tc.awaits }
			l.listAnswered = func(_ schema.GroupVersionKind, err error) { answered <- err }
			events := watch.NewFake()
			observed := l.observing(&toolscache.ListWatch{
				ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
					if o.Limit != 1 {
						t.Errorf("it lists %+v", o)
					}
					return nil, refusal
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, tc.watchErr },
			}, kind)
			got, err := observed.WatchFuncWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: tc.initial})
			if !errors.Is(err, tc.watchErr) {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				go events.Error(&metav1.Status{})
				if e := <-got.ResultChan(); e.Type != watch.Error {
					t.Errorf("the event is %v", e)
				}
			}
			for _, want := range tc.want {
				if err := <-answered; !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			time.Sleep(2 * time.Millisecond)
			if len(answered) != 0 {
				t.Errorf("%d more answers", len(answered))
			}
			if _, err := observed.ListWithContextFunc(t.Context(), metav1.ListOptions{Limit: 1}); !errors.Is(err, refusal) || !errors.Is(<-answered, refusal) {
				t.Errorf("a plain list: %v", err)
			}
		})
	}
}

// TestLostRightsAreLogged once for each time that they are lost.
func TestLostRightsAreLogged(t *testing.T) {
	var log text
	refusal, cut := apierrors.NewForbidden(widgetResource, "", errors.New("no rights")), errors.New("cut")
	w := &localWatch{rows: newRows(func(string, map[string]string) {}), firstList: newFirstList("x", time.Time{}), log: log.logger()}
	for range refusals - 1 {
		w.note(refusal)
	}
	if w.unready().Err != nil {
		t.Error("it fails too soon")
	}
	w.note(nil)
	if w.note(cut); !errors.Is(w.unready(), cut) {
		t.Errorf("after %d failures: %v", refusals, w.unready())
	}
	if err := w.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	want := func(what string, lines int) {
		t.Helper()
		if got := strings.Count(log.String(), "The deployer may not watch any more"); got != lines {
			t.Errorf("%s: logged %d times, want %d", what, got, lines)
		}
	}
	w.note(cut)
	want("an interruption", 0)
	w.note(refusal)
	w.note(refusal)
	w.note(cut)
	w.note(refusal)
	want("a refusal that stays", 1)
	w.note(nil)
	w.note(refusal)
	want("another one", 2)
}

func TestADeployerIsImpersonated(t *testing.T) {
	var got *http.Request
	d := deployer{"system:serviceaccount:team:kubeop-deployer", roundTrip(func(r *http.Request) (*http.Response, error) { got = r; return &http.Response{}, nil })}
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example.com/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.RoundTrip(asked); err != nil {
		t.Fatal(err)
	}
	if got.Header.Get("Impersonate-User") != d.user || got.Header.Get("Accept-Encoding") != "identity" || len(asked.Header) != 0 {
		t.Errorf("sent with %v, from a request with %v", got.Header, asked.Header)
	}
}

func TestALocalWatchCoversServedKindsOnly(t *testing.T) {
	served := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "source.toolkit.fluxcd.io/v1", APIResources: []metav1.APIResource{{Name: "gitrepositories", SingularName: "gitrepository", Kind: "GitRepository", Namespaced: true}}},
	}}}
	with, without := &LocalWatch{Mapper: NewMapper(memory.NewMemCacheClient(served))}, &LocalWatch{}
	for kind, want := range map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"} {
		for _, w := range []*LocalWatch{with, without} {
			if got, err := w.resource(kind); err != nil || got != (schema.GroupVersionResource{Version: "v1", Resource: want}) {
				t.Errorf("%s: %v, %v", kind, got, err)
			}
		}
	}
	if got, err := with.resource("GitRepository"); err != nil || got != (schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}) {
		t.Errorf("a source of Flux: %v, %v", got, err)
	}
	if _, err := with.resource("Bucket"); !meta.IsNoMatchError(err) {
		t.Errorf("a source that is not served: %v", err)
	}
	if _, err := without.resource("GitRepository"); err == nil || !strings.Contains(err.Error(), "objects of the kind GitRepository are not watched here") {
		t.Errorf("without sources: %v", err)
	}
	if _, err := without.started(place{"team", "Secret"}); err == nil || err.Error() != "the operator is about to end" {
		t.Errorf("a watch that has ended: %v", err)
	}
}

func TestClientsActAsTheDeployerOfANamespace(t *testing.T) {
	mapper := NewMapper(memory.NewMemCacheClient(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "services", SingularName: "service", Kind: "Service", Namespaced: true}}},
	}}}))
	own := &rest.Config{Host: "https://api.example.com", BearerToken: "operator"}
	c := NewClients(own, runtime.NewScheme(), mapper, Deployers{PlatformApps: PlatformAppsNamespaced, Operator: "kubeop-system"})
	got := c.Config("kubeop-acme-shop")
	if got.Impersonate.UserName != "system:serviceaccount:kubeop-acme-shop:kubeop-deployer" || got.Host != own.Host || got.BearerToken != own.BearerToken || own.Impersonate.UserName != "" {
		t.Errorf("the connection is %v; the operator acts as %q", got, own.Impersonate.UserName)
	}
	shop, err := c.As("kubeop-acme-shop")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.As("kubeop-acme-shop"); err != nil || again != shop {
		t.Errorf("the client is made again: %v", err)
	}
	if other, err := c.As("kubeop-acme-blog"); err != nil || other == shop {
		t.Errorf("another namespace has the same client: %v", err)
	}
	c.Forget("kubeop-acme-shop")
	if again, err := c.As("kubeop-acme-shop"); err != nil || again == shop || len(c.made) != 2 {
		t.Errorf("a client that was forgotten is kept: %v; %d are kept", err, len(c.made))
	}
	if _, err := c.Namespaced(schema.GroupVersionKind{Version: "v1", Kind: "Widget"}); !meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "looking whether Widget is namespaced: ") {
		t.Errorf("got %v", err)
	}
	unkept := &UnkeptKindError{schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Review"}, []string{"get", "list"}}
	if got, want := unkept.Error(), "the API server cannot get, list objects of the kind example.com/v1 Review"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// record is a Secret that Helm keeps of a release.
func record(name, version, release, app string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: version, UID: "u", CreationTimestamp: metav1.NewTime(time.Unix(7, 0)),
		Labels: map[string]string{"owner": "helm", "name": release, v1alpha1.AppLabel: app},
	}}
}

// TestRowsAreKnownByNameReleaseAndApp, and those whom a change concerns are notified.
func TestRowsAreKnownByNameReleaseAndApp(t *testing.T) {
	var notified []string
	s := newRows(func(name string, labels map[string]string) { notified = append(notified, name+" of "+labels["name"]) })
	want := func(what string, err error, changes ...string) {
		t.Helper()
		slices.Sort(notified)
		if diff := cmp.Diff(changes, notified); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", what, err, diff)
		}
		notified = nil
	}
	plain := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "plain", ResourceVersion: "1"}}
	want("the first list", s.Replace([]any{record("a", "1", "web", "shop"), record("b", "1", "db", "shop"), plain}, ""))
	if !s.inStep() || s.version("a") != "1" || s.version("none") != "" {
		t.Errorf("in step: %v, a is %q", s.inStep(), s.version("a"))
	}
	if got := s.releases("shop"); !slices.Equal(got, []string{"db", "web"}) || s.releases("none") != nil {
		t.Errorf("the releases are %v", got)
	}
	full := record("a", "1", "web", "shop")
	full.Namespace = "team"
	if diff := cmp.Diff([]metav1.PartialObjectMetadata{*full}, s.records("team", "web")); diff != "" {
		t.Error(diff)
	}
	want("the same again", s.Update(record("a", "1", "web", "shop")))
	want("a newer one", s.Update(record("a", "2", "web", "shop")), "a of web")
	want("of another release", s.Update(record("a", "3", "api", "shop")), "a of api", "a of web")
	want("a new one", s.Add(record("c", "1", "api", "shop")), "c of api")
	if got := s.records("team", "api"); len(got) != 2 || s.records("team", "web") != nil || s.byRelease["web"] != nil {
		t.Errorf("of the release there are %v", got)
	}
	want("deleted", s.Delete(record("c", "9", "api", "shop")), "c of api")
	want("deleted again", s.Delete(record("c", "9", "api", "shop")))
	want("a later list", s.Replace([]any{record("a", "3", "api", "shop"), record("d", "1", "web", "shop")}, ""), "b of db", "d of web", "plain of ")
	want("nothing", s.Resync())
	packed, err := s.Transformer()(record("e", "1", "web", "shop"))
	want("a packed one", errors.Join(err, s.Add(packed)), "e of web")
	for name, err := range map[string]error{"added": s.Add(7), "updated": s.Update(7), "deleted": s.Delete(7), "listed": s.Replace([]any{7}, "")} {
		if err == nil || !strings.Contains(err.Error(), "reading the metadata of what was watched") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
