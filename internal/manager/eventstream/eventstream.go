// Package eventstream answers requests with server-sent events. A stream has no queue: it is as fast as its client reads. It ends when the client
// disconnects, is too slow or loses its rights, or when the server stops. https://html.spec.whatwg.org/multipage/server-sent-events.html
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
	// checkEvery is how often a stream checks whether its client may still read it. checkTimeout is how long that check may take.
	checkEvery   = 3 * time.Second
	checkTimeout = 5 * time.Second
	// writeTimeout is how long a client may take to read one write.
	writeTimeout = 10 * time.Second
)

// ErrStopping ends a stream because the server stops.
var ErrStopping = errors.New("the server stops")

// Answer is an answer that is a stream.
type Answer struct {
	// Check returns an error if the client may not read on. It is called every 3 seconds, and must return within 5. The client gets the text of a
	// huma.StatusError, and of no other error.
	Check func(context.Context) error
	// Stopping is closed when the server stops: the server waits for the stream to end. It is nil if the server never stops.
	Stopping <-chan struct{}
	// Send sends the events. The stream ends when it returns; its error is logged.
	Send func(context.Context, *Stream) error
	// Clock is the real clock if nil.
	Clock clock.WithTicker
}

// Response describes a stream in the OpenAPI document.
func Response() *huma.MediaType {
	return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
}

// Serve answers a request. ctx is the context of its operation; Send gets its values, but not its deadline: a stream may last until its client
// disconnects.
func (a Answer) Serve(ctx context.Context, to huma.Context) {
	r, w := humago.Unwrap(to)
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("X-Accel-Buffering", "no") // Otherwise nginx would buffer the events.
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush() // The client gets the headers at once, even if the first event is late. After an error the first write fails too.
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

// Append appends an event to a text. data is one line, such as JSON. A client that lost the connection continues after id or, if id is "", after the
// last event that had one.
func Append(text []byte, kind, id string, data []byte) []byte {
	text = append(append(text, "event: "...), kind...)
	text = append(append(text, "\ndata: "...), data...)
	if id != "" {
		text = append(append(text, "\nid: "...), id...)
	}
	return append(text, "\n\n"...)
}

// Stream is an answer that was begun.
type Stream struct {
	answer  Answer
	w       http.ResponseWriter
	control *http.ResponseController
	// checked is the time of the last check whether the client may read on.
	checked time.Time
	// due ticks when the next check is due, alive when the next comment is.
	due, alive clock.Ticker
}

// Next returns the next value of a channel, and whether the channel is open. While it waits, it keeps the connection alive, and checks whether the
// client may read on. If ctx ends, the error is its cause.
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

// Write sends events. It checks first whether the client may read on, because a slow client may take long for many events.
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

// End sends an event that says why the stream ends early, and returns the reason as an error. Send nothing after it.
func (s *Stream) End(why huma.StatusError) error {
	data, err := json.Marshal(why)
	if err != nil {
		return fmt.Errorf("writing why a stream ends: %w", err)
	}
	return errors.Join(why, s.write(Append(nil, "end", "", data)))
}

// check returns an error if the client may not read on, and sends the reason to the client.
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

// write disconnects a client that reads too slowly.
func (s *Stream) write(text []byte) error {
	if err := s.control.SetWriteDeadline(s.answer.Clock.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}
