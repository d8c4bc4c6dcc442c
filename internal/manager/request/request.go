// Package request gives each HTTP request an ID, a log and metrics, and handles panics of its handler.
package request

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/internal/manager/eventstream"
)

// IDHeader is the header of an answer with the ID of the request, which the manager makes. If a caller sends this header, its value is only logged.
const IDHeader = "X-Request-Id"

// maxLoggedPath is how much of a path is logged, in bytes: a refused request must not cost more than a successful one.
const maxLoggedPath = 256

// callerID matches the IDs of callers that are logged.
var callerID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type idKey struct{}

// ID returns the id of the request of a context, "" outside of a request.
func ID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

// Follower gives each request an id and a logger, and records how it ended.
type Follower struct {
	log      logr.Logger
	proxies  Proxies
	failed   func(w http.ResponseWriter, id string)
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// NewFollower returns a Follower that registers its metrics. failed answers a request with an ID after a panic of its handler.
func NewFollower(log logr.Logger, registry prometheus.Registerer, proxies Proxies, failed func(w http.ResponseWriter, id string)) *Follower {
	f := &Follower{
		log: log, proxies: proxies, failed: failed,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubeop_manager_request_duration_seconds", Help: "Duration of requests of the management API, by method, route and status.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 30},
		}, []string{"method", "route", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubeop_manager_requests_in_flight", Help: "Requests that have no complete answer yet."}),
	}
	registry.MustRegister(f.duration, f.inFlight)
	return f
}

// Follow wraps a handler. routeOf returns the pattern that a request matches, "" for none: as labels of metrics, paths would have no limit.
func (f *Follower) Follow(routeOf func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		id := uuid.NewString()
		log := f.log.WithValues("requestId", id)
		if theirs := r.Header.Get(IDHeader); callerID.MatchString(theirs) {
			log = log.WithValues("callerRequestId", theirs)
		}
		from := f.proxies.Client(r)
		ctx := context.WithValue(context.WithValue(r.Context(), idKey{}, id), addressKey{}, from)
		ctx = logr.NewContext(ctx, log)
		r = r.WithContext(ctx)
		w.Header().Set(IDHeader, id)
		answer := &answer{ResponseWriter: w}
		route := routeOf(r)
		f.inFlight.Inc()
		defer func() {
			f.inFlight.Dec()
			unanswered, cut := answer.recovered(log, recover())
			if unanswered {
				f.failed(answer, id)
			}
			took := time.Since(begin)
			// A stream takes as long as its client likes.
			if w.Header().Get("Content-Type") != eventstream.ContentType {
				f.duration.WithLabelValues(method(r.Method), route, strconv.Itoa(answer.status)).Observe(took.Seconds())
			}
			log.Info("Answered", "method", method(r.Method), "path", r.URL.Path[:min(len(r.URL.Path), maxLoggedPath)], "status", answer.status, "bytes", answer.bytes,
				"milliseconds", took.Milliseconds(), "from", from, "connection", r.RemoteAddr)
			if cut {
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(answer, r)
	})
}

// method returns a method as a label of metrics. Clients may send unknown methods.
func method(of string) string {
	switch of {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return of
	}
	return "other"
}

// answer is a ResponseWriter that records the answer.
type answer struct {
	http.ResponseWriter
	status int
	bytes  int64
	// failed is true once the client does not read any more.
	failed bool
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	// 1xx are not the answer.
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(data []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(data)
	a.bytes += int64(n)
	a.failed = a.failed || err != nil
	return n, err
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// recovered handles a panic of the handler, and reports whether the request still needs an answer. If the answer was begun, cut is true: the
// connection has to be closed, because otherwise the client would take a part for the whole. huma panics if it cannot write, which is no fault of the
// manager.
func (a *answer) recovered(log logr.Logger, why any) (unanswered, cut bool) {
	err, _ := why.(error)
	aborted := errors.Is(err, http.ErrAbortHandler) || a.failed
	switch {
	case why == nil:
		if a.status == 0 {
			a.status = http.StatusOK
		}
		return false, false
	case !aborted:
		log.Error(nil, "Recovering from a panic", "panic", why, "stack", string(debug.Stack()))
	}
	cut = a.status != 0 || aborted
	return !cut, cut
}
