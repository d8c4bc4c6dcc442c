package api

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/server"
	"github.com/kubeop/kubeop/internal/store"
)

// served is a manager at an address.
type served struct {
	*manager
	url   string
	stop  context.CancelFunc
	ended chan error
}

func serve(m *manager) *served {
	m.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &served{manager: m, url: "http://" + listener.Addr().String(), stop: stop, ended: make(chan error, 1)}
	go func() {
		s.ended <- (&server.Server{Name: "test", Listener: listener, Handler: m, Grace: time.Hour, Log: logr.Discard()}).Serve(ctx)
	}()
	m.Cleanup(func() {
		stop()
		if err := <-s.ended; err != nil {
			m.Error(err)
		}
	})
	return s
}

// follow opens a stream.
func (s *served) follow(secret, path, last string) *http.Response {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), "GET", s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Last-Event-ID", last)
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { answer.Body.Close() })
	return answer
}

// watching is a stream that is read event by event.
type watching struct {
	*testing.T
	body  io.Closer
	lines *bufio.Scanner
	id    string
}

func (s *served) watch(secret, path, last string) *watching {
	s.Helper()
	answer := s.follow(secret, path, last)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(answer.Body)
		s.Fatalf("%s with %v: %s", answer.Status, answer.Header, text)
	}
	w := &watching{T: s.T, body: answer.Body, lines: bufio.NewScanner(answer.Body)}
	w.lines.Buffer(nil, 1<<20)
	return w
}

// next returns the kind of the next event, and the name that it is about; "" if the stream ended.
func (w *watching) next() string {
	kind, data := "", ""
	for w.lines.Scan() {
		field, value, _ := strings.Cut(w.lines.Text(), ": ")
		switch field {
		case "event":
			kind = value
		case "data":
			data = value
		case "id":
			w.id = value
		case "":
			if kind == "" {
				continue // A comment.
			}
			var about struct{ Name, Code string }
			if err := json.Unmarshal([]byte(data), &about); err != nil {
				w.Fatalf("%v: %s", err, data)
			}
			return strings.TrimSpace(kind + " " + about.Name + about.Code)
		}
	}
	return ""
}

func (w *watching) want(events ...string) {
	w.Helper()
	for _, want := range events {
		if got := w.next(); got != want {
			w.Fatalf("the next event is %q, want %q", got, want)
		}
	}
}

// TestTheWatchOfAListSendsWhatTheCallerMaySee: all items, each change, and what was missed; never what is of others.
func TestTheWatchOfAListSendsWhatTheCallerMaySee(t *testing.T) {
	m, cluster, _ := newCluster(t)
	s := serve(m)
	changed := func(namespace, name, message string) {
		a := appOf(namespace, name)
		a.Status.Conditions[0].Message = message
		apply(t, cluster, a)
	}
	viewer := m.holder("viewer", "project:acme/shop:view")
	w := s.watch(viewer, "/v1/apps/acme/shop?watch=1", "")
	w.want("resync", "put db", "put web", "synced")
	for _, other := range []string{"kubeop-beta-shop", "kubeop-acme-blog"} {
		changed(other, "web", "not of this list")
	}
	changed("kubeop-acme-shop", "web", "changed")
	w.want("put web")
	live.Forget(cluster, appOf("kubeop-acme-shop", "db"))
	w.want("delete db")
	w.body.Close()
	// The ones that were missed, and only these.
	changed("kubeop-acme-shop", "web", "changed again")
	changed("kubeop-acme-shop", "new", "new")
	again := s.watch(viewer, "/v1/apps/acme/shop?watch=true", w.id)
	again.want("put web", "put new")
	// An id that says nothing to this manager.
	for _, last := range []string{"x", "elsewhere.1", strings.Replace(w.id, ".", ".9", 1), strings.Split(w.id, ".")[0] + ".0"} {
		s.watch(viewer, "/v1/apps/acme/shop?watch=1", last).want("resync", "put new", "put web", "synced")
	}
	projects := s.watch(viewer, "/v1/projects/acme?watch=1", "")
	projects.want("resync", "put shop", "synced")
	apply(t, cluster, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "another"}})
	apply(t, cluster, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop", Generation: 1}, Status: v1alpha1.ProjectStatus{Namespace: "kubeop-acme-shop"}})
	projects.want("put shop")
	tenants := s.watch(m.holder("tenant", "tenant:acme:view"), "/v1/tenants?watch=1", "")
	tenants.want("resync", "put acme", "synced")
	apply(t, cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "gamma"}})
	live.Forget(cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "beta"}})
	live.Forget(cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	tenants.want("delete acme")
}

func TestStreamsThatMayNotBeAreRefused(t *testing.T) {
	m, _, _ := newCluster(t)
	viewer := m.holder("viewer", "project:acme/shop:view")
	for path, want := range map[string]problem.Code{
		"/v1/apps/beta/shop?watch=1": problem.NotFound, "/v1/apps/acme/blog?watch=1": problem.NotFound, "/v1/apps/acme/shop?watch=maybe": problem.Invalid, "/v1/apps/acme/shop?watch=1&all=1": problem.Invalid,
		"/v1/apps/acme/shop?watch=1&cursor=d2Vi": problem.BadRequest, "/v1/apps/acme/shop/web?watch=1": problem.Invalid,
	} {
		if p := problemOf(t, m.as(viewer, "GET", path, "")); p.Code != want {
			t.Errorf("%s: %+v", path, p)
		}
	}
	s := serve(m)
	streams := map[int]*watching{}
	for i := range 20 {
		streams[i] = s.watch(viewer, "/v1/apps/acme/shop?watch=1", "")
		streams[i].want("resync")
	}
	refused := s.follow(viewer, "/v1/apps/acme/shop?watch=1", "")
	if refused.StatusCode != http.StatusTooManyRequests || refused.Header.Get("Retry-After") == "" {
		t.Errorf("one more is answered by %s", refused.Status)
	}
	s.watch(m.holder("another", "project:acme/shop:view"), "/v1/apps/acme/shop?watch=1", "").want("resync")
	streams[0].body.Close()
	for s.follow(viewer, "/v1/apps/acme/shop?watch=1", "").StatusCode != http.StatusOK {
		time.Sleep(20 * time.Millisecond) // Until the manager sees that one ended.
	}
}

// TestAStreamEndsWithTheRightToReadIt, and with the server.
func TestAStreamEndsWithTheRightToReadIt(t *testing.T) {
	m, cluster, _ := newCluster(t)
	s := serve(m)
	revoked, deleted, rest := s.watch(m.holder("revoked", "admin"), "/v1/tenants?watch=1", ""), s.watch(m.holder("a", "tenant:acme:view"), "/v1/apps/acme/blog?watch=1", ""),
		s.watch(m.holder("b", "tenant:acme:view"), "/v1/apps/acme/shop?watch=1", "")
	changed := s.watch(m.personWith("tenant:acme:view"), "/v1/projects/acme?watch=1", "")
	changed.want("resync", "put blog", "put shop", "synced")
	revoked.want("resync", "put acme", "put beta", "synced")
	deleted.want("resync", "put db", "put web", "synced")
	rest.want("resync", "put db", "put web", "synced")
	if err := m.store.RevokeToken(t.Context(), "", "revoked", store.Event{At: m.now}); err != nil {
		t.Fatal(err)
	}
	m.personWith("tenant:acme:edit") // The rights of a person are another role's now.
	live.Forget(cluster, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "blog"}})
	revoked.want("end unauthenticated", "")
	deleted.want("end not-found", "")
	changed.want("delete blog", "end unauthenticated", "")
	s.stop()
	rest.want("")
}
