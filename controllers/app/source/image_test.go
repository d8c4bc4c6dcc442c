package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/freeze"
)

// tagServer is a registry of one repository, "web".
type tagServer struct {
	*httptest.Server
	mu    sync.Mutex
	tags  string // as JSON
	other string // in digests
	down  bool
	asked int
}

func (s *tagServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	switch {
	case s.down:
		w.WriteHeader(http.StatusBadGateway)
	case strings.HasSuffix(req.URL.Path, "/tags/list"):
		_, _ = fmt.Fprintf(w, `{"tags":[%s]}`, s.tags)
	default:
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat(s.other, 64))
		w.Header().Set("Content-Length", "2")
	}
}

// requests is how many requests there were.
func (s *tagServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// fixture is an Image app with a policy; restart drops the memory of the process.
type fixture struct {
	t *testing.T
	*tagServer
	*Fetcher
	subjects *subject.Subjects
	app      *v1alpha1.App
	clock    *clocktesting.FakeClock
	woken    chan types.NamespacedName
	freeze   []v1alpha1.FreezeWindow
	frozen   *freeze.Hold
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{t: t, tagServer: &tagServer{tags: `"1.0.0"`, other: "a"}, clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	b.Server = httptest.NewServer(b.tagServer)
	t.Cleanup(b.Close)
	b.app = &v1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "app", Generation: 1},
		Spec: v1alpha1.AppSpec{Type: v1alpha1.AppImage, Image: &v1alpha1.ImageSource{
			Reference: b.Listener.Addr().String() + "/web", Policy: &v1alpha1.ImagePolicy{SemVer: "1.x"},
		}},
	}
	b.restart()
	return b
}

func (b *fixture) restart() {
	b.woken = make(chan types.NamespacedName, 10)
	woken := b.woken
	b.subjects = &subject.Subjects{Clock: b.clock}
	b.Fetcher = &Fetcher{Queue: &wake.Queue{}, Answers: NewAnswers(pool.New(pool.Options{Reach: pool.ReachOf}, b.clock), b.clock), Tags: image.NewStore(&transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, b.clock.Now, []string{b.Listener.Addr().String()}, apart.Runner{})}
	b.Answers.wake(func(app types.NamespacedName) { woken <- app })
}

// choose takes the step, and again once the registry has answered.
func (b *fixture) choose(p *pass) error {
	for {
		err := b.chooseImage(context.Background(), p)
		if !errors.As(err, new(*cache.Unanswered)) {
			return err
		}
		<-b.woken
	}
}

// begin starts a search for the source.
func (b *fixture) begin() *pass {
	asked := b.queries.Get(b.app)
	p := &pass{Subject: b.subjects.New(b.app), found: &Found{imageFacts: imageFacts{image: &asked.image}}, last: asked}
	p.Freeze, p.Frozen = b.freeze, b.frozen
	p.hold()
	return p
}

// look runs the step and writes the status as the runner does. It returns the number of requests to the registry.
func (b *fixture) look() (*pass, int, error) {
	b.t.Helper()
	before := b.requests()
	p := b.begin()
	err := b.choose(p)
	p.found.Record(b.app)
	if token, ok := meta.ReconcileAnnotationValue(b.app.Annotations); ok {
		b.app.Status.SetLastHandledReconcileRequest(token)
	}
	if err == nil {
		b.app.Status.ObservedGeneration = b.app.Generation
	}
	return p, b.requests() - before, err
}

// chooses runs look, and wants this tag, number of requests, and events.
func (b *fixture) chooses(tag string, asked int, events ...string) *pass {
	b.t.Helper()
	p, times, err := b.look()
	if err != nil || times != asked || b.app.Status.Image == nil || b.app.Status.Image.Tag != tag {
		b.t.Fatalf("%d requests, %v, %+v; want %d and %s", times, err, b.app.Status.Image, asked, tag)
	}
	if got := p.found.Reference; b.app.Spec.Image.Policy.Write == "" && got != b.app.Status.Image.Reference {
		b.t.Errorf("the delivered image is %s, want %s", got, b.app.Status.Image.Reference)
	}
	var reported []string
	for _, n := range p.found.Notes(b.app) {
		if n.Event != "" {
			reported = append(reported, n.Event+" "+n.Message)
		}
	}
	if diff := cmp.Diff(events, reported); diff != "" {
		b.t.Errorf("events (-want +got):\n%s", diff)
	}
	return p
}

func (b *fixture) pass(d time.Duration) { b.clock.SetTime(b.clock.Now().Add(d)) }

func (b *fixture) server(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func TestImagePolicyFollowsTheRegistry(t *testing.T) {
	b := newFixture(t)
	s := b.chooses("1.0.0", 2, "Normal web: 1.0.0")
	first := b.app.Status.Image.Reference
	if want := b.app.Spec.Image.Reference + ":1.0.0@sha256:" + strings.Repeat("a", 64); first != want || s.Again() != 5*time.Minute {
		t.Errorf("the policy chose %s, and checks again after %s; want %s", first, s.Again(), want)
	}
	b.server(func() { b.tags = `"1.0.0","1.1.0","2.0.0"` })
	b.pass(2 * time.Minute)
	if s := b.chooses("1.0.0", 0); s.Again() != 3*time.Minute {
		t.Errorf("the policy checks again after %s, want %s", s.Again(), 3*time.Minute)
	}
	b.pass(3 * time.Minute)
	b.chooses("1.1.0", 2, "Normal web: 1.0.0 → 1.1.0")
	if got := b.app.Status.Image; got.Previous != first || !got.Since.Time.Equal(b.clock.Now()) {
		t.Errorf("status.image is %+v", got)
	}
	second := b.app.Status.Image.Reference
	b.server(func() { b.other = "b" })
	b.pass(5 * time.Minute)
	b.chooses("1.1.0", 2, "Normal web: "+second+" → "+strings.ReplaceAll(second, "aaaa", "bbbb"))

	// A reconcile request causes one check.
	b.server(func() { b.tags = `"1.2.0"` })
	b.app.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	b.chooses("1.2.0", 2, "Normal web: 1.1.0 → 1.2.0")
	b.chooses("1.2.0", 0)

	// So does a push, at once.
	b.server(func() { b.tags = `"1.3.0"` })
	b.pushes.note("", normalized("oci://"+b.app.Spec.Image.Reference), "now")
	b.chooses("1.3.0", 2, "Normal web: 1.2.0 → 1.3.0")
	b.chooses("1.3.0", 0)

	b.app.Spec.Image.Policy = nil
	if _, asked, err := b.look(); err != nil || asked > 0 || b.app.Status.Image != nil {
		t.Errorf("without a policy: %d requests, %v, %+v", asked, err, b.app.Status.Image)
	}
}

func TestImagePolicyKeepsItsChoice(t *testing.T) {
	b := newFixture(t)
	b.server(func() { b.down = true })
	if _, _, err := b.look(); !errors.Is(err, failure.ErrUnavailable) || b.app.Status.Image != nil {
		t.Fatalf("without a choice: %v, %+v", err, b.app.Status.Image)
	}
	b.pass(time.Minute)
	b.server(func() { b.down = false })
	b.chooses("1.0.0", 2, "Normal web: 1.0.0")

	b.server(func() { b.down = true })
	b.pass(5 * time.Minute)
	kept := "1.0.0 stays: choosing a tag of HOST/web: HOST answered 502 Bad Gateway"
	s := b.chooses("1.0.0", 1, "Warning "+strings.ReplaceAll(kept, "HOST", b.Listener.Addr().String()))
	if s.Again() != registryPause {
		t.Errorf("the policy checks again after %s, want %s", s.Again(), registryPause)
	}
	if n := s.found.Notes(b.app)[0]; n.Condition != v1alpha1.ImageKeptCondition || n.Status != metav1.ConditionTrue || n.Reason != v1alpha1.FetchFailedReason {
		t.Errorf("the note is %+v", n)
	}

	// A choice that the registry does not have any more is no choice.
	b.server(func() { b.down, b.tags = false, `"2.0.0"` })
	b.pass(5 * time.Minute)
	if _, _, err := b.look(); err == nil || !strings.HasSuffix(err.Error(), "none of the 1 tags is what the policy wants: semver 1.x") {
		t.Errorf("no tag any more: %v", err)
	}
	b.server(func() { b.down, b.tags = true, `"1.0.0"` })
	b.pass(5 * time.Minute)

	// A choice outside the policy's range is dropped.
	b.app.Spec.Image.Policy.SemVer, b.app.Generation = "2.x", 2
	b.pass(time.Minute)
	if _, _, err := b.look(); !errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("another range: %v", err)
	}
	b.server(func() { b.down = false })
	b.pass(time.Minute)
	_, _, err := b.look()
	if err == nil || !strings.HasSuffix(err.Error(), "none of the 1 tags is what the policy wants: semver 2.x") {
		t.Errorf("no such version: %v", err)
	}
	b.app.Spec.Image.Policy.SemVer, b.app.Generation = "1.x", 3
	s = b.chooses("1.0.0", 1)
	if n := s.found.Notes(b.app)[0]; n.Condition != v1alpha1.ImageKeptCondition || n.Status != "" {
		t.Errorf("after the next request the note is %+v", n)
	}
}

func TestImagePolicyAfterARestart(t *testing.T) {
	b := newFixture(t)
	b.chooses("1.0.0", 2, "Normal web: 1.0.0")
	b.server(func() { b.tags = `"1.1.0"` })
	b.restart()
	if s := b.chooses("1.0.0", 0); s.Again() != 5*time.Minute {
		t.Errorf("the policy checks again after %s, want %s", s.Again(), 5*time.Minute)
	}
	b.pass(5 * time.Minute)
	b.chooses("1.1.0", 2, "Normal web: 1.0.0 → 1.1.0")
	for name, change := range map[string]func(){
		"another spec":     func() { b.app.Generation++ },
		"a request":        func() { b.app.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "later"} },
		"another registry": func() { b.app.Status.Image.Reference = "elsewhere/web:1.1.0@sha256:0" },
		"a first check":    func() { b.app.Status.Image = nil },
	} {
		t.Run(name, func(t *testing.T) {
			b.restart()
			change()
			if _, asked, err := b.look(); asked != 2 || err != nil {
				t.Errorf("%d requests, %v", asked, err)
			}
		})
	}
}

// An image that was not reported because the status was not written is reported later.
func TestAnImageIsReportedOnce(t *testing.T) {
	b := newFixture(t)
	p := b.begin()
	if err := b.choose(p); err != nil {
		t.Fatal(err)
	}
	p.found.Record(b.app) // as a checkpoint does, before a step that ends quietly
	b.chooses("1.0.0", 0, "Normal web: 1.0.0")
	b.chooses("1.0.0", 0)
}
