package live

import (
	"context"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/eventstream"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/server"
	"github.com/kubeop/kubeop/internal/manager/streams"
)

// chunk is how many items one write has. The client has to read them within the timeout of a write.
const chunk = 100

// streamLimits limits how many streams are open at once.
var streamLimits = streams.Limits{OfCaller: 20, OfTenant: 250, All: 1000}

// stream is a list that a client follows. It has no queue: when the client has read the last changes, it reads the next ones from the index. If the
// index forgot them meanwhile, it sends all items again.
type stream struct {
	index *index.Index
	// view returns what the caller may see, checked anew; now is its last result.
	view func(context.Context) (view, error)
	now  view
	// after is the number of the last change that was sent. fresh is true until all items were sent once.
	after uint64
	fresh bool
}

// watch answers with a stream, which counts towards the limits of its caller until it ends.
func (o *Operations) watch(ctx context.Context, last string, of func(context.Context) (view, error), now view) (*answer, error) {
	caller := auth.Of(ctx)
	end, ok := o.streams.Begin(caller.Token.ID, caller.Share(), streamLimits)
	if !ok {
		return nil, problem.New(problem.TooManyRequests, "The caller has too many streams, or its tenant has, or all callers together have.").After(5 * time.Second)
	}
	after, known := o.Index.Number(last)
	s := &stream{index: o.Index, view: of, now: now, after: after, fresh: !known}
	return &answer{func(to huma.Context) {
		defer end()
		eventstream.Answer{Check: s.check, Stopping: server.Stopping(ctx), Send: s.run}.Serve(ctx, to)
	}}, nil
}

// run sends until the stream ends.
func (s *stream) run(ctx context.Context, events *eventstream.Stream) error {
	for {
		changed, err := s.send(ctx, events)
		if err == nil {
			_, _, err = eventstream.Next(ctx, events, changed)
		}
		if err != nil {
			return err
		}
	}
}

// atOnce is a closed channel: there are more changes to send.
var atOnce = func() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// send sends the next changes, or all items if the index forgot some of the changes. It returns a channel that is ready when there are more.
func (s *stream) send(ctx context.Context, events *eventstream.Stream) (<-chan struct{}, error) {
	var next []index.Change
	var changed <-chan struct{}
	known := !s.fresh
	if known {
		next, changed, known = s.index.Since(s.now.list, s.after)
	}
	switch {
	case !known:
		return atOnce, s.sendAll(ctx, events)
	case len(next) == 0:
		return changed, nil
	}
	var text []byte
	for _, c := range next {
		s.after = c.Number
		if s.now.may(c.Item.Name) {
			text = appendChange(text, c, s.index.Text(c.Number))
		}
	}
	return atOnce, events.Write(ctx, text)
}

// sendAll sends all items, between the events resync and synced.
func (s *stream) sendAll(ctx context.Context, events *eventstream.Stream) error {
	items, at := s.index.Snapshot(s.now.list, s.now.may)
	if err := events.Write(ctx, eventstream.Append(nil, "resync", "", []byte("{}"))); err != nil {
		return err
	}
	for some := range slices.Chunk(items, chunk) {
		var text []byte
		for _, item := range some {
			text = eventstream.Append(text, "put", "", item.Body)
		}
		if err := events.Write(ctx, text); err != nil {
			return err
		}
	}
	s.after, s.fresh = at, false
	return events.Write(ctx, eventstream.Append(nil, "synced", s.index.Text(at), []byte("{}")))
}

func appendChange(text []byte, c index.Change, id string) []byte {
	if !c.Deleted {
		return eventstream.Append(text, "put", id, c.Item.Body)
	}
	// Names in Kubernetes need no escape in JSON.
	return eventstream.Append(text, "delete", id, []byte(`{"name":"`+c.Item.Name+`"}`))
}

// check returns an error if the caller may not read on, and updates what the caller may see.
func (s *stream) check(ctx context.Context) error {
	if refused := auth.Of(ctx).Again(ctx); refused != nil {
		return refused
	}
	now, err := s.view(ctx)
	if err != nil {
		return err
	}
	s.now = now
	return nil
}
