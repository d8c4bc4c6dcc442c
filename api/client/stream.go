package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

// StreamEvent is one event of a stream. docs/manager.md says what the kinds mean.
type StreamEvent struct {
	// Kind is resync, put, delete or synced.
	Kind string
	// ID is what a new stream goes on after, as LastEventID of its parameters; "" if the event has none.
	ID string
	// Data is an item, of a deletion only its name.
	Data json.RawMessage
}

// ErrCut says that a stream ended before the manager ended it. Open it again.
var ErrCut = errors.New("the stream was cut")

// maxLine bounds an event. Names and messages of Kubernetes are far below.
const maxLine = 16 << 20

var errSilent = errors.New("the manager says nothing any more")

// events opens a stream when it is ranged over. It ends when the manager ends it, or with an error: that of the request, why the caller may not read on, or ErrCut.
func events(ctx context.Context, r *request) iter.Seq2[StreamEvent, error] {
	return func(yield func(StreamEvent, error) bool) {
		running, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		answer, err := r.do(running, "text/event-stream, "+problemType)
		if err != nil {
			yield(StreamEvent{}, err)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		timer := time.AfterFunc(r.silence, func() { cancel(errSilent) })
		defer timer.Stop()
		err = read(answer.Body, func() { timer.Reset(r.silence) }, func(e StreamEvent) bool { return yield(e, nil) })
		switch refused := new(Error); {
		case err == nil:
		case errors.As(err, &refused):
			yield(StreamEvent{}, err)
		default:
			if cause := context.Cause(running); cause != nil {
				err = cause
			}
			yield(StreamEvent{}, fmt.Errorf("%w: %w", ErrCut, err))
		}
	}
}

// read calls each with the events of a stream until it returns false, and received for each line that arrives. It returns nil when the stream ended as HTTP says, and an Error if its
// last event says why it may not be read on.
func read(stream io.Reader, received func(), each func(StreamEvent) bool) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxLine)
	var e StreamEvent
	for lines.Scan() {
		received()
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.Kind = value
		case "id":
			e.ID = value
		case "data":
			if e.Data != nil {
				e.Data = append(e.Data, '\n')
			}
			e.Data = append(e.Data, value...)
		case "":
			if lines.Text() != "" || e.Kind == "" {
				continue // A comment, or the end of one.
			}
			if e.Kind == "end" {
				return endOf(e)
			}
			if !each(e) {
				return nil
			}
			e = StreamEvent{}
		}
	}
	return lines.Err()
}

func endOf(e StreamEvent) error {
	refused := &Error{}
	if err := json.Unmarshal(e.Data, &refused.Problem); err != nil {
		return fmt.Errorf("reading why the stream ends: %w", err)
	}
	if refused.Title == "" {
		refused.Title = http.StatusText(int(refused.Status))
	}
	return refused
}
