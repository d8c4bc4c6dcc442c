package live

import (
	"fmt"
	"net/http"
	"path"
	"strconv"
	"sync"
	"time"
)

// following knows whether the API server answers the requests by which a Cluster follows it. It watches the requests themselves, because the
// WatchErrorHandler of client-go is not called for a refused connection, and nothing reports that the connection works again.
type following struct {
	mu sync.Mutex
	// lost says why a kind is not followed, and since when, by the name of its resource.
	lost map[string]loss
}

type loss struct {
	why   error
	since time.Time
}

// wrap is the Wrap of a rest.Config.
func (f *following) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		kind := path.Base(r.URL.Path)
		watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
		switch {
		case err != nil && r.Context().Err() != nil: // The Cluster stops.
		case err != nil:
			f.lose(kind, err)
		case answer.StatusCode >= http.StatusBadRequest:
			f.lose(kind, fmt.Errorf("the API server answers %s", answer.Status))
		case watch:
			f.mu.Lock()
			delete(f.lost, kind)
			f.mu.Unlock()
		}
		return answer, err
	})
}

func (f *following) lose(kind string, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost == nil {
		f.lost = map[string]loss{}
	}
	since := time.Now()
	if before, was := f.lost[kind]; was {
		since = before.since
	}
	f.lost[kind] = loss{why, since}
}

// oldest returns the oldest loss, with its kind, "" if there is none.
func (f *following) oldest() (kind string, of loss) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, l := range f.lost {
		if kind == "" || l.since.Before(of.since) {
			kind, of = k, l
		}
	}
	return kind, of
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (do roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return do(r) }
