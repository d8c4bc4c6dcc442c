// Command hello is the application that the examples and the end-to-end tests deliver: an HTTP server that says one
// sentence, so that a changed deployment is a changed answer.
//
//	PORT     to listen on; default 8080
//	MESSAGE  to answer with; default "hello"
//	-crash   exit at once with status 1, as an application with a broken configuration does
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	crash := flag.Bool("crash", false, "exit at once with status 1")
	flag.Parse()
	if *crash {
		log.Fatal("told to crash")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, ":"+cmp.Or(os.Getenv("PORT"), "8080"), cmp.Or(os.Getenv("MESSAGE"), "hello")); err != nil {
		log.Fatal(err)
	}
}

// serve answers until ctx ends, then lets open requests finish.
func serve(ctx context.Context, address, message string) error {
	server := &http.Server{Addr: address, Handler: handler(message), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(grace)
	}()
	log.Printf("listening on %s", address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", address, err)
	}
	return nil
}

func handler(message string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, message) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /fail", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "failing as asked", http.StatusInternalServerError)
	})
	return mux
}
