package hook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// patched is a client that counts patches, and fails while broken.
type patched struct {
	client.Client
	mu     sync.Mutex
	seen   []string
	broken bool
}

func (p *patched) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return errors.New("no API server")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.seen = append(p.seen, string(data))
	return p.Client.Patch(ctx, o, patch, options...)
}

// len returns how many patches were made.
func (p *patched) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen)
}

// step waits until the pause after a mark has begun, and lets it pass.
func step(t *testing.T, clock *clocktesting.FakeClock) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !clock.HasWaiters(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no pause begins")
		}
	}
	clock.Step(markPause)
}

// count waits until want patches were made, and fails if there are more.
func (p *patched) count(t *testing.T, want int) []string {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		seen := append([]string{}, p.seen...)
		p.mu.Unlock()
		if len(seen) > want || len(seen) < want && time.Now().After(deadline) {
			t.Fatalf("%d patches were made, want %d: %v", len(seen), want, seen)
		}
		if len(seen) == want {
			return seen
		}
	}
}

// TestPushesInQuickSuccessionChangeTheRepositoryOnce: a thousand calls at once change it once, and once more for each of the pushes' sources.
func TestPushesInQuickSuccessionChangeTheRepositoryOnce(t *testing.T) {
	s := newServer(t)
	to := &patched{Client: s.Client}
	s.Client = to
	handler, clock, mac := s.Handler(), s.Clock.(*clocktesting.FakeClock), sign([]byte(body), []byte(key))
	for i := range 1000 {
		path := "/hook/acme"
		if i%100 == 99 {
			path += "?source=https://git.example.com/manifests"
		}
		if answer := call(handler, path, "X-Signature", mac, strings.NewReader(body)); answer.Code != http.StatusAccepted {
			t.Fatalf("call %d is answered %d, want %d", i, answer.Code, http.StatusAccepted)
		}
	}
	to.count(t, 1)
	first := requestedAt(t, s)
	for want := 2; want <= 3; want++ {
		step(t, clock)
		to.count(t, want)
	}
	if again := requestedAt(t, s); again == first {
		t.Error("there is no mark for the pushes after the first")
	}
	repository := &v1alpha1.Repository{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "acme"}, repository); err != nil {
		t.Fatal(err)
	}
	if pushed := repository.Annotations[v1alpha1.PushedAnnotation]; !strings.HasSuffix(pushed, " https://git.example.com/manifests") {
		t.Errorf("the annotation for the source is %q", pushed)
	}
	for range 3 { // Nothing waits any more.
		clock.Step(markPause)
		time.Sleep(10 * time.Millisecond)
	}
	to.count(t, 3)
	if answer := call(handler, "/hook/acme", "X-Signature", mac, strings.NewReader(body)); answer.Code != http.StatusAccepted {
		t.Errorf("a later call is answered %d, want %d", answer.Code, http.StatusAccepted)
	}
	to.count(t, 4)
}

// TestWaitingSourcesAreBounded: at most maxMarks pushes wait, and further ones are answered 503.
func TestWaitingSourcesAreBounded(t *testing.T) {
	s := newServer(t)
	handler, mac := s.Handler(), sign([]byte(body), []byte(key))
	codes := map[int]int{}
	for i := range maxMarks + 3 {
		codes[call(handler, fmt.Sprintf("/hook/acme?source=https://git.example.com/%d", i), "X-Signature", mac, strings.NewReader(body)).Code]++
	}
	if codes[http.StatusAccepted] != maxMarks+1 || codes[http.StatusServiceUnavailable] != 2 {
		t.Errorf("answers by code: %v, want %d of 202, one of which was annotated at once, and 2 of 503", codes, maxMarks+1)
	}
}

// TestACallerThatLeavesWithdrawsNoPush: many hosts do not wait for the answer.
func TestACallerThatLeavesWithdrawsNoPush(t *testing.T) {
	s := newServer(t)
	to := &patched{Client: s.Client}
	left, leave := context.WithCancel(t.Context())
	leave()
	if err := (&marks{client: to, clock: s.Clock, log: s.Log}).add(left, "acme", ""); err != nil {
		t.Error(err)
	}
	to.count(t, 1)
}

// TestACallIsAnswered503WhileTheAPIServerIsAway: the next call tries again at once.
func TestACallIsAnswered503WhileTheAPIServerIsAway(t *testing.T) {
	s := newServer(t)
	to := &patched{Client: s.Client, broken: true}
	s.Client = to
	handler, mac := s.Handler(), sign([]byte(body), []byte(key))
	if answer := call(handler, "/hook/acme", "X-Signature", mac, strings.NewReader(body)); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("the call is answered %d, want %d", answer.Code, http.StatusServiceUnavailable)
	}
	to.mu.Lock()
	to.broken = false
	to.mu.Unlock()
	if answer := call(handler, "/hook/acme", "X-Signature", mac, strings.NewReader(body)); answer.Code != http.StatusAccepted {
		t.Errorf("the next is answered %d, want %d", answer.Code, http.StatusAccepted)
	}
	s.Clock.(*clocktesting.FakeClock).Step(markPause)
	to.count(t, 1)
}

// TestAPushThatCannotBePassedOnDelaysNoOther: the API server refuses a mark that waited, and the pushes after it are passed on.
func TestAPushThatCannotBePassedOnDelaysNoOther(t *testing.T) {
	s := newServer(t)
	clock, to := s.Clock.(*clocktesting.FakeClock), &patched{Client: s.Client}
	s.Client = to
	handler, mac := s.Handler(), sign([]byte(body), []byte(key))
	push := func(source string) {
		t.Helper()
		if answer := call(handler, "/hook/acme?source=https://git.example.com/"+source, "X-Signature", mac, strings.NewReader(body)); answer.Code != http.StatusAccepted {
			t.Fatalf("the push to %s is answered %d, want %d", source, answer.Code, http.StatusAccepted)
		}
	}
	for _, source := range []string{"at-once", "refused", "later"} {
		push(source)
	}
	to.count(t, 1)
	to.setBroken(true)
	step(t, clock)
	for deadline := time.Now().Add(5 * time.Second); !clock.HasWaiters(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("after the refused mark no pause begins")
		}
	}
	to.setBroken(false)
	step(t, clock)
	if seen := to.count(t, 2); !strings.Contains(seen[1], "https://git.example.com/later") {
		t.Errorf("the second mark is %s, want that of the later push", seen[1])
	}
}

func (p *patched) setBroken(broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = broken
}

// TestOnlyAPushToTheRepositoryCountsAsACall: while such calls come, the Repository is polled rarely. A report of another repository proves nothing.
func TestOnlyAPushToTheRepositoryCountsAsACall(t *testing.T) {
	mac := sign([]byte(body), []byte(key))
	for path, counts := range map[string]bool{"/hook/acme": true, "/hook/acme?source=https://git.example.com/manifests": false} {
		s := newServer(t)
		if answer := call(s.Handler(), path, "X-Signature", mac, strings.NewReader(body)); answer.Code != http.StatusAccepted {
			t.Fatalf("%s is answered %d", path, answer.Code)
		}
		repository := &v1alpha1.Repository{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "acme"}, repository); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, repository.Annotations[v1alpha1.HookCalledAnnotation])
		if counts != (err == nil && at.Equal(s.Clock.Now())) {
			t.Errorf("%s: the time of the last call is %q", path, repository.Annotations[v1alpha1.HookCalledAnnotation])
		}
	}
}
