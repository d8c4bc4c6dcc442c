// Package server serves HTTP within limits of time and size. When it stops, it finishes the answers that it began.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
)

// The limits of a connection. A handler that streams extends the deadlines of its connection itself.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
)

// Server is an address with its handler.
type Server struct {
	Name     string
	Listener net.Listener
	Handler  http.Handler
	// TLS is nil for plain HTTP.
	TLS *tls.Config
	// Grace is how long a stop waits for answers that were begun.
	Grace time.Duration
	Log   logr.Logger
}

type stoppingKey struct{}

// Stopping returns a channel that is closed when the server of a request stops: a stream has to end then, because the stop waits for it. In a context
// that is not of a request of a Server, it is never closed.
func Stopping(ctx context.Context) <-chan struct{} {
	if stopping, is := ctx.Value(stoppingKey{}).(context.Context); is {
		return stopping.Done()
	}
	return nil
}

// Serve serves until ctx ends. Then it accepts no more connections, and waits at most for Grace until all answers are finished. The contexts of
// requests do not end with ctx; a handler that streams ends with Stopping.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler: s.Handler, TLSConfig: s.TLS, ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(s.Log), slog.LevelInfo),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx)
		},
	}
	ended := make(chan error, 1)
	go func() {
		if s.TLS != nil {
			ended <- server.ServeTLS(s.Listener, "", "")
			return
		}
		ended <- server.Serve(s.Listener)
	}()
	s.Log.Info("Serving", "server", s.Name, "address", s.Listener.Addr().String(), "tls", s.TLS != nil)
	select {
	case err := <-ended:
		return fmt.Errorf("serving %s at %s: %w", s.Name, s.Listener.Addr(), err)
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Grace)
	defer cancel()
	err := server.Shutdown(limited)
	if errors.Is(err, context.DeadlineExceeded) {
		s.Log.Info("Cutting off answers that took too long", "server", s.Name, "grace", s.Grace.String())
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("stopping %s: %w", s.Name, err)
	}
	return nil
}
