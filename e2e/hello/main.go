// Command hello is the application that the examples and the end-to-end tests deliver. It is an HTTP server that answers with one sentence, so
// that a changed deployment changes the answer.
//
//	PORT     to listen on; default 8080
//	MESSAGE  to answer with; default "hello"
//	FILE     to answer GET /file with
//	STARTS   file that gets a line at each start; GET /starts answers how many it has
//	-say     print the message and exit with status 0, as a job does
//	-work    do nothing until a signal, as a worker without work does
//	-for     how long to work before it ends by itself, as a migration does; with -work
//	-crash   exit at once with status 1, as an application with a broken configuration does
//	-get     URL to get instead of serving, as a job or a chart's test does: print the answer and exit with status 0, or with
//	         1 if it is an error or there was none for 3 seconds
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	message := cmp.Or(os.Getenv("MESSAGE"), "hello")
	say := flag.Bool("say", false, "print the message and exit")
	work := flag.Bool("work", false, "do nothing until a signal")
	last := flag.Duration("for", 0, "how long to work before it ends by itself")
	crash := flag.Bool("crash", false, "exit at once with status 1")
	address := flag.String("get", "", "URL to get instead of serving")
	flag.Parse()
	if *crash {
		log.Fatal("crashed on purpose")
	}
	if *say {
		fmt.Println(message)
		return
	}
	if *address != "" {
		answer, err := get(*address, 3*time.Second)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(answer)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if *work {
		workFor(ctx, *last)
		return
	}
	if err := start(os.Getenv("STARTS")); err != nil {
		log.Fatal(err)
	}
	if err := serve(ctx, ":"+cmp.Or(os.Getenv("PORT"), "8080"), message); err != nil {
		log.Fatal(err)
	}
}

// workFor waits for a signal or until the given time is over.
func workFor(ctx context.Context, last time.Duration) {
	if last == 0 {
		<-ctx.Done()
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(last):
		fmt.Println("worked for", last)
	}
}

// start appends a line to a file, if it has a name.
func start(name string) error {
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("recording the start: %w", err)
	}
	_, err = fmt.Fprintln(file, time.Now().Format(time.RFC3339))
	return errors.Join(err, file.Close())
}

// get sends a GET, and retries within the given time while there is no answer. An answer other than 200 is an error.
func get(url string, within time.Duration) (string, error) {
	began := time.Now()
	response, err := http.Get(url)
	for err != nil && time.Since(began) < within {
		time.Sleep(100 * time.Millisecond)
		response, err = http.Get(url)
	}
	if err != nil {
		return "", fmt.Errorf("calling: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("calling %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return string(body), nil
}

// serve serves until ctx ends, then waits for open requests.
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
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, os.Getenv("FILE")) })
	mux.HandleFunc("GET /starts", func(w http.ResponseWriter, _ *http.Request) {
		lines, err := os.ReadFile(os.Getenv("STARTS"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, strings.Count(string(lines), "\n"))
	})
	mux.HandleFunc("GET /fail", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "failing on purpose", http.StatusInternalServerError)
	})
	return mux
}
