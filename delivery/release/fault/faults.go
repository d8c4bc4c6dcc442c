package fault

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Faults collects the errors of one action's requests with their types, because Helm returns only their text.
type Faults struct {
	mu  sync.Mutex
	all []error
}

// Note keeps an error and returns it.
func (f *Faults) Note(err error) error {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, err)
	}
	return err
}

// All returns the errors of the requests so far.
func (f *Faults) All() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.all...)
}

// Witness returns a RoundTripper that sends requests to next and records failed ones. Helm drops the errors of lookups in templates, so
// this is the only record of them.
func (f *Faults) Witness(next http.RoundTripper) http.RoundTripper { return witness{next, f.Note} }

// witness is the transport of Witness.
type witness struct {
	next http.RoundTripper
	note func(error) error
}

// RoundTrip sends a request and records its failure.
func (w witness) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	switch {
	case err != nil:
		_ = w.note(fmt.Errorf("looking up %s: %w", r.URL.Path, err))
	case answer.StatusCode >= http.StatusInternalServerError, answer.StatusCode == http.StatusTooManyRequests:
		_ = w.note(apierrors.NewGenericServerResponse(answer.StatusCode, r.Method, schema.GroupResource{}, r.URL.Path, "", 0, true))
	}
	return answer, err
}
