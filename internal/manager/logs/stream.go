package logs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/eventstream"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Line is a line that a container wrote.
type Line struct {
	Pod       string    `json:"pod"`
	Container string    `json:"container"`
	Time      time.Time `json:"time,omitzero"`
	Text      string    `json:"text"`
	// Cut is true if the line was too long, and has only its beginning.
	Cut bool `json:"cut,omitempty"`
}

// stream has the logs of an app that a client reads. It has no queue: the log of a container is read as fast as the client reads.
type stream struct {
	o    *Operations
	in   *input
	from []container
	// left is how many more bytes of lines may be sent.
	left int
}

// run sends lines until all logs end, a limit is reached, or the stream ends.
func (s *stream) run(ctx context.Context, events *eventstream.Stream) error {
	limited, cancel := context.WithTimeoutCause(ctx, maxTime, tooMuch)
	defer cancel()
	lines, failed := s.read(limited)
	for {
		line, more, err := eventstream.Next(limited, events, lines)
		switch {
		case errors.Is(err, tooMuch):
			return events.End(tooMuch)
		case err != nil:
			return err
		case !more && failed() > 0:
			return events.End(unreadable)
		case !more:
			return nil
		}
		if err := s.send(limited, events, line); err != nil {
			return err
		}
	}
}

// read reads all logs concurrently. lines is closed when all have ended; then failed returns how many could not be read to the end.
func (s *stream) read(ctx context.Context) (lines <-chan Line, failed func() int) {
	all := make(chan Line)
	var readers sync.WaitGroup
	var mu sync.Mutex
	failures := 0
	for _, c := range s.from {
		readers.Go(func() {
			if err := s.copy(ctx, c, all); err != nil && ctx.Err() == nil {
				logr.FromContextOrDiscard(ctx).Info("Reading a log", "pod", c.pod, "container", c.name, "why", err.Error())
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
	// The log is only read, so closing it cannot lose anything.
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

// lineOf parses a line that begins with its time.
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
	tooMuch    = problem.New(problem.TooManyRequests, "A stream has at most 16 MiB of lines, and goes on for an hour at most. Another one may begin where this one ends, with since.")
	unreadable = problem.New(problem.Unavailable, "Not all logs could be read to the end, such as because a pod is gone.")
)

// send sends a line, unless the stream has reached its limit.
func (s *stream) send(ctx context.Context, events *eventstream.Stream, line Line) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if s.left -= len(data); s.left < 0 {
		return events.End(tooMuch)
	}
	return events.Write(ctx, eventstream.Append(nil, "line", "", data))
}

// check returns an error if the caller may not read on.
func (s *stream) check(ctx context.Context) error {
	if refused := auth.Of(ctx).Again(ctx); refused != nil {
		return refused
	}
	return s.o.Allowed(ctx, s.in.Tenant, s.in.Project, s.in.App)
}
