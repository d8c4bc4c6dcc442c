// Package eventstream answers requests with server-sent events. Such a stream has no queue: it goes on as fast as its client reads, until the client
// disconnects, is too slow or may not read on, or until the server stops. https://html.spec.whatwg.org/multipage/server-sent-events.html
package eventstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// ContentType is the media type of a stream.
const ContentType = "text/event-stream"

const (
	// keepAlive is how often a stream sends a comment, for proxies that end silent connections.
	keepAlive = 15 * time.Second
	// checkEvery is how often a stream asks whether its client may still read it, and checkTimeout how long that may take.
	checkEvery   = 3 * time.Second
	checkTimeout = 5 * time.Second
	// writeTimeout is how long a client may take to read what is sent at once.
	writeTimeout = 10 * time.Second
)

// ErrStopping ends a stream because the server stops.
var ErrStopping = errors.New("the server stops")

// Answer is an answer that is a stream.
type Answer struct {
	// Check returns why the client may not read on, nil if it may. It is asked every 3 seconds, and has to answer within 5. The client is told a
	// huma.StatusError, and no other error.
	Check func(context.Context) error
	// Stopping is closed when the server stops, because the stop waits for the stream to end; nil if that never happens.
	Stopping <-chan struct{}
	// Send sends what there is to send. The stream ends when it returns; an error is logged.
	Send func(context.Context, *Stream) error
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Response describes a stream in the OpenAPI document.
func Response() *huma.MediaType {
	return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
}

// Serve answers a request. ctx is that of its operation, of which Send gets the values: the time of an operation and of its request does not count for a
// stream, whose client ends it by disconnecting.
func (a Answer) Serve(ctx context.Context, to huma.Context) {
	r, w := humago.Unwrap(to)
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back.
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush() // A client reads the headers at once, also if nothing is sent for long. An error ends the first write, too.
	if r.Method == http.MethodHead {
		return
	}
	if a.Clock == nil {
		a.Clock = clock.RealClock{}
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	s := &Stream{
		answer: a, w: w, control: control,
		checked: a.Clock.Now(), due: a.Clock.NewTicker(checkEvery), alive: a.Clock.NewTicker(keepAlive),
	}
	defer s.alive.Stop()
	defer s.due.Stop()
	if err := a.Send(running, s); err != nil && running.Err() == nil && !errors.Is(err, ErrStopping) {
		logr.FromContextOrDiscard(ctx).Info("Ending a stream", "why", err.Error())
	}
}

// Append appends an event to a text. Its data is one line, such as JSON. A client that lost the stream goes on after the id; without one, after that of
// the event before.
func Append(text []byte, kind, id string, data []byte) []byte {
	text = append(append(text, "event: "...), kind...)
	text = append(append(text, "\ndata: "...), data...)
	if id != "" {
		text = append(append(text, "\nid: "...), id...)
	}
	return append(text, "\n\n"...)
}

// Stream is an answer that has begun.
type Stream struct {
	answer  Answer
	w       http.ResponseWriter
	control *http.ResponseController
	// checked is when it was last asked whether the client may read on.
	checked time.Time
	// due says when to ask again, alive when to send a comment.
	due, alive clock.Ticker
}

// Next returns what a channel sends next, and whether it is open. Meanwhile it keeps the connection alive, and asks whether the client may read on. If ctx
// ends, the error is the cause.
func Next[T any](ctx context.Context, s *Stream, from <-chan T) (next T, open bool, err error) {
	for err == nil {
		select {
		case next, open = <-from:
			return next, open, nil
		case <-s.alive.C():
			err = s.write([]byte(": \n\n"))
		case <-s.due.C():
			err = s.check(ctx)
		case <-s.answer.Stopping:
			err = ErrStopping
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	return next, false, err
}

// Write sends events to a client that may read on. A slow client takes long for many of them, so it is asked here too.
func (s *Stream) Write(ctx context.Context, events []byte) error {
	if s.answer.Clock.Since(s.checked) >= checkEvery {
		if err := s.check(ctx); err != nil {
			return err
		}
	}
	select {
	case <-s.answer.Stopping:
		return ErrStopping
	default:
	}
	if len(events) == 0 {
		return nil
	}
	return s.write(events)
}

// End tells the client why the stream ends before all was sent, by an event end, and returns that as an error. Nothing may be sent after it.
func (s *Stream) End(why huma.StatusError) error {
	data, err := json.Marshal(why)
	if err != nil {
		return fmt.Errorf("writing why a stream ends: %w", err)
	}
	return errors.Join(why, s.write(Append(nil, "end", "", data)))
}

// check returns an error if the client may not read on, and tells it why.
func (s *Stream) check(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	s.checked = s.answer.Clock.Now()
	err := s.answer.Check(limited)
	var refused huma.StatusError
	if errors.As(err, &refused) {
		return s.End(refused)
	}
	return err
}

// write cuts a client off that is too slow.
func (s *Stream) write(text []byte) error {
	if err := s.control.SetWriteDeadline(s.answer.Clock.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}
