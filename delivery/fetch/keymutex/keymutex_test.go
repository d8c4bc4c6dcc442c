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
	if count != 50 || len(m.values.held) != 0 {
		t.Errorf("counted %d, %d names are remembered", count, len(m.values.held))
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

func TestAValueIsDroppedWhenNobodyUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v Values[int]
		at, unlock, err := v.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		*at = 7
		waited := make(chan int)
		go func() {
			at, unlock, err := v.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			defer unlock()
			waited <- *at
		}()
		synctest.Wait()
		if v.Users("a") != 2 || v.Users("b") != 0 {
			t.Errorf("%d use a and %d use b, want 2 and 0", v.Users("a"), v.Users("b"))
		}
		unlock()
		if got := <-waited; got != 7 {
			t.Errorf("who waited gets %d, want 7", got)
		}
		synctest.Wait()
		at, unlock, err = v.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		if *at != 0 || v.Users("a") != 1 {
			t.Errorf("got %d of %d users, want a new value of one", *at, v.Users("a"))
		}
	})
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
		if len(m.values.held) != 0 {
			t.Errorf("%d names are remembered, want 0", len(m.values.held))
		}
	})
}
