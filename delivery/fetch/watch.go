package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// watch ends a fetch that gets nowhere, so that a server which accepts and never answers holds its caller for seconds and
// not for the whole timeout of the source. It travels in the context: HTTP clients are shared between fetches, and the
// context is all that a request and its fetch have in common.
type watch struct {
	limits limits
	end    context.CancelCauseFunc
}

type watchKey struct{}

// watched returns a context that ends with the caller's, or when a limit of time is met, which is then its cause. Call the
// function it returns when the fetch is over.
func watched(ctx context.Context, l limits) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	w := &watch{limits: l, end: end}
	done := w.within(l.whole, "it takes longer than")
	return context.WithValue(ctx, watchKey{}, w), func() {
		done()
		end(nil)
	}
}

// within does a fetch within the limits of time.
func within[T any](ctx context.Context, l limits, do func(context.Context) (T, error)) (T, error) {
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

// watchOf returns the watch of a fetch; outside of one it is nil, which limits nothing.
func watchOf(ctx context.Context) *watch {
	w, _ := ctx.Value(watchKey{}).(*watch)
	return w
}

// within ends the fetch unless the function it returns is called before the limit.
func (w *watch) within(most time.Duration, what string) func() {
	timer := time.AfterFunc(most, func() { w.end(limit.TooSlow(what, most)) })
	return func() { timer.Stop() }
}

// answer waits for the beginning of an answer.
func (w *watch) answer() func() {
	if w == nil {
		return func() {}
	}
	return w.within(w.limits.answer, "the server gave no answer within")
}

// more waits for the next bytes of an answer.
func (w *watch) more() func() {
	if w == nil {
		return func() {}
	}
	return w.within(w.limits.stall, "the server sent nothing more for")
}

// body watches each read of an HTTP response.
func (w *watch) body(res *http.Response) {
	res.Body = readCloser{&patient{r: res.Body, wait: w.more}, res.Body}
}

// begins watches each read of an answer that has no head of its own: its first bytes count as that.
func (w *watch) begins(r io.Reader) io.Reader {
	return &patient{r: r, wait: w.answer, then: w.more}
}

// patient waits for each read as long as it may. The time counts only while somebody reads.
type patient struct {
	r    io.Reader
	wait func() func()
	// then takes the place of wait after the first bytes, where it is set.
	then func() func()
}

func (p *patient) Read(b []byte) (int, error) {
	done := p.wait()
	defer done()
	n, err := p.r.Read(b)
	if n > 0 && p.then != nil {
		p.wait, p.then = p.then, nil
	}
	return n, err
}
