package outbox

import (
	"net/http"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

func TestPausesAreSpread(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 5 * time.Second, 2: 30 * time.Second, 9: 4 * time.Hour, 10: 4 * time.Hour, 1000: 4 * time.Hour} {
		low, mid, high := pause(failures, 0), pause(failures, 0.5), pause(failures, 0.999999)
		if mid != want || low != time.Duration(float64(want)*0.8) || high >= time.Duration(float64(want)*1.2)+1 || high <= mid {
			t.Errorf("after %d failures: %s, %s, %s", failures, low, mid, high)
		}
	}
}

func TestAWebhookMayAskForAPause(t *testing.T) {
	now := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status int
		text   string
		want   time.Duration
	}{
		{429, "120", 2 * time.Minute}, {503, "Sun, 29 Nov 2026 08:10:00 GMT", 10 * time.Minute}, {503, "", 0}, {500, "120", 0}, {429, "-5", 0}, {429, "99999999999", time.Hour},
		{429, "86400", time.Hour}, {429, "soon", 0}, {503, "Sun, 29 Nov 2020 08:10:00 GMT", 0}, {503, "Sun, 29 Nov 2099 08:10:00 GMT", time.Hour},
	} {
		got := retryAfter(&http.Response{StatusCode: c.status, Header: http.Header{"Retry-After": {c.text}}}, now)
		if got != c.want {
			t.Errorf("%d %q: %s, want %s", c.status, c.text, got, c.want)
		}
	}
}

// TestPlacesAreShared: a webhook gets more than one once it took a message, and one after a rest if it fails.
func TestPlacesAreShared(t *testing.T) {
	var p places
	now := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	a, b := store.DueWebhook{ID: "a", Tenant: "acme"}, store.DueWebhook{ID: "b", Tenant: "acme"}
	if got := p.take(a, now); got != 1 {
		t.Errorf("it takes %d", got)
	}
	p.give(a)
	p.answered("a")
	if got := p.take(a, now); got != perWebhook {
		t.Errorf("once it took a message it takes %d", got)
	}
	if got := p.take(a, now); got != 0 {
		t.Errorf("and %d more", got)
	}
	for range perWebhook {
		p.give(a)
	}
	for failures, rest := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		if got := p.failed("a", now, 0); got != failures+1 {
			t.Errorf("%d failures", got)
		}
		if p.take(a, now.Add(rest-1)) != 0 || p.take(a, now.Add(rest)) != 1 {
			t.Errorf("after %d failures it does not rest for %s", failures+1, rest)
		}
		p.give(a)
	}
	if got := p.take(b, now); got != 1 {
		t.Errorf("another one takes %d", got)
	}
	p.answered("a")
	if got := p.take(a, now); got != perWebhook {
		t.Errorf("after an answer it takes %d", got)
	}
}
