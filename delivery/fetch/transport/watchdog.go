package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Watchdog ends a fetch that gets nowhere, so that a server which accepts and never answers holds its caller for seconds and
// not for the whole timeout of the source. It travels in the context: HTTP clients are shared between fetches, and the
// context is all that a request and its fetch have in common.
type Watchdog struct {
	limits Timeouts
	end    context.CancelCauseFunc
}

type watchKey struct{}

// Timeouts bound what a server may take.
type Timeouts struct {
	// Whole is one fetch that moves, however long the caller would wait. Default: 1 hour.
	Whole time.Duration
	// Answer is from the attempt to connect to a server until it begins to answer. Default: 15 s.
	Answer time.Duration
	// Stall is between two pieces of an answer. Default: 30 s.
	Stall time.Duration
}

// DefaultTimeouts are what Timeouts says.
func DefaultTimeouts() Timeouts {
	return Timeouts{Whole: time.Hour, Answer: 15 * time.Second, Stall: 30 * time.Second}
}

// watched returns a context that ends with the caller's, or when a limit of time is met, which is then its cause. Call the
// function it returns when the fetch is over.
func watched(ctx context.Context, l Timeouts) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	w := &Watchdog{limits: l, end: end}
	done := w.within(l.Whole, "it takes longer than")
	return context.WithValue(ctx, watchKey{}, w), func() {
		done()
		end(nil)
	}
}

// Within does a fetch within the limits of time. An error when one of them was met is an ErrSlow.
func Within[T any](ctx context.Context, l Timeouts, do func(context.Context) (T, error)) (T, error) {
	ctx, done := watched(ctx, l)
	defer done()
	got, err := do(ctx)
	if err != nil && ctx.Err() != nil {
		// A broken-off transfer surfaces as whatever it broke; the context is what ended it.
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

// within ends the fetch unless the function it returns is called before the limit.
func (w *Watchdog) within(most time.Duration, what string) func() {
	timer := time.AfterFunc(most, func() { w.end(failure.TooSlow(what, most)) })
	return func() { timer.Stop() }
}

// AwaitAnswer gives the server time to begin an answer, until the function it returns is called.
func (w *Watchdog) AwaitAnswer() func() {
	if w == nil {
		return func() {}
	}
	return w.within(w.limits.Answer, "the server gave no answer within")
}

// more gives the server time for the next bytes of an answer.
func (w *Watchdog) more() func() {
	if w == nil {
		return func() {}
	}
	return w.within(w.limits.Stall, "the server sent nothing more for")
}

// body watches each read of an HTTP response.
func (w *Watchdog) body(res *http.Response) {
	res.Body = struct {
		io.Reader
		io.Closer
	}{&watchedReader{r: res.Body, wait: w.more}, res.Body}
}

// WatchReader watches each read of an answer that has no head of its own: its first bytes count as that.
func (w *Watchdog) WatchReader(r io.Reader) io.Reader {
	return &watchedReader{r: r, wait: w.AwaitAnswer, then: w.more}
}

// watchedReader bounds how long each read takes. The time between reads does not count.
type watchedReader struct {
	r    io.Reader
	wait func() func()
	// then takes the place of wait after the first bytes, where it is set.
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
