// Package watches knows whether the watches of an API server miss anything. It looks at the requests themselves: client-go says neither that a connection broke, nor since when it
// was silent before.
package watches

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Watches looks at requests. Its functions are called with the name of a resource, such as pods.
type Watches struct {
	// Lost says that changes may have been missed, or were late, for as long as is said, and that it goes on.
	Lost func(kind string, silent time.Duration, why error)
	// Followed says that a watch began, and that what is there now, and what changes, is read.
	Followed func(kind string)
	Now      func() time.Time

	mu sync.Mutex
	// received is when the last bytes of a watch of each kind arrived.
	received map[string]time.Time
}

// ErrReadAnew is why a kind is lost that is read anew: the changes before are not known.
var ErrReadAnew = errors.New("all of it is read anew")

// Wrap is for the Wrap of a rest.Config.
func (w *Watches) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		kind := path.Base(r.URL.Path)
		watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
		anew, _ := strconv.ParseBool(r.URL.Query().Get("sendInitialEvents"))
		if !watch || anew {
			w.lose(kind, ErrReadAnew)
		}
		answer, err := next.RoundTrip(r)
		switch {
		case err != nil && r.Context().Err() != nil: // Who follows it stops.
		case err != nil:
			w.lose(kind, err)
		case answer.StatusCode >= http.StatusBadRequest:
			w.lose(kind, fmt.Errorf("the API server answers %s", answer.Status))
		case watch:
			w.receive(kind)
			answer.Body = &body{ReadCloser: answer.Body, watches: w, kind: kind, request: r}
			w.Followed(kind)
		}
		return answer, err
	})
}

func (w *Watches) receive(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.received == nil {
		w.received = map[string]time.Time{}
	}
	w.received[kind] = w.Now()
}

func (w *Watches) lose(kind string, why error) {
	w.mu.Lock()
	last, has := w.received[kind]
	w.mu.Unlock()
	var silent time.Duration
	if has {
		silent = w.Now().Sub(last)
	}
	w.Lost(kind, silent, why)
}

// body is what a watch reads. A server that ends it after its time is no loss: the next watch goes on where it was.
type body struct {
	io.ReadCloser
	watches *Watches
	kind    string
	request *http.Request
	closed  atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if n > 0 {
		b.watches.receive(b.kind)
	}
	if err != nil && !errors.Is(err, io.EOF) && !b.closed.Load() && b.request.Context().Err() == nil {
		b.watches.lose(b.kind, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (do roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return do(r) }
