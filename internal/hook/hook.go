// Package hook serves POST /hook/<repository>, by which a Git host reports a push. The call only has the repository
// fetched at once; what is in it decides nothing, and polling finds the push without it. With ?source=<URL> it reports a push
// to another Git repository, from which apps of that tenant are made.
//
// Anyone may call, so no call may cost much or stand in the way of others: connections are bounded for each address, bodies for each
// repository, and where there are too many the oldest gives way (places.go). Keys come from a watch (keys.go), so a call that is refused
// costs no API request; of calls that are genuine at most five a second change a Repository (marks.go).
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
	// maxBody bounds what a call may send; GitHub's largest push reports stay below it.
	maxBody = 25 << 20
	// maxURL is the longest URL that an app may name.
	maxURL = 2048
	// headerTime and callTime are how long a call may take to send its header, and all of it; answerTime is how long until it is answered.
	headerTime = 5 * time.Second
	callTime   = 15 * time.Second
	answerTime = 25 * time.Second
	// drainTime is how long the body of a call that was refused unread is taken in, so that its sender gets to read the answer.
	drainTime = 250 * time.Millisecond
	// perAddress and maxConnections bound the connections of one address and of all, perRepository the bodies that are read for one
	// repository. A connection takes about 25 KiB.
	perAddress     = 256
	maxConnections = 2048
	perRepository  = 64
)

// Server answers calls. It is to run on every replica, the leader or not: it marks the Repository, which the leader sees.
type Server struct {
	// Client reads Repositories from a cache, and marks them.
	Client client.Client
	// Keys reads the Secrets with the keys from a cache, see NewKeys.
	Keys      client.Reader
	Namespace string
	Listener  net.Listener
	// Ready waits until the caches of Client and Keys are filled, and reports whether they are; calls wait for it. Nil: they are.
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
	// A connection is a call: one that is kept open for the next is one that others may want.
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

// Handler answers POST /hook/{repository}: 202 when the fetch was asked for, or will be shortly; 400 when source is too long or
// the body could not be read; 401 when the call is not signed with the repository's key or there is no such repository, which have
// the same answer; 408 when the body took too long; 413 when it is past maxBody; 503 when the body gave way to perRepository newer ones, and
// when the fetch could not be asked for. A call that carries no signature is refused before anything of it is looked at.
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
		// The error says that this is no connection, as in tests: then nothing is drained either.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
		http.Error(w, text, code)
	})
	return mux
}

// calls are those under way.
type calls struct {
	*Server
	bodies *places[string]
	marks  *marks
	// refusals are the calls whose refusal is logged: of many that are made at once, some.
	refusals *rate.Sometimes
}

// serve says how a call ended, and how it is answered.
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
		log.Error(err, "Asking for a fetch")
		return failed, http.StatusServiceUnavailable, "asking for a fetch did not succeed; polling will find the push"
	}
	return accepted, http.StatusAccepted, ""
}

// errGaveWay says that a body was not read to its end, because newer ones of the repository took its place.
var errGaveWay = errors.New("many calls for this repository came while the body was sent; polling will find the push")

// prove reads the body in pieces and keeps none of it: all that is needed is its HMAC. It does so for a repository that is
// not there too: a body left unread would show that it is not.
func (c *calls) prove(w http.ResponseWriter, r *http.Request, given proof, key []byte) (bool, error) {
	connection := http.NewResponseController(w)
	at, leave := c.bodies.take(r.PathValue("repository"), func() {
		// Ends the read that is under way. Where it cannot, there is no connection to wait for.
		_ = connection.SetReadDeadline(time.Unix(1, 0))
	})
	defer leave()
	genuine, err := given.by(key, http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil && at.gaveWay() {
		return false, errGaveWay
	}
	return genuine, err
}

// bodyError is how a call is answered whose body could not be read.
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
