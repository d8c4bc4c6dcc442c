package inflight

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

var limits = Limits{Tenant: 4, All: 8, Waiting: 2, Wait: time.Second}

func TestATenantHoldsItsShareAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(limits)
		enter := func(tenant string, bytes int64) func() {
			t.Helper()
			leave, ok := l.Enter(t.Context(), tenant, bytes)
			if !ok {
				t.Fatalf("%s does not get %d", tenant, bytes)
			}
			return leave
		}
		refuse := func(tenant string, bytes int64) {
			t.Helper()
			begin := time.Now()
			if _, ok := l.Enter(t.Context(), tenant, bytes); ok || time.Since(begin) != limits.Wait {
				t.Errorf("%s gets %d after %s", tenant, bytes, time.Since(begin))
			}
		}
		leave := enter("a", 3)
		refuse("a", 2)
		other := enter("b", 100) // What is more than a share is all of it.
		enter("a", 1)
		refuse("c", 1)
		enter("", 4)
		refuse("", 1)
		time.AfterFunc(limits.Wait/2, other)
		enter("c", 2)
		leave()
		leave()
		enter("a", 3)
		refuse("a", 1)
	})
}

func TestFewRequestsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(limits)
		leave, _ := l.Enter(t.Context(), "a", 4)
		for range limits.Waiting {
			go func() {
				if _, ok := l.Enter(t.Context(), "a", 1); !ok {
					t.Error("it waits in vain")
				}
			}()
		}
		synctest.Wait()
		begin := time.Now()
		if _, ok := l.Enter(t.Context(), "a", 1); ok || time.Since(begin) > 0 {
			t.Error("a further one waits")
		}
		leave()
		synctest.Wait()
		gone, end := context.WithCancel(t.Context())
		end()
		if _, ok := l.Enter(gone, "a", 4); ok {
			t.Error("one that left gets a place")
		}
	})
}

func TestATenantIsForgotten(t *testing.T) {
	l := New(limits)
	leave, _ := l.Enter(t.Context(), "a", 4)
	leave()
	if len(l.tenants) > 0 {
		t.Error("it is remembered")
	}
}
