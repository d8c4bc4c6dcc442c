package fetch

import (
	"context"
	"errors"
	"testing"
	"time"
)

// slowly are limits under which a fetch is slow at once, or never.
func slowly(after time.Duration) limits {
	l := defaultLimits()
	l.slow = after
	return l
}

func pass(t *testing.T, g *gate, tenant string, l limits) func() {
	t.Helper()
	leave, err := g.enter(t.Context(), tenant, l)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

func TestGateHoldsSlowFetchesOfOneTenantBack(t *testing.T) {
	g, l := &gate{}, slowly(20*time.Millisecond)
	leave := pass(t, g, "slow", l)
	pass(t, g, "slow", l)
	for range 3 {
		_, err := g.enter(t.Context(), "slow", l)
		wantError(t, err, ErrBusy, "2 fetches of tenant slow are under way")
		wantTransient(t, err)
	}
	// What it can wait is over, so it is told at once: a minute of patience would show.
	_, err := g.enter(t.Context(), "slow", slowly(time.Minute))
	wantError(t, err, ErrBusy, "waits its turn")

	pass(t, g, "other", l)
	for range 5 {
		pass(t, g, "", l)
	}
	leave()
	pass(t, g, "slow", l)
}

func TestGateLetsFastFetchesWaitForEachOther(t *testing.T) {
	g, l := &gate{}, slowly(time.Minute)
	first, second := pass(t, g, "a", l), pass(t, g, "a", l)
	got := make(chan error)
	for range 4 {
		go func() {
			leave, err := g.enter(t.Context(), "a", l)
			if err == nil {
				leave()
			}
			got <- err
		}()
	}
	select {
	case err := <-got:
		t.Fatalf("one more got in, or did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	first()
	for range 4 {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
	second()
	if len(g.lanes) != 0 {
		t.Errorf("%d lanes are left", len(g.lanes))
	}
}

func TestGateGivesUpWithTheContext(t *testing.T) {
	g, l := &gate{}, slowly(time.Minute)
	pass(t, g, "a", l)
	pass(t, g, "a", l)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(ctx, "a", l); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
