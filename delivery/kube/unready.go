package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Unready is the error of a watch whose first list has not arrived. Reads do not wait for the list; Wake notifies the caller.
type Unready struct {
	// What is watched, such as "ConfigMap".
	What string
	// Since is when the watch began.
	Since time.Time
	// Err is the API server's error for the list, nil while the list is running. The watch keeps retrying.
	Err error

	list *firstList
}

// Error implements error.
func (u *Unready) Error() string {
	if u.Err == nil {
		return fmt.Sprintf("watching %s: the first list has not arrived yet", u.What)
	}
	return fmt.Sprintf("watching %s: the API server does not list it: %v", u.What, u.Err)
}

// Unwrap returns the API server's error for the list.
func (u *Unready) Unwrap() error { return u.Err }

// Unlisted reports whether the API server refuses the list, so that the objects can only be read one by one.
func (u *Unready) Unlisted() bool { return u.Err != nil }

// Wake calls f once, on another goroutine, when the list has arrived; if Err is nil, also when the list fails. Of several calls with the
// same key, the last counts. f must not block.
func (u *Unready) Wake(key any, f func()) {
	if u.list != nil && !u.list.wake(key, u.Err != nil, f) {
		go f()
	}
}

// Await calls look, and again each time that the watch it lacked is ready, until look succeeds or fails for another reason. It is for
// callers outside of reconcile workers.
func Await(ctx context.Context, look func() error) error {
	for {
		err := look()
		var unready *Unready
		if !errors.As(err, &unready) || unready.Err != nil {
			return err
		}
		woken := make(chan struct{})
		unready.Wake(woken, func() { close(woken) })
		select {
		case <-woken:
		case <-ctx.Done():
			unready.list.forget(woken)
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// firstList is the first list of a watch, with the callers to be woken when it arrives.
type firstList struct {
	what  string
	since time.Time

	mu sync.Mutex
	// over: the list has arrived, or is not tried any more.
	over    bool
	err     error
	waiting map[any]func()
}

func newFirstList(what string, since time.Time) *firstList {
	return &firstList{what: what, since: since, waiting: map[any]func(){}}
}

func (l *firstList) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

func (l *firstList) unready() *Unready {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Unready{What: l.what, Since: l.since, Err: l.err, list: l}
}

// wake registers f to be called when the list arrives or fails. It returns false, and registers nothing, if the list has arrived, or if it
// has failed and the caller has not seen that error.
func (l *firstList) wake(key any, knows bool, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.err != nil && !knows {
		return false
	}
	l.waiting[key] = f
	return true
}

func (l *firstList) forget(key any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, key)
}

// end wakes all callers: the list has arrived, or the watch was stopped.
func (l *firstList) end() {
	l.mu.Lock()
	l.over, l.err = true, nil
	l.wakeAll()
	l.mu.Unlock()
}

// fail records why the list failed, and at the first failure wakes all callers.
func (l *firstList) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	news := l.err == nil
	if l.err = err; news {
		l.wakeAll()
	}
}

func (l *firstList) wakeAll() {
	waiting := l.waiting
	l.waiting = map[any]func(){}
	go func() {
		for _, f := range waiting {
			f()
		}
	}()
}
