package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/server"
	"github.com/kubeop/kubeop/internal/manager/streams"
)

const (
	// keepAlive is how often a stream says that it is there, for proxies that end silent connections.
	keepAlive = 15 * time.Second
	// checkEvery is how often a stream asks whether its caller may still read it, and checkTimeout how long that may take.
	checkEvery   = 3 * time.Second
	checkTimeout = 5 * time.Second
	// writeTimeout is how long a client may take to read what is written at once, which is about chunk items.
	writeTimeout = 10 * time.Second
	chunk        = 100
)

// streamLimits are how many streams there may be at once.
var streamLimits = streams.Limits{OfCaller: 20, OfTenant: 250, All: 1000}

// stream is a list that a client follows. It has no queue: it reads the changes that the index remembers when the client has taken those before, and begins anew
// if the client was too slow for them.
type stream struct {
	o *Operations
	// view asks again what the caller may see; now is what it may.
	view func(context.Context) (view, error)
	now  view
	// after is the number of the last change that was sent. fresh: none was, so all items have to be.
	after uint64
	fresh bool
	// checked is when it was last asked whether the caller may read on.
	checked time.Time

	w       http.ResponseWriter
	control *http.ResponseController
}

// watch answers a stream. It counts as one of its caller's until it ends.
func (o *Operations) watch(ctx context.Context, last string, of func(context.Context) (view, error), now view) (*answer, error) {
	caller := auth.Of(ctx)
	end, ok := o.streams.Begin(caller.Token.ID, caller.Share(), streamLimits)
	if !ok {
		return nil, huma.ErrorWithHeaders(problem.New(problem.TooManyRequests, "The caller has too many streams, or its tenant has, or all callers together have."), map[string][]string{"Retry-After": {"5"}})
	}
	s := &stream{o: o, view: of, now: now, checked: time.Now()}
	after, known := o.Index.Number(last)
	s.after, s.fresh = after, !known
	return &answer{func(answer huma.Context) {
		defer end()
		r, w := humago.Unwrap(answer)
		s.w, s.control = w, http.NewResponseController(w)
		// The time of an operation and of its request does not count for a stream. Its client ends it by disconnecting.
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(r.Context(), cancel)()
		if err := s.run(running, r.Method == http.MethodHead); err != nil && running.Err() == nil {
			logr.FromContextOrDiscard(ctx).Info("Ending a stream", "why", err.Error())
		}
	}}, nil
}

// run sends until the client disconnects, is too slow or may not read any more, or until the server stops.
func (s *stream) run(ctx context.Context, onlyHeaders bool) error {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back.
	s.w.WriteHeader(http.StatusOK)
	if onlyHeaders {
		return nil
	}
	alive, check := time.NewTicker(keepAlive), time.NewTicker(checkEvery)
	defer alive.Stop()
	defer check.Stop()
	for {
		changed, err := s.send(ctx)
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-alive.C:
			err = s.put(ctx, []byte(": \n\n"))
		case <-check.C:
			err = s.check(ctx)
		case <-ctx.Done():
			return nil
		case <-server.Stopping(ctx):
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// atOnce is ready at once: there are further changes to send.
var atOnce = func() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// send sends the next changes, or all items if the ones since the last are not remembered. It returns what is ready when there are more.
func (s *stream) send(ctx context.Context) (<-chan struct{}, error) {
	var next []index.Change
	var changed <-chan struct{}
	known := !s.fresh
	if known {
		next, changed, known = s.o.Index.Since(s.now.list, s.after)
	}
	switch {
	case !known:
		return atOnce, s.sendAll(ctx)
	case len(next) == 0:
		return changed, nil
	}
	var text bytes.Buffer
	for _, c := range next {
		s.after = c.Number
		if s.now.may(c.Item.Name) {
			appendChange(&text, c, s.o.Index.Text(c.Number))
		}
	}
	return atOnce, s.put(ctx, text.Bytes())
}

// sendAll sends all items, between the events resync and synced.
func (s *stream) sendAll(ctx context.Context) error {
	items, at := s.o.Index.Snapshot(s.now.list, s.now.may)
	if err := s.put(ctx, event("resync", "", []byte("{}"))); err != nil {
		return err
	}
	for some := range slices.Chunk(items, chunk) {
		var text bytes.Buffer
		for _, item := range some {
			text.Write(event("put", "", item.Body))
		}
		if err := s.put(ctx, text.Bytes()); err != nil {
			return err
		}
	}
	s.after, s.fresh = at, false
	return s.put(ctx, event("synced", s.o.Index.Text(at), []byte("{}")))
}

func appendChange(text *bytes.Buffer, c index.Change, id string) {
	if !c.Deleted {
		text.Write(event("put", id, c.Item.Body))
		return
	}
	// A name of Kubernetes needs no escape.
	text.Write(event("delete", id, []byte(`{"name":"`+c.Item.Name+`"}`)))
}

// event returns an event. A client goes on after its id; without one, after that of the event before.
func event(kind, id string, data []byte) []byte {
	text := append([]byte("event: "+kind+"\n"), "data: "...)
	text = append(append(text, data...), '\n')
	if id != "" {
		text = append(text, "id: "+id+"\n"...)
	}
	return append(text, '\n')
}

// check returns an error if the caller may not read on, and tells the client why.
func (s *stream) check(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	s.checked = time.Now()
	refused := auth.Of(ctx).Again(limited)
	if refused == nil {
		now, err := s.view(limited)
		if err == nil {
			s.now = now
			return nil
		}
		if !errors.As(err, &refused) {
			return err
		}
	}
	told, err := json.Marshal(refused)
	if err != nil {
		return err
	}
	return errors.Join(refused, s.write(event("end", "", told)))
}

// put writes for a caller who may still read. A slow one takes long for many items, so it is asked here too.
func (s *stream) put(ctx context.Context, text []byte) error {
	if time.Since(s.checked) >= checkEvery {
		if err := s.check(ctx); err != nil {
			return err
		}
	}
	select {
	case <-server.Stopping(ctx):
		return errStopping
	default:
	}
	if len(text) == 0 {
		return nil
	}
	return s.write(text)
}

var errStopping = errors.New("the server stops")

// write cuts a client off that is too slow.
func (s *stream) write(text []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}
