// Package fence keeps an action from writing once another process has taken its release over.
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

// ErrFenced says that another process took the release over: the action writes no more.
var ErrFenced = errors.New("another process took the release over")

// trust is how long an action assumes that the release is still its own after the last check. A process that lost its leadership while it
// was stopped has been stopped for longer.
const trust = 5 * time.Second

// Fence stands between one action and the API server: no write passes once another process has the release. Records guard
// themselves by their version; objects have no such guard, so that before they are written a record that was not looked at
// for some time is looked at again.
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

// New returns an open fence. Look returns the version of a record, "" when it is gone; nil where nothing is watched.
func New(now func() time.Time, look func(ctx context.Context, record string) (string, error)) *Fence {
	return &Fence{now: now, look: look}
}

// Watch has the fence look at that version of a record.
func (f *Fence) Watch(record, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record, f.version, f.seen = record, version, f.now()
}

// Watches is whether it looks at that record.
func (f *Fence) Watches(record string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.record == record
}

// Shut lets no write pass any more.
func (f *Fence) Shut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// IsShut is whether another process has the release.
func (f *Fence) IsShut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// pass is nil while the release is this action's.
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

// Wrap puts the fence round a transport.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper { return fenced{f, next} }

type fenced struct {
	*Fence
	next http.RoundTripper
}

// RoundTrip lets a request pass that may.
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

// maxAnswer is more than any answer to a deletion.
const maxAnswer = 4 << 20

// observe notes an object that is not gone with the answer to its deletion: the API server then answers with the object as
// it is, being deleted. What is gone it answers with a status or, for some kinds, the object as it was.
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
