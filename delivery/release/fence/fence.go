// Package fence stops the writes of an action after another process has taken over the action's release.
package fence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/storage"
)

// ErrFenced means that another process took over the release, so the action must not write any more.
var ErrFenced = errors.New("another process took the release over")

// trust is how long an action assumes, after the last check, that it still owns the release. A process that lost its leadership while it
// was stopped has been stopped for longer.
const trust = 5 * time.Second

// Fence is between one action and the API server: it refuses writes after another process has taken over the release. Records are protected
// by their resourceVersion; objects are not, so before a write of an object the fence checks the record again, if the last check is some
// time ago.
type Fence struct {
	now  func() time.Time
	look func(ctx context.Context, record string) (version string, err error)

	mu              sync.Mutex
	closed          bool
	record, version string
	seen            time.Time
	// leaving are objects that are being deleted, as "Kind/name".
	leaving []string
}

// New returns an open fence. look returns the version of a record, "" if it is gone; nil disables the check.
func New(now func() time.Time, look func(ctx context.Context, record string) (string, error)) *Fence {
	return &Fence{now: now, look: look}
}

// Watch makes the fence check that a record still has this version.
func (f *Fence) Watch(record, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record, f.version, f.seen = record, version, f.now()
}

// Watches reports whether the fence checks this record.
func (f *Fence) Watches(record string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.record == record
}

// Shut makes the fence refuse all further writes.
func (f *Fence) Shut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// IsShut reports whether another process has taken over the release.
func (f *Fence) IsShut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// pass returns nil while this action owns the release.
func (f *Fence) pass(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrFenced
	}
	if f.record == "" || f.now().Sub(f.seen) < trust {
		return nil
	}
	version, err := f.look(ctx, f.record)
	if err != nil {
		return fmt.Errorf("looking who has the release: %w", err)
	}
	if version != f.version {
		f.closed = true
		return ErrFenced
	}
	f.seen = f.now()
	return nil
}

// Wrap returns a transport that checks the fence before next.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper { return fenced{f, next} }

type fenced struct {
	*Fence
	next http.RoundTripper
}

// RoundTrip sends a request if the fence allows it.
func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return f.next.RoundTrip(r)
	}
	if strings.Contains(r.URL.Path, "/secrets/"+storage.HelmStorageType+".") {
		if f.IsShut() {
			return nil, ErrFenced
		}
		return f.next.RoundTrip(r)
	}
	if err := f.pass(r.Context()); err != nil {
		return nil, err
	}
	answer, err := f.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodDelete && answer.StatusCode < http.StatusMultipleChoices {
		f.observe(answer)
	}
	return answer, err
}

// maxAnswer is larger than any answer to a deletion.
const maxAnswer = 4 << 20

// observe records an object that still exists after its deletion: then the API server answers with the object and its deletionTimestamp.
// For an object that is gone, the answer is a status or, for some kinds, the last state of the object.
func (f *Fence) observe(answer *http.Response) {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	var object struct {
		Kind     string
		Metadata struct{ Name, DeletionTimestamp string }
	}
	if err == nil && json.Unmarshal(body, &object) == nil && object.Metadata.DeletionTimestamp == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving = append(f.leaving, object.Kind+"/"+object.Metadata.Name)
}

// AllGone reports whether all objects that were deleted are gone.
func (f *Fence) AllGone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.leaving) == 0
}
