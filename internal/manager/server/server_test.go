package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// start serves a handler, and returns its address, what stops it, and what it returned.
func start(t *testing.T, grace time.Duration, handler http.HandlerFunc) (address string, stop func(), ended <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &Server{Name: "test", Listener: listener, Handler: handler, Grace: grace, Log: logr.Discard()}
	returned := make(chan error, 1)
	go func() { returned <- s.Serve(ctx) }()
	return listener.Addr().String(), cancel, returned
}

func TestAStopWaitsForAnswersThatHaveBegun(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	address, stop, ended := start(t, time.Hour, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-release
		if err := r.Context().Err(); err != nil {
			t.Errorf("the context of the request ended: %v", err)
		}
		_, _ = io.WriteString(w, "complete")
	})
	answers := make(chan string, 1)
	go func() { answers <- get("http://" + address) }()
	<-begun
	stop()
	for { // Until the listener is closed.
		connection, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		connection.Close()
	}
	select {
	case err := <-ended:
		t.Fatalf("it stopped before the answer: %v", err)
	default:
	}
	close(release)
	if got := <-answers; got != "complete" {
		t.Errorf("the answer is %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the stop failed: %v", err)
	}
}

// TestAStreamLearnsOfTheStop: the stop would wait for an hour for it.
func TestAStreamLearnsOfTheStop(t *testing.T) {
	begun := make(chan struct{})
	address, stop, ended := start(t, time.Hour, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first, ")
		close(begun)
		<-Stopping(r.Context())
		_, _ = io.WriteString(w, "last")
	})
	answers := make(chan string, 1)
	go func() { answers <- get("http://" + address) }()
	<-begun
	stop()
	if got := <-answers; got != "first, last" {
		t.Errorf("the answer is %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the stop failed: %v", err)
	}
}

// TestHeadersThatAreTooLargeAreAnswered, by the HTTP server itself.
func TestHeadersThatAreTooLargeAreAnswered(t *testing.T) {
	address, _, _ := start(t, time.Hour, func(http.ResponseWriter, *http.Request) { t.Error("the handler got the request") })
	r, err := http.NewRequest("GET", "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X", strings.Repeat("x", 2*maxHeaderBytes))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("it answers %s", answer.Status)
	}
}

func TestAStopCutsOffWhatTakesTooLong(t *testing.T) {
	begun := make(chan struct{})
	address, stop, ended := start(t, time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	answers := make(chan string, 1)
	go func() { answers <- get("http://" + address) }()
	<-begun
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the stop failed: %v", err)
	}
	if got := <-answers; !strings.HasPrefix(got, "error: ") {
		t.Errorf("the answer is %q, and it was never given", got)
	}
}

func TestAnAddressThatFailsEndsTheServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	s := &Server{Name: "test", Listener: listener, Log: logr.Discard()}
	if err := s.Serve(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve returned %v", err)
	}
}

// TestASlowClientIsCutOff sends the beginnings of requests and waits until the server closes the connection.
func TestASlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	address, _, _ := start(t, time.Hour, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	for name, beginning := range map[string]string{
		"half of the headers": "GET / HTTP/1.1\r\nHost: x\r\n",
		"half of the body":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
		"headers without end": "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxHeaderBytes),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := io.WriteString(connection, beginning); err != nil {
				t.Fatal(err)
			}
			if err := connection.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			var late net.Error
			answer, err := io.ReadAll(connection)
			if errors.As(err, &late) && late.Timeout() {
				t.Error("the server waits for the client")
			}
			if strings.Contains(string(answer), " 200 ") {
				t.Errorf("half a request is answered by %q", answer)
			}
		})
	}
}

func get(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return "error: " + err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(text)
}
