package fetch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestSharedAnswers(t *testing.T) {
	now, asked, answers := time.Unix(0, 0), 0, error(nil)
	s := NewShared[int](func() time.Time { return now })
	var changes [][2]int
	s.Changed = func(_ string, was, is int) { changes = append(changes, [2]int{was, is}) }
	get := func(maxAge time.Duration, cause string) (int, error) {
		return s.Get(t.Context(), "a", Question{Generation: int64(asked), MaxAge: maxAge}, cause, func() (int, error) {
			asked++
			return asked, answers
		})
	}
	expect := func(what string, maxAge time.Duration, cause string, want int, failed bool) {
		t.Helper()
		if got, err := get(maxAge, cause); asked != want || (err != nil) != failed || (err == nil && got != want) {
			t.Fatalf("%s: asked %d times, got %d, %v; want %d", what, asked, got, err, want)
		}
	}
	expect("the first", time.Minute, "", 1, false)
	expect("another who follows it", time.Minute, "", 1, false)
	now = now.Add(30 * time.Second)
	expect("one who wants it younger", 20*time.Second, "", 2, false)
	expect("one who wants it new", time.Minute, "push", 3, false)
	expect("another for the same cause", time.Minute, "push", 3, false)
	expect("one for another cause", time.Minute, "another push", 4, false)
	now = now.Add(causeLasts)
	expect("a latecomer", time.Minute, "another push", 5, false)
	answers = errors.New("gone")
	expect("a failure", time.Minute, "again", 6, true)
	expect("another of the same cause", time.Minute, "again", 6, true)
	expect("during the pause", time.Minute, "", 6, true)
	now = now.Add(1100 * time.Millisecond)
	expect("after the pause", time.Minute, "", 7, true)
	now = now.Add(1100 * time.Millisecond)
	expect("during the longer pause", time.Minute, "", 7, true)
	answers = ErrBusy
	expect("busy", time.Minute, "once more", 8, true)
	now = now.Add(time.Second)
	expect("after busy", time.Minute, "", 9, true)
	answers = nil
	expect("well again", time.Minute, "", 10, false)
	s.Forget("a")
	expect("forgotten", time.Minute, "", 11, false)
	if len(changes) != 5 || changes[4] != [2]int{5, 10} {
		t.Errorf("changes: %v", changes)
	}
}

func TestSharedAsksOnceAtATime(t *testing.T) {
	s := NewShared[int](time.Now)
	var asked atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			_, err := s.Get(t.Context(), "a", Question{MaxAge: time.Hour}, rand.Text(), func() (int, error) {
				asked.Add(1)
				time.Sleep(50 * time.Millisecond)
				return 1, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n > 3 {
		t.Errorf("asked %d times", n)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Get(ended, "b", Question{}, "why", func() (int, error) { return 0, context.Canceled }); err == nil {
		t.Error("no error")
	}
}

// TestOneWithLittleTimeSpeaksForNobodyElse: apps of many tenants share what a public repository answers.
func TestOneWithLittleTimeSpeaksForNobodyElse(t *testing.T) {
	s := NewShared[string](func() time.Time { return time.Unix(1, 0) })
	hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := s.Get(hurried, "git", Question{MaxAge: time.Minute}, "", func() (string, error) {
		<-hurried.Done()
		return "", fmt.Errorf("the time for it is over: %w", context.Cause(hurried))
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	got, err := s.Get(t.Context(), "git", Question{MaxAge: time.Minute}, "", func() (string, error) { return "one", nil })
	if got != "one" || err != nil {
		t.Errorf("another gets %q and %v", got, err)
	}
}
