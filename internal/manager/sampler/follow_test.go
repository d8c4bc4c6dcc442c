package sampler

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// apiServer answers lists and watches, and may stop answering.
type apiServer struct {
	*testing.T
	mu      sync.Mutex
	objects map[string][]client.Object
	changes map[string]chan string
	down    bool
}

// ServeHTTP answers a request.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if changes := a.answer(w, r); changes != nil {
		follow(w, r, changes)
	}
}

// answer answers all but a watch, of which it returns the changes.
func (a *apiServer) answer(w http.ResponseWriter, r *http.Request) (changes chan string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind, query := path.Base(r.URL.Path), r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case a.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == metricsPath:
		_, _ = w.Write(answerOf("100m"))
	case query.Get("sendInitialEvents") != "": // Then client-go lists.
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	case query.Get("watch") != "":
		changes = make(chan string, 10)
		a.changes[kind] = changes
	default:
		items, err := json.Marshal(a.objects[kind])
		if err != nil {
			a.Error(err)
		}
		of := map[string]string{apps: `"AppList","apiVersion":"paas.kubeop.io/v1alpha1"`, pods: `"PodList","apiVersion":"v1"`, claims: `"PersistentVolumeClaimList","apiVersion":"v1"`, services: `"ServiceList","apiVersion":"v1"`}
		_, _ = fmt.Fprintf(w, `{"kind":%s,"metadata":{"resourceVersion":"1"},"items":%s}`, of[kind], items)
	}
	return changes
}

// follow writes changes until the client or the server disconnects.
func follow(w http.ResponseWriter, r *http.Request, changes chan string) {
	for {
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case change, open := <-changes:
			if !open {
				panic(http.ErrAbortHandler) // The connection breaks.
			}
			_, _ = w.Write([]byte(change))
		}
	}
}

// disconnect breaks all watches, and answers nothing any more.
func (a *apiServer) disconnect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = true
	for kind, changes := range a.changes {
		close(changes)
		delete(a.changes, kind)
	}
}

func (a *apiServer) change(how string, object client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, err := json.Marshal(map[string]any{"type": how, "object": object})
	if err != nil {
		a.Error(err)
	}
	a.changes[pods] <- string(text)
}

// safely is a store that may be read while it is written.
type safely struct {
	measured
	mu sync.Mutex
}

// AddMinute implements store.Usage.
func (s *safely) AddMinute(ctx context.Context, m store.Minute) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.measured.AddMinute(ctx, m)
}

// last returns how many minutes have a group, and the last one that has it.
func (s *safely) last(group meter.Group) (n int, last store.Minute) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.minutes {
		for _, g := range m.Groups {
			if g == group {
				n, last = n+1, m
			}
		}
	}
	return n, last
}

func init() { ctrl.SetLogger(logr.Discard()) }

// TestUsageIsMeasuredThroughAnOutageOfTheAPIServer, of which the minutes are missing, by lists and watches. The clocks run 40 times faster.
func TestUsageIsMeasuredThroughAnOutageOfTheAPIServer(t *testing.T) {
	pod := podOf("web", requests("250m", "100"))
	pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	pod.ResourceVersion = "1"
	app := appNamed("web")
	server := &apiServer{T: t, changes: map[string]chan string{}, objects: map[string][]client.Object{pods: {pod}, apps: {app}, claims: {}, services: {}}}
	listening := httptest.NewServer(server)
	defer listening.Close()
	defer listening.CloseClientConnections()
	began, to := time.Now(), &safely{}
	f := &Follower{Cluster: "east", Store: to, Tick: tick / 40, Config: &rest.Config{Host: listening.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, Clocks: func() fence.Instant {
		return fence.Instant{Wall: noon.Add(40 * time.Since(began)), Running: 40 * time.Since(began)}
	}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	until := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after a minute there is no %s", what)
			}
		}
	}
	web := store.Place{Tenant: "acme", Project: "shop", App: "web", Cluster: "east"}
	until("use of the pod", func() bool {
		_, m := to.last(meter.OfMetrics)
		return m.Used[web][meter.CPUUsed] != nil
	})
	if _, m := to.last(meter.OfMetrics); meter.Amounts(m.Used[web]).String() != "cpu.requested=15 cpu.used=6 memory.requested=6000 memory.used=61440 pods=60" {
		t.Errorf("it used %s", m.Used[web])
	}
	if err := f.Check(ctx); err != nil {
		t.Error(err)
	}
	server.disconnect()
	until("failed check", func() bool { return f.Check(ctx) != nil })
	time.Sleep(3 * time.Second) // 120 seconds of the test, with what is written later.
	n, before := to.last(meter.OfPods)
	server.mu.Lock()
	server.down = false
	server.mu.Unlock()
	until("minute after the outage", func() bool {
		more, _ := to.last(meter.OfPods)
		return more > n
	})
	if _, after := to.last(meter.OfPods); after.Begin.Sub(before.Begin) < 2*time.Minute || after.Used[web][meter.Pods] == nil {
		t.Errorf("measured are %s, and then %s with %s", before.Begin, after.Begin, after.Used[web])
	}
	pod.ResourceVersion, pod.Status.Phase = "2", corev1.PodSucceeded
	server.change("MODIFIED", pod)
	until("minute without the pod", func() bool {
		_, m := to.last(meter.OfPods)
		return m.Used[web][meter.Pods] == nil
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := f.Check(t.Context()); err != nil {
		t.Errorf("after it stopped: %v", err)
	}
}
