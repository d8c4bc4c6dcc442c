package logs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/server"
)

const (
	// keepAlive is how often a stream says that it is there, for proxies that end silent connections.
	keepAlive = 15 * time.Second
	// checkEvery is how often a stream asks whether its caller may still read it, and checkTimeout how long that may take.
	checkEvery   = 3 * time.Second
	checkTimeout = 5 * time.Second
	// writeTimeout is how long a client may take to read what is written at once.
	writeTimeout = 10 * time.Second
)

// Line is what a container wrote.
type Line struct {
	Pod       string    `json:"pod"`
	Container string    `json:"container"`
	Time      time.Time `json:"time,omitzero"`
	Text      string    `json:"text"`
	// Cut is set because a line may have any length.
	Cut bool `json:"cut,omitempty"`
}

// stream is an answer that goes on. It has no queue: a container's log is read as fast as the client takes it.
type stream struct {
	o       *Operations
	in      *input
	ctx     context.Context
	request *http.Request
	w       http.ResponseWriter
	control *http.ResponseController
	left    int
}

func newStream(ctx context.Context, o *Operations, in *input, answer huma.Context) *stream {
	r, w := humago.Unwrap(answer)
	return &stream{o: o, in: in, ctx: ctx, request: r, w: w, control: http.NewResponseController(w), left: maxBytes}
}

// run sends until all logs end, the client disconnects, is too slow or may not read any more, a bound is reached, or the server stops.
func (s *stream) run(from []container) {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back.
	s.w.WriteHeader(http.StatusOK)
	if s.request.Method == http.MethodHead {
		return
	}
	// The time of an operation and of its request does not count for a stream. Its client ends it by disconnecting.
	running, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), maxTime)
	defer cancel()
	defer context.AfterFunc(s.request.Context(), cancel)()
	lines, failed := s.read(running, from)
	err := s.send(running, lines, failed)
	cancel()
	if err != nil && s.request.Context().Err() == nil {
		logr.FromContextOrDiscard(s.ctx).Info("Ending a stream of logs", "why", err.Error())
	}
}

// read reads the logs at the same time. lines is closed when all have ended; then failed has how many could not be read to the end.
func (s *stream) read(ctx context.Context, from []container) (lines <-chan Line, failed func() int) {
	all := make(chan Line)
	var readers sync.WaitGroup
	var mu sync.Mutex
	failures := 0
	for _, c := range from {
		readers.Go(func() {
			if err := s.copy(ctx, c, all); err != nil && ctx.Err() == nil {
				logr.FromContextOrDiscard(s.ctx).Info("Reading a log", "pod", c.pod, "container", c.name, "why", err.Error())
				mu.Lock()
				defer mu.Unlock()
				failures++
			}
		})
	}
	go func() {
		readers.Wait()
		close(all)
	}()
	return all, func() int {
		mu.Lock()
		defer mu.Unlock()
		return failures
	}
}

// copy reads the log of one container.
func (s *stream) copy(ctx context.Context, c container, to chan<- Line) error {
	bytes := int64(maxBytes)
	options := &corev1.PodLogOptions{Container: c.name, Follow: s.in.Follow, Previous: s.in.Previous, Timestamps: true, TailLines: &s.in.Tail, LimitBytes: &bytes}
	if s.in.Since > 0 {
		options.SinceSeconds = &s.in.Since
	}
	log, err := s.o.Pods.Pods(c.namespace).GetLogs(c.pod, options).Stream(ctx)
	if err != nil {
		return err
	}
	// Nothing was written, so closing cannot lose anything.
	defer func() { _ = log.Close() }()
	reader := bufio.NewReaderSize(log, maxLine)
	for {
		text, more, err := reader.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line := lineOf(c, string(text))
		for line.Cut = more; more && err == nil; {
			_, more, err = reader.ReadLine()
		}
		select {
		case to <- line:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lineOf reads a line that begins with its time.
func lineOf(c container, text string) Line {
	line := Line{Pod: c.pod, Container: c.name, Text: text}
	at, rest, _ := strings.Cut(text, " ")
	if written, err := time.Parse(time.RFC3339Nano, at); err == nil {
		line.Time, line.Text = written.UTC(), rest
	}
	line.Text = strings.ToValidUTF8(line.Text, "\uFFFD")
	return line
}

// The reasons why a stream ends early.
var (
	errStopping = errors.New("the server stops")
	tooMuch     = problem.New(problem.TooManyRequests, "A stream has at most 16 MiB of lines, and goes on for an hour at most. Another one may begin where this one ends, with since.")
	unreadable  = problem.New(problem.Unavailable, "Not all logs could be read to the end, such as because a pod is gone.")
)

// send sends lines until there are no more.
func (s *stream) send(ctx context.Context, lines <-chan Line, failed func() int) error {
	alive, check := time.NewTicker(keepAlive), time.NewTicker(checkEvery)
	defer alive.Stop()
	defer check.Stop()
	for {
		var err error
		select {
		case line, more := <-lines:
			if !more && failed() > 0 {
				return s.end(unreadable)
			}
			if !more {
				return nil
			}
			err = s.line(line)
		case <-alive.C:
			err = s.write([]byte(": \n\n"))
		case <-check.C:
			err = s.check(ctx)
		case <-server.Stopping(ctx):
			return errStopping
		case <-ctx.Done():
			if s.request.Context().Err() == nil {
				return s.end(tooMuch)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line sends a line, unless the stream has enough.
func (s *stream) line(line Line) error {
	told, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if s.left -= len(told); s.left < 0 {
		return s.end(tooMuch)
	}
	return s.write(event("line", told))
}

// check returns an error if the caller may not read on, and tells the client why.
func (s *stream) check(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	refused := auth.Of(ctx).Again(limited)
	if refused == nil {
		err := s.o.Allowed(limited, s.in.Tenant, s.in.Project, s.in.App)
		if err == nil || !errors.As(err, &refused) {
			return err
		}
	}
	return s.end(refused)
}

// end tells the client why the stream ends. It returns an error always.
func (s *stream) end(why *problem.Problem) error {
	told, err := json.Marshal(why)
	if err != nil {
		return err
	}
	return errors.Join(why, s.write(event("end", told)))
}

func event(kind string, data []byte) []byte {
	return append(append([]byte("event: "+kind+"\ndata: "), data...), "\n\n"...)
}

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
