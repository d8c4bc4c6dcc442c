// Package hook serves POST /hook/<repository>, with which a Git host reports a push. A call only starts a fetch of the repository. Its
// content is not used, and polling finds the push without it. With ?source=<URL> a call reports a push to another Git repository that is a
// source of the tenant's apps.
//
// Anyone may call, so a call must be cheap and must not block others. Connections are limited for each address, and bodies for each
// repository; above a limit the oldest is closed (places.go). Keys come from a watch (keys.go), so a rejected call causes no API request.
// Valid calls change Repositories at most five times per second (marks.go).
package hook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxBody limits the body of a call. GitHub's largest push reports are smaller.
	maxBody = 25 << 20
	// maxURL is the maximum length of an app's source URL.
	maxURL = 2048
	// headerTime and callTime limit the time to send the header and the whole call. answerTime limits the time until the answer.
	headerTime = 5 * time.Second
	callTime   = 15 * time.Second
	answerTime = 25 * time.Second
	// drainTime is how long the body of a rejected call is read, so that its sender can read the answer.
	drainTime = 250 * time.Millisecond
	// perAddress and maxConnections limit the connections of one address and of all. perRepository limits the bodies that are read for one
	// repository. A connection takes about 25 KiB.
	perAddress     = 256
	maxConnections = 2048
	perRepository  = 64
)

// Server answers calls. It runs on every replica: it annotates the Repository, and the leader watches that.
type Server struct {
	// Client reads Repositories from a cache and annotates them.
	Client client.Client
	// Keys reads the Secrets with the keys from a cache, see NewKeys.
	Keys      client.Reader
	Namespace string
	Listener  net.Listener
	// Ready waits until the caches of Client and Keys are filled, and reports whether they are. Calls wait for it. Nil means that they are
	// filled.
	Ready func(context.Context) bool
	Clock clock.WithDelayedExecution
	Log   logr.Logger
}

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	if s.Ready != nil && !s.Ready(ctx) {
		return nil // The operator ends.
	}
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTime, ReadTimeout: callTime, WriteTimeout: answerTime, MaxHeaderBytes: 16 << 10,
	}
	// Each connection serves one call: idle connections would use up the limit.
	server.SetKeepAlivesEnabled(false)
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(grace)
	}()
	bounded := &listener{Listener: s.Listener, places: newPlaces[netip.Prefix](perAddress, maxConnections)}
	if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving push hooks: %w", err)
	}
	return <-stopped
}

// Handler answers POST /hook/{repository}:
//
// 202 if the fetch was requested, or will be shortly; 400 if source is too long or the body could not be read; 401 if the call is not
// signed with the repository's key, or the repository does not exist (same answer); 408 if the body took too long; 413 if the body exceeds
// maxBody; 503 if perRepository newer bodies replaced this one, or the fetch could not be requested.
//
// A call without a signature is rejected before anything else is checked.
func (s *Server) Handler() http.Handler {
	c := &calls{
		Server: s, bodies: newPlaces[string](perRepository, maxConnections), marks: &marks{client: s.Client, clock: s.Clock, log: s.Log},
		refusals: &rate.Sometimes{First: 10, Interval: 10 * time.Second},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook/{repository}", func(w http.ResponseWriter, r *http.Request) {
		outcome, code, text := c.serve(w, r)
		counted.WithLabelValues(outcome).Inc()
		if code == http.StatusAccepted {
			w.WriteHeader(code)
			return
		}
		// The error means that this is not a real connection, as in tests. Then nothing is drained.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
		http.Error(w, text, code)
	})
	return mux
}

// calls are the calls in progress.
type calls struct {
	*Server
	bodies *places[string]
	marks  *marks
	// refusals limits how many rejected calls are logged.
	refusals *rate.Sometimes
}

// serve handles a call and returns its result.
func (c *calls) serve(w http.ResponseWriter, r *http.Request) (outcome string, code int, text string) {
	name, source := r.PathValue("repository"), r.URL.Query().Get("source")
	given, signed := proofOf(r.Header)
	switch {
	case !signed:
		return unsigned, http.StatusUnauthorized, "the call carries no signature, or one that is malformed"
	case len(source) > maxURL:
		return unreadable, http.StatusBadRequest, fmt.Sprintf("source has more than %d characters", maxURL)
	case r.ContentLength > maxBody:
		return tooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody)
	}
	log := c.Log.WithValues("repository", name, "from", r.RemoteAddr)
	key, missing := c.key(r.Context(), name)
	genuine, err := c.prove(w, r, given, key)
	if err != nil {
		return bodyError(err)
	}
	if missing != nil || !genuine {
		c.refusals.Do(func() { log.Info("Refusing a push hook", "reason", reason(missing)) })
		return refused, http.StatusUnauthorized, "the call is not signed with this repository's key"
	}
	if err := c.marks.add(r.Context(), name, source); err != nil {
		log.Error(err, "Requesting a fetch")
		return failed, http.StatusServiceUnavailable, "requesting a fetch did not succeed; polling will find the push"
	}
	return accepted, http.StatusAccepted, ""
}

// errGaveWay means that a body was not read completely, because newer ones of the repository replaced it.
var errGaveWay = errors.New("many calls for this repository came while the body was sent; polling will find the push")

// prove reads the body in pieces and keeps only its HMAC. It also does so for a repository that does not exist, because an unread body
// would reveal that.
func (c *calls) prove(w http.ResponseWriter, r *http.Request, given proof, key []byte) (bool, error) {
	connection := http.NewResponseController(w)
	at, leave := c.bodies.take(r.PathValue("repository"), func() {
		// Abort the current read. If that fails, there is no connection to wait for.
		_ = connection.SetReadDeadline(time.Unix(1, 0))
	})
	defer leave()
	genuine, err := given.by(key, http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil && at.gaveWay() {
		return false, errGaveWay
	}
	return genuine, err
}

// bodyError is the answer to a call whose body could not be read.
func bodyError(err error) (outcome string, code int, text string) {
	var timeout net.Error
	switch {
	case errors.Is(err, errGaveWay):
		return crowded, http.StatusServiceUnavailable, err.Error()
	case errors.As(err, new(*http.MaxBytesError)):
		return tooLarge, http.StatusRequestEntityTooLarge, "reading the body: " + err.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return unreadable, http.StatusRequestTimeout, fmt.Sprintf("the call took longer than %s to arrive", callTime)
	}
	return unreadable, http.StatusBadRequest, "reading the body: " + err.Error()
}

func reason(err error) string {
	if err == nil {
		return "the signature is wrong"
	}
	return err.Error()
}
