package ratelimit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestEachCallerHasABucketOfItsOwn(t *testing.T) {
	now := time.Unix(0, 0)
	l := New(2, 3, func() time.Time { return now })
	for i := range 3 {
		if _, ok := l.Take("a"); !ok {
			t.Fatalf("request %d of the burst is refused", i+1)
		}
	}
	// A refused request takes nothing, so refusals do not make the wait longer.
	for range 5 {
		if wait, ok := l.Take("a"); ok || wait != 500*time.Millisecond {
			t.Fatalf("after the burst: %v, %s", ok, wait)
		}
	}
	if _, ok := l.Take("b"); !ok {
		t.Error("another caller is refused")
	}
	now = now.Add(500 * time.Millisecond)
	if _, ok := l.Take("a"); !ok {
		t.Error("it is refused after the wait")
	}
}

func TestAFloodOfCallersTakesBoundedMemory(t *testing.T) {
	now := time.Unix(0, 0)
	l := New(1, 2, func() time.Time { return now })
	admitted := 0
	for i := range 3 * maxCallers {
		if _, ok := l.Take(fmt.Sprint(i)); ok {
			admitted++
		}
	}
	if len(l.callers) > maxCallers {
		t.Errorf("%d callers are remembered", len(l.callers))
	}
	if admitted != maxCallers+2 {
		t.Errorf("%d requests were admitted: those past %d callers have to share one bucket of 2", admitted, maxCallers)
	}
	now = now.Add(time.Hour)
	if _, ok := l.Take("new"); !ok || len(l.callers) != 1 {
		t.Errorf("after an hour the new caller gets %v, and %d are remembered", ok, len(l.callers))
	}
}

func TestACallerThatHasToWaitGetsTheTime(t *testing.T) {
	l := New(0.1, 1, func() time.Time { return time.Unix(0, 0) })
	handler := l.Limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		if answer.Code != want {
			t.Errorf("request %d: %d", i+1, answer.Code)
		}
		if after := answer.Header().Get("Retry-After"); want != http.StatusOK && after != "10" {
			t.Errorf("Retry-After is %q", after)
		}
	}
}

func TestACallerIsItsAddressOrItsNetwork(t *testing.T) {
	for from, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8::1:2:3:4": "2001:db8::/64", "fe80::1": "fe80::/64", "@": "@"} {
		if got := network(from); got != want {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
}
