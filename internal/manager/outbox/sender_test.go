package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/webhooksign"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

// stage is a store with webhooks, receivers that the test controls, and a clock.
type stage struct {
	*testing.T
	store store.Store
	// path is the file of the store, and keyFile that of its keys.
	path, keyFile string
	keys          *kms.Keys

	mu  sync.Mutex
	now time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager.db")
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	line, err := kms.NewKey("k")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := kms.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{T: t, store: s, path: path, keys: keys, keyFile: file, now: time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)}
}

func (s *stage) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *stage) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// sender is a process that sends.
func (s *stage) sender() *Sender {
	return &Sender{Store: s.store, Keys: func() (*kms.Keys, error) { return s.keys, nil }, Receivers: http.DefaultTransport, Now: s.clock, Jitter: func() float64 { return 0.5 }}
}

// run makes the attempts that are due, until there are none.
func (s *stage) run(by *Sender) {
	s.Helper()
	for range 1000 {
		if err := by.round(s.Context()); err != nil {
			s.Fatal(err)
		}
		by.running.Wait()
		due, err := s.store.ListDue(s.Context(), s.clock())
		if err != nil {
			s.Fatal(err)
		}
		if !slices.ContainsFunc(due, func(w store.DueWebhook) bool {
			n := by.places.take(w, s.clock())
			for range n {
				by.places.give(w)
			}
			return n > 0
		}) {
			return
		}
	}
	s.Fatal("it does not end")
}

func (s *stage) seal(id string) (string, store.Sealed) {
	s.Helper()
	secret := webhooksign.NewSecret()
	made, err := s.keys.Seal(kms.Place{Table: store.KindWebhookSecret, ID: id}, []byte(secret))
	if err != nil {
		s.Fatal(err)
	}
	return secret, store.Sealed{Kind: store.KindWebhookSecret, ID: id, Key: made.Key, Data: made.Data}
}

// hook stores a webhook of a tenant, and returns its secret.
func (s *stage) hook(id, tenant, url string) string {
	s.Helper()
	secret, sealed := s.seal(id + "/1")
	w := store.Webhook{ID: id, Name: id, Tenant: tenant, URL: url, Types: []string{"*"}, Created: s.clock(), Secret: sealed}
	if err := s.store.CreateWebhook(s.Context(), w, store.Event{At: s.clock(), Action: "createWebhook"}); err != nil {
		s.Fatal(err)
	}
	return secret
}

func (s *stage) happens(tenant, object, id string) {
	s.Helper()
	m := store.Message{ID: id, Type: "app.healthy", Tenant: tenant, Object: object, At: s.clock(), Body: []byte(`{"id":"` + id + `"}`)}
	if _, err := s.store.RecordChanges(s.Context(), []store.StateChange{{Object: "message/" + id, To: "1", Messages: []store.Message{m}}}); err != nil {
		s.Fatal(err)
	}
}

// states returns the messages of a webhook with their states, in their order.
func (s *stage) states(webhook string) (all []string) {
	s.Helper()
	found, err := s.store.ListDeliveries(s.Context(), webhook, "", 0, 10_000)
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range slices.Backward(found) {
		all = append(all, fmt.Sprintf("%s %s %d", d.Message.ID, d.State, d.Attempts))
	}
	return all
}

// receiver records what it gets.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	got     []string
	headers []http.Header
	// answer decides the status.
	answer func(id string, n int) int
}

func receive(t *testing.T, answer func(id string, n int) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		q.Header.Set("Body", string(body))
		r.mu.Lock()
		id := q.Header.Get("webhook-id")
		r.got, r.headers = append(r.got, id), append(r.headers, q.Header)
		n := len(r.got)
		r.mu.Unlock()
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(r.answer(id, n))
		_, _ = io.WriteString(w, "thanks\x00 "+strings.Repeat("x", 5000))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func always(status int) func(string, int) int { return func(string, int) int { return status } }

// signedBy verifies a message as Standard Webhooks says, without any code of the manager. ownBy verifies the own signature.
func signedBy(h http.Header, secret string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	standard := hmac.New(sha256.New, key)
	standard.Write([]byte(h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + h.Get("Body")))
	return slices.Contains(strings.Fields(h.Get("webhook-signature")), "v1,"+base64.StdEncoding.EncodeToString(standard.Sum(nil)))
}

func ownBy(h http.Header, secret string) bool {
	own := hmac.New(sha256.New, []byte(secret))
	own.Write([]byte(h.Get("Body")))
	return h.Get("X-KubeOP-Signature") == "sha256="+hex.EncodeToString(own.Sum(nil))
}

func TestAMessageIsSignedAndDeliveredOnce(t *testing.T) {
	s := newStage(t)
	r := receive(t, always(http.StatusAccepted))
	secret := s.hook("h", "acme", r.URL)
	s.happens("acme", "app/acme/shop/web", "m1")
	s.happens("beta", "app/beta/shop/web", "m2") // Another tenant's.
	by := s.sender()
	s.run(by)
	s.pass(48 * time.Hour)
	s.run(by)
	if diff := cmp.Diff([]string{"m1"}, r.ids()); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	h := r.headers[0]
	if other := webhooksign.NewSecret(); !signedBy(h, secret) || !ownBy(h, secret) || signedBy(h, other) || ownBy(h, other) || h.Get("Content-Type") != "application/json" || h.Get("Body") != `{"id":"m1"}` {
		t.Errorf("the message is %v", h)
	}
	if at, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64); err != nil || at != 1795939200 {
		t.Errorf("the time is %d: %v", at, err)
	}
	found, err := s.store.ListDeliveries(t.Context(), "h", "", 0, 10)
	if err != nil || len(found) != 1 || found[0].State != store.Delivered || found[0].Status != 202 || len(found[0].Answer) > maxAnswer || !strings.HasPrefix(found[0].Answer, "thanks x") {
		t.Errorf("%v: %+v", err, found)
	}
}

// TestMessagesAboutOneObjectKeepTheirOrder: the next one waits for the one before, and others do not wait.
func TestMessagesAboutOneObjectKeepTheirOrder(t *testing.T) {
	s := newStage(t)
	up := false
	r := receive(t, func(id string, _ int) int {
		if strings.HasPrefix(id, "web") && !up {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	s.hook("h", "acme", r.URL)
	for _, id := range []string{"web-1", "web-2", "api-1", "web-3", "api-2"} {
		s.happens("acme", "app/acme/shop/"+id[:3], id)
	}
	by := s.sender()
	for range 4 {
		s.run(by)
		s.pass(5 * time.Second) // The webhook failed, and rests.
	}
	if got := r.ids(); slices.Contains(got, "web-2") || slices.Contains(got, "web-3") || slices.Index(got, "api-1") > slices.Index(got, "api-2") || !slices.Contains(got, "api-2") {
		t.Fatalf("it got %q", got)
	}
	up = true
	s.pass(10 * time.Minute)
	s.run(by)
	got := r.ids()
	if diff := cmp.Diff([]string{"web-1", "web-2", "web-3"}, got[len(got)-3:]); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}

// TestAMessageIsTriedForADayAndThenParked, so that the next one passes.
func TestAMessageIsTriedForADayAndThenParked(t *testing.T) {
	s := newStage(t)
	r := receive(t, always(http.StatusFound)) // A redirect is not followed.
	s.hook("h", "acme", r.URL)
	s.happens("acme", "app/acme/shop/web", "m1")
	start, by := s.clock(), s.sender()
	var at []time.Duration
	for before := 0; s.clock().Sub(start) < 30*time.Hour; s.pass(5 * time.Second) {
		s.run(by)
		if n := len(r.ids()); n > before {
			at, before = append(at, s.clock().Sub(start)), n
		}
	}
	want := []time.Duration{0, 5 * time.Second, 35 * time.Second, 155 * time.Second, 455 * time.Second}
	if len(at) < 10 || len(at) > 20 || !slices.Equal(at[:5], want) || at[len(at)-1] != 24*time.Hour {
		t.Errorf("it was tried at %v", at)
	}
	if got := s.states("h"); !slices.Equal(got, []string{fmt.Sprintf("m1 parked %d", len(at))}) {
		t.Errorf("it is %q", got)
	}
	events, err := s.store.ListEvents(t.Context(), "acme", 0, 10)
	if err != nil || len(events) != 1 || events[0].Action != "parkDelivery" || events[0].Object != "webhook/h" {
		t.Errorf("%v: the events are %+v", err, events)
	}
	r.answer = always(http.StatusOK)
	s.happens("acme", "app/acme/shop/web", "m2")
	s.run(by)
	if got := r.ids(); got[len(got)-1] != "m2" {
		t.Errorf("the next one does not pass: %q", got)
	}
	found, err := s.store.ListDeliveries(t.Context(), "h", store.Parked, 0, 10)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v: %+v", err, found)
	}
	if _, err := s.store.Redeliver(t.Context(), "h", found[0].ID, store.Event{At: s.clock(), Action: "redeliver"}); err != nil {
		t.Fatal(err)
	}
	s.run(by)
	if got := r.ids(); got[len(got)-1] != "m1" {
		t.Errorf("it is not sent again: %q", got)
	}
	if got := s.states("h"); !slices.Equal(got, []string{"m1 delivered 1", "m2 delivered 1"}) {
		t.Errorf("they are %q", got)
	}
}

// TestAWebhookThatDoesNotAnswerKeepsNoOtherWaiting, of its tenant or of another one, however many messages wait for it.
func TestAWebhookThatDoesNotAnswerKeepsNoOtherWaiting(t *testing.T) {
	s := newStage(t)
	stuck := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer dead.Close()
	defer close(stuck)
	for i := range 10 {
		s.hook(fmt.Sprintf("dead-%d", i), "acme", dead.URL)
	}
	r := receive(t, always(http.StatusOK))
	s.hook("other", "beta", r.URL)
	for i := range 50 {
		s.happens("acme", fmt.Sprintf("app/acme/shop/a%d", i), fmt.Sprintf("a%d", i))
	}
	by := s.sender()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- by.Run(ctx) }()
	const attempts = 10 // One of each webhook, until it answers.
	for end := time.Now().Add(time.Minute); by.places.ofTenants()["acme"] < attempts && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := by.places.ofTenants()["acme"]; n != attempts {
		t.Errorf("one tenant takes %d places", n)
	}
	began := time.Now()
	s.hook("well", "acme", r.URL)
	s.happens("beta", "app/beta/shop/web", "m1")
	s.happens("acme", "app/acme/shop/web", "m2")
	for len(r.ids()) < 2 {
		if time.Since(began) > Timeout {
			t.Fatal("it waits")
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("delivered after %s", time.Since(began))
	cancel()
	dead.CloseClientConnections()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTwoSendersSendEachMessageOnce, and keep the order.
func TestTwoSendersSendEachMessageOnce(t *testing.T) {
	s := newStage(t)
	r := receive(t, always(http.StatusOK))
	s.hook("h", "acme", r.URL)
	const objects, each = 5, 8
	for i := range each {
		for o := range objects {
			s.happens("acme", fmt.Sprintf("app/acme/shop/a%d", o), fmt.Sprintf("%d-%d", o, i))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if err := s.sender().Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for began := time.Now(); len(r.ids()) < objects*each; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("it got %d", len(r.ids()))
		}
	}
	cancel()
	group.Wait()
	got := r.ids()
	if len(got) != objects*each {
		t.Errorf("it got %d messages, want %d", len(got), objects*each)
	}
	next := map[string]int{}
	for _, id := range got {
		object, number, _ := strings.Cut(id, "-")
		if number != strconv.Itoa(next[object]) {
			t.Errorf("of %s it got %s, want %d", object, number, next[object])
		}
		next[object]++
	}
}

// TestBothSecretsSignUntilTheFirstEnds, except that the own signature is by the first until then.
func TestBothSecretsSignUntilTheFirstEnds(t *testing.T) {
	s := newStage(t)
	r := receive(t, always(http.StatusOK))
	first := s.hook("h", "acme", r.URL)
	second, sealed := s.seal("h/2")
	rotate := func(w *store.Webhook) error {
		w.Previous, w.PreviousUntil, w.Secret = w.Secret, s.clock().Add(time.Hour), sealed
		return nil
	}
	if _, err := s.store.ChangeWebhook(t.Context(), "acme", "h", rotate, store.Event{At: s.clock()}); err != nil {
		t.Fatal(err)
	}
	by := s.sender()
	for i, want := range [][4]bool{{true, true, true, false}, {false, true, false, true}} {
		s.happens("acme", "app/acme/shop/web", fmt.Sprint("m", i))
		s.run(by)
		h := r.headers[i]
		if got := [4]bool{signedBy(h, first), signedBy(h, second), ownBy(h, first), ownBy(h, second)}; got != want {
			t.Errorf("message %d is signed by %v, want %v", i, got, want)
		}
		s.pass(time.Hour)
	}
}

func TestADisabledOrDeletedWebhookGetsNothing(t *testing.T) {
	s := newStage(t)
	r := receive(t, always(http.StatusOK))
	s.hook("h", "acme", r.URL)
	s.happens("acme", "app/acme/shop/web", "m1")
	set := func(disabled bool) {
		if _, err := s.store.ChangeWebhook(t.Context(), "acme", "h", func(w *store.Webhook) error { w.Disabled = disabled; return nil }, store.Event{At: s.clock()}); err != nil {
			t.Fatal(err)
		}
	}
	set(true)
	by := s.sender()
	s.happens("acme", "app/acme/shop/web", "m2")
	s.run(by)
	if got := r.ids(); len(got) > 0 {
		t.Fatalf("disabled, it got %q", got)
	}
	set(false)
	s.run(by)
	if got := r.ids(); !slices.Equal(got, []string{"m1"}) {
		t.Fatalf("enabled, it got %q", got)
	}
	s.happens("acme", "app/acme/shop/web", "m3")
	if err := s.store.DeleteWebhook(t.Context(), "acme", "h", store.Event{At: s.clock()}); err != nil {
		t.Fatal(err)
	}
	s.run(by)
	if got := r.ids(); len(got) != 1 {
		t.Errorf("deleted, it got %q", got)
	}
	if left, err := s.store.ListSealed(t.Context(), store.Sealed{}, 10); err != nil || len(left) != 0 {
		t.Errorf("its secret is left: %v %v", left, err)
	}
}

func TestAWebhookSaysWhyNothingArrivesWithoutAddressesOfTheManagersNetwork(t *testing.T) {
	s := newStage(t)
	r := receive(t, always(http.StatusOK))
	s.hook("h", "acme", r.URL)
	for i, c := range []struct {
		err  error
		want string
	}{
		{&RefusedError{"The host leads elsewhere."}, "The host leads elsewhere."},
		{errors.New("proxyconnect tcp: dial 10.0.0.1"), "The host does not speak HTTP as expected."},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "No answer within 12s."},
		{io.EOF, "The host closed the connection without an answer."},
	} {
		by := s.sender()
		by.Receivers = failing{c.err}
		s.happens("acme", fmt.Sprint("app/acme/shop/a", i), fmt.Sprint("m", i))
		if err := by.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		by.running.Wait()
		found, err := s.store.ListDeliveries(t.Context(), "h", "", 0, 1)
		if err != nil || found[0].Answer != c.want || found[0].Status != 0 {
			t.Errorf("%v: %+v", err, found)
		}
	}
	if got := r.ids(); len(got) > 0 {
		t.Errorf("it got %q", got)
	}
}

type failing struct{ err error }

// RoundTrip implements http.RoundTripper.
func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// TestAWebhookThatAnswersGoneIsDisabled, and what waits for it is sent once somebody enables it.
func TestAWebhookThatAnswersGoneIsDisabled(t *testing.T) {
	s := newStage(t)
	r := receive(t, func(_ string, n int) int {
		if n == 1 {
			return http.StatusGone
		}
		return http.StatusOK
	})
	s.hook("h", "acme", r.URL)
	s.happens("acme", "app/acme/shop/web", "m1")
	by := s.sender()
	s.run(by)
	s.pass(48 * time.Hour)
	s.run(by)
	w, err := s.store.GetWebhook(t.Context(), "", "h")
	if err != nil || !w.Disabled || w.DisabledReason != goneAnswer || len(r.ids()) != 1 {
		t.Fatalf("%v: it got %q, and is %+v", err, r.ids(), w)
	}
	enable := func(w *store.Webhook) error { w.Disabled, w.DisabledReason = false, ""; return nil }
	if _, err := s.store.ChangeWebhook(t.Context(), "acme", "h", enable, store.Event{At: s.clock()}); err != nil {
		t.Fatal(err)
	}
	s.run(by)
	if got := s.states("h"); !slices.Equal(got, []string{"m1 delivered 2"}) {
		t.Errorf("they are %q", got)
	}
}
