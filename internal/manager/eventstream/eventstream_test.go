package eventstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// client takes what is written, and hands each write over.
type client struct {
	header http.Header
	status int
	writes chan string
	// refuses is the error of each write, if it has one.
	refuses error

	mu        sync.Mutex
	deadlines []time.Time
	flushed   int
}

// Header implements http.ResponseWriter.
func (c *client) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *client) WriteHeader(status int) { c.status = status }

// Write implements http.ResponseWriter.
func (c *client) Write(text []byte) (int, error) {
	if c.refuses != nil {
		return 0, c.refuses
	}
	c.writes <- string(text)
	return len(text), nil
}

// SetWriteDeadline is for http.ResponseController.
func (c *client) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadlines = append(c.deadlines, at)
	return nil
}

// FlushError is for http.ResponseController.
func (c *client) FlushError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushed++
	return nil
}

// stage is one stream.
type stage struct {
	*testing.T
	client *client
	clock  *clocktesting.FakeClock
	answer Answer
	// log is what was logged.
	log strings.Builder
	// disconnect ends the request; ended is closed when the answer has.
	disconnect context.CancelFunc
	ended      chan struct{}
}

func newStage(t *testing.T) *stage {
	s := &stage{
		T: t, client: &client{header: http.Header{}, writes: make(chan string, 100)}, ended: make(chan struct{}),
		clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)),
	}
	s.answer = Answer{Clock: s.clock, Check: func(context.Context) error { return nil }}
	return s
}

// serve answers a request whose operation has ended its time already.
func (s *stage) serve(method string) {
	ctx, disconnect := context.WithCancel(s.Context())
	s.disconnect = disconnect
	logger := funcr.New(func(_, args string) { s.log.WriteString(args + "\n") }, funcr.Options{})
	operation, late := context.WithCancel(logr.NewContext(ctx, logger))
	late()
	r := httptest.NewRequestWithContext(ctx, method, "/", http.NoBody)
	go func() {
		defer close(s.ended)
		s.answer.Serve(operation, humago.NewContext(&huma.Operation{}, r, s.client))
	}()
	s.Cleanup(func() {
		disconnect()
		<-s.ended
	})
}

// wants waits for a write.
func (s *stage) wants(text string) {
	s.Helper()
	select {
	case got := <-s.client.writes:
		if got != text {
			s.Fatalf("written is %q, want %q", got, text)
		}
	case <-s.ended:
		s.Fatalf("the stream ended before %q", text)
	case <-time.After(time.Minute):
		s.Fatalf("%q is not written", text)
	}
}

// end waits for the end of the stream, before which nothing more is written.
func (s *stage) end() {
	s.Helper()
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.Fatal("the stream goes on")
	}
	select {
	case text := <-s.client.writes:
		s.Errorf("written is also %q", text)
	default:
	}
}

// step moves the clock when the stream waits for it.
func (s *stage) step(by time.Duration) {
	for !s.clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	s.clock.Step(by)
}

// waiting is a stream of what comes from a channel.
func waiting(from <-chan string) func(context.Context, *Stream) error {
	return func(ctx context.Context, s *Stream) error {
		for {
			text, open, err := Next(ctx, s, from)
			if err != nil || !open {
				return err
			}
			if err := s.Write(ctx, []byte(text)); err != nil {
				return err
			}
		}
	}
}

// refusal is why a client may not read on.
type refusal struct {
	Code string `json:"code"`
}

// Error implements error.
func (r *refusal) Error() string { return r.Code }

// GetStatus implements huma.StatusError.
func (r *refusal) GetStatus() int { return http.StatusForbidden }

func TestEventsAreWrittenAsTheStandardHasThem(t *testing.T) {
	text := Append(nil, "put", "7.1", []byte(`{"a":1}`))
	text = Append(text, "delete", "", []byte(`{}`))
	if want := "event: put\ndata: {\"a\":1}\nid: 7.1\n\nevent: delete\ndata: {}\n\n"; string(text) != want {
		t.Errorf("%q, want %q", text, want)
	}
}

// TestAStreamSendsWhatThereIs, each at once and with a deadline of its own, also after the time of its operation.
func TestAStreamSendsWhatThereIs(t *testing.T) {
	s, from := newStage(t), make(chan string)
	s.answer.Send = waiting(from)
	s.serve("GET")
	from <- "one"
	s.wants("one")
	s.clock.Step(time.Second)
	from <- ""
	from <- "two"
	s.wants("two")
	close(from)
	s.end()
	if got := s.client.header; s.client.status != http.StatusOK || got.Get("Content-Type") != "text/event-stream" || got.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%d %v", s.client.status, got)
	}
	begin := time.Date(2026, 1, 1, 12, 0, 10, 0, time.UTC)
	if got := s.client.deadlines; len(got) != 2 || !got[0].Equal(begin) || !got[1].Equal(begin.Add(time.Second)) || s.client.flushed != 3 { // The headers, too.
		t.Errorf("the deadlines are %v, with %d flushes", got, s.client.flushed)
	}
	if s.log.Len() > 0 {
		t.Errorf("logged is %s", s.log.String())
	}
}

func TestHEADHasOnlyTheHeaders(t *testing.T) {
	s := newStage(t)
	s.answer.Send = func(context.Context, *Stream) error {
		t.Error("something is sent")
		return nil
	}
	s.serve("HEAD")
	s.end()
	if s.client.status != http.StatusOK || s.client.header.Get("Content-Type") != ContentType {
		t.Errorf("%d %v", s.client.status, s.client.header)
	}
}

// TestASilentStreamIsKeptAlive, because proxies end silent connections.
func TestASilentStreamIsKeptAlive(t *testing.T) {
	s := newStage(t)
	checked := make(chan bool)
	s.answer.Check = func(context.Context) error {
		checked <- true
		return nil
	}
	s.answer.Send = waiting(nil)
	s.serve("GET")
	for range 4 {
		s.step(3 * time.Second)
		<-checked
	}
	if len(s.client.writes) > 0 {
		t.Errorf("%q is written early", <-s.client.writes)
	}
	s.step(3 * time.Second)
	<-checked
	s.wants(": \n\n")
}

// TestAClientThatMayNotReadOnGetsTheReason; one whose right is not known now gets no message.
func TestAClientThatMayNotReadOnGetsTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		err           error
		message, logs string
	}{
		"a refusal":              {&refusal{"forbidden"}, "event: end\ndata: {\"code\":\"forbidden\"}\n\n", `"why"="forbidden"`},
		"one with headers":       {huma.ErrorWithHeaders(&refusal{"unavailable"}, http.Header{}), "event: end\ndata: {\"code\":\"unavailable\"}\n\n", `"why"="unavailable"`},
		"an error for operators": {errors.New("dial 10.0.0.1"), "", `"why"="dial 10.0.0.1"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, from := newStage(t), make(chan string)
			s.answer.Check = func(ctx context.Context) error {
				if _, limited := ctx.Deadline(); !limited {
					t.Error("asking may take forever")
				}
				return c.err
			}
			s.answer.Send = waiting(from)
			s.serve("GET")
			from <- "before"
			s.wants("before")
			s.step(3 * time.Second)
			if c.message != "" {
				s.wants(c.message)
			}
			s.end()
			if !strings.Contains(s.log.String(), c.logs) {
				t.Errorf("logged is %q", s.log.String())
			}
		})
	}
}

// TestASlowClientIsAskedToo: it never waits for a next event, because there are always further ones for it.
func TestASlowClientIsAskedToo(t *testing.T) {
	s := newStage(t)
	asked := 0
	s.answer.Check = func(context.Context) error {
		if asked++; asked < 3 {
			return nil
		}
		return &refusal{"revoked"}
	}
	written := 0
	s.answer.Send = func(ctx context.Context, stream *Stream) error {
		for {
			s.clock.Step(time.Second)
			if err := stream.Write(ctx, []byte("event")); err != nil {
				return err
			}
			written++
		}
	}
	s.serve("GET")
	<-s.ended
	if asked != 3 || written != 8 {
		t.Errorf("asked %d times in %d seconds, want each 3 seconds", asked, written)
	}
}

// TestAStreamEndsWithItsServer, whether it waits or sends, and says nothing of it.
func TestAStreamEndsWithItsServer(t *testing.T) {
	for name, send := range map[string]func(context.Context, *Stream) error{
		"it waits": waiting(nil),
		"it sends": func(ctx context.Context, s *Stream) error {
			for {
				if err := s.Write(ctx, nil); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, stopping := newStage(t), make(chan struct{})
			s.answer.Stopping, s.answer.Send = stopping, send
			s.serve("GET")
			close(stopping)
			s.end()
			if s.log.Len() > 0 {
				t.Errorf("logged is %s", s.log.String())
			}
		})
	}
}

// TestAStreamEndsWithItsClient, and the log does not have that.
func TestAStreamEndsWithItsClient(t *testing.T) {
	s := newStage(t)
	s.answer.Send = waiting(nil)
	s.serve("GET")
	s.disconnect()
	s.end()
	if s.log.Len() > 0 {
		t.Errorf("logged is %s", s.log.String())
	}
}

func TestNextReturnsWhyTheContextEnded(t *testing.T) {
	s := newStage(t)
	enough := errors.New("enough")
	s.answer.Send = func(ctx context.Context, stream *Stream) error {
		limited, cancel := context.WithCancelCause(ctx)
		cancel(enough)
		if _, _, err := Next(limited, stream, make(chan int)); !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
		return stream.End(&refusal{"enough"})
	}
	s.serve("GET")
	s.wants("event: end\ndata: {\"code\":\"enough\"}\n\n")
	s.end()
}

// TestAWriteThatFailsEndsTheStream, which has no queue for what comes after.
func TestAWriteThatFailsEndsTheStream(t *testing.T) {
	s, from := newStage(t), make(chan string)
	s.client.refuses = errors.New("i/o timeout")
	s.answer.Send = waiting(from)
	s.serve("GET")
	from <- "event"
	s.end()
	if !strings.Contains(s.log.String(), "i/o timeout") {
		t.Errorf("logged is %q", s.log.String())
	}
}

// hurried is a clock that lags behind, so that little is left of the time for a write.
type hurried struct {
	clock.RealClock
	left time.Duration
}

// Now implements clock.PassiveClock.
func (h hurried) Now() time.Time { return time.Now().Add(h.left - writeTimeout) }

// listening serves a stream to a real connection, by a server whose requests and answers have less time than a stream.
func listening(t *testing.T, a Answer) (body io.Reader, ended <-chan struct{}) {
	t.Helper()
	const short = 500 * time.Millisecond
	done := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		operation, cancel := context.WithTimeout(r.Context(), short)
		defer cancel()
		a.Serve(operation, humago.NewContext(&huma.Operation{}, r, w))
	}))
	server.Config.ReadTimeout, server.Config.WriteTimeout = short, short
	server.Start()
	t.Cleanup(server.Close)
	answer, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer.Body, done
}

// TestAStreamGoesOnAfterTheTimeOfARequest: longer than the server waits for a request and for its answer, and than an operation may take.
func TestAStreamGoesOnAfterTheTimeOfARequest(t *testing.T) {
	body, _ := listening(t, Answer{Check: func(context.Context) error { return nil }, Send: func(ctx context.Context, s *Stream) error {
		if err := s.Write(ctx, []byte("early ")); err != nil {
			return err
		}
		if _, _, err := Next(ctx, s, time.After(2*time.Second)); err != nil {
			return err
		}
		return s.Write(ctx, []byte("late"))
	}})
	if text, err := io.ReadAll(body); err != nil || string(text) != "early late" {
		t.Errorf("read is %q, %v", text, err)
	}
}

// TestTheHeadersAreThereBeforeTheFirstEvent, for which a client may wait long.
func TestTheHeadersAreThereBeforeTheFirstEvent(t *testing.T) {
	answered := make(chan struct{})
	body, _ := listening(t, Answer{Check: func(context.Context) error { return nil }, Send: func(ctx context.Context, s *Stream) error {
		if _, _, err := Next(ctx, s, answered); err != nil {
			return err
		}
		return s.Write(ctx, []byte("event"))
	}})
	close(answered)
	if text, err := io.ReadAll(body); err != nil || string(text) != "event" {
		t.Errorf("read is %q, %v", text, err)
	}
}

// TestAClientThatDoesNotReadIsCutOff: a write waits for it no longer than its time.
func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	event := Append(nil, "put", "", []byte(strings.Repeat("x", 1<<20)))
	body, ended := listening(t, Answer{Clock: hurried{left: 500 * time.Millisecond}, Check: func(context.Context) error { return nil }, Send: func(ctx context.Context, s *Stream) error {
		for {
			if err := s.Write(ctx, event); err != nil {
				return err
			}
		}
	}})
	<-ended
	if _, err := io.Copy(io.Discard, body); err == nil {
		t.Error("the client takes what it has for all")
	}
}
