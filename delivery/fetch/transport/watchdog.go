package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Watchdog ends a fetch without progress, so that a server that accepts connections and never answers holds its caller for seconds and not
// for the whole timeout of the source. It is in the context, because fetches share HTTP clients, and a request knows its fetch only by the
// context.
type Watchdog struct {
	limits Timeouts
	end    context.CancelCauseFunc
}

type watchKey struct{}

// Timeouts bound what a server may take.
type Timeouts struct {
	// Whole bounds a fetch with progress, however long the caller would wait. Default: 1 hour.
	Whole time.Duration
	// Answer bounds the time from the attempt to connect until the server begins to answer. Default: 15 s.
	Answer time.Duration
	// Stall bounds the time between two pieces of an answer. Default: 30 s.
	Stall time.Duration
}

// DefaultTimeouts returns the defaults.
func DefaultTimeouts() Timeouts {
	return Timeouts{Whole: time.Hour, Answer: 15 * time.Second, Stall: 30 * time.Second}
}

// watched returns a context that ends with the caller's, or when a time limit is exceeded, which is then its cause. Call the returned
// function when the fetch has ended.
func watched(ctx context.Context, l Timeouts) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	w := &Watchdog{limits: l, end: end}
	done := w.within(l.Whole, "it did not end")
	return context.WithValue(ctx, watchKey{}, w), func() {
		done()
		end(nil)
	}
}

// Within runs a fetch within the time limits. When one of them is exceeded, the error is ErrSlow.
func Within[T any](ctx context.Context, l Timeouts, do func(context.Context) (T, error)) (T, error) {
	ctx, done := watched(ctx, l)
	defer done()
	got, err := do(ctx)
	if err != nil && ctx.Err() != nil {
		// An interrupted transfer fails with some other error; the context has the reason.
		var none T
		return none, fmt.Errorf("the time for it is over: %w", context.Cause(ctx))
	}
	return got, err
}

// WatchdogOf returns the watchdog of a fetch; outside of one it is nil, which limits nothing.
func WatchdogOf(ctx context.Context) *Watchdog {
	w, _ := ctx.Value(watchKey{}).(*Watchdog)
	return w
}

// within ends the fetch unless the returned function is called before the limit.
func (w *Watchdog) within(most time.Duration, what string) func() {
	timer := time.AfterFunc(most, func() { w.end(failure.TooSlow(what, most)) })
	return func() { timer.Stop() }
}

// AwaitAnswer limits the time for the server to begin an answer, until the returned function is called.
func (w *Watchdog) AwaitAnswer() func() {
	if w == nil {
		return func() {}
	}
	return w.within(w.limits.Answer, "the server gave no answer")
}

// more limits the time for the next bytes of an answer.
func (w *Watchdog) more() func() {
	if w == nil {
		return func() {}
	}
	return w.within(w.limits.Stall, "the server sent nothing more")
}

// body watches each read of an HTTP response.
func (w *Watchdog) body(res *http.Response) {
	res.Body = struct {
		io.Reader
		io.Closer
	}{&watchedReader{r: res.Body, wait: w.more}, res.Body}
}

// WatchReader watches each read of an answer without headers: its first bytes count as the beginning of the answer.
func (w *Watchdog) WatchReader(r io.Reader) io.Reader {
	return &watchedReader{r: r, wait: w.AwaitAnswer, then: w.more}
}

// watchedReader limits how long each read takes. The time between reads does not count.
type watchedReader struct {
	r    io.Reader
	wait func() func()
	// then, if set, replaces wait after the first bytes.
	then func() func()
}

func (p *watchedReader) Read(b []byte) (int, error) {
	done := p.wait()
	defer done()
	n, err := p.r.Read(b)
	if n > 0 && p.then != nil {
		p.wait, p.then = p.then, nil
	}
	return n, err
}
