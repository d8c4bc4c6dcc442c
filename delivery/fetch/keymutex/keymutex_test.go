package keymutex

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

func TestOneAtATimeHoldsAName(t *testing.T) {
	var m Mutexes
	var all sync.WaitGroup
	count := 0
	for range 50 {
		all.Go(func() {
			unlock, err := m.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			count++ // The race detector finds two of them, and so does the sum.
		})
	}
	all.Wait()
	if count != 50 || len(m.held) != 0 {
		t.Errorf("counted %d, %d names are remembered", count, len(m.held))
	}
}

func TestNamesDoNotWaitForEachOther(t *testing.T) {
	var m Mutexes
	one, err := m.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := m.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	one()
	other()
}

func TestACanceledCallerLeavesTheMutexToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Mutexes
		unlock, err := m.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() {
			_, err := m.Lock(ctx, "a")
			gaveUp <- err
		}()
		waited := make(chan func())
		go func() {
			unlock, err := m.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			waited <- unlock
		}()
		synctest.Wait()
		end()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		select {
		case <-waited:
			t.Fatal("two hold the mutex")
		default:
		}
		unlock()
		(<-waited)()
		if len(m.held) != 0 {
			t.Errorf("%d names are remembered, want 0", len(m.held))
		}
	})
}
