package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/prometheus/client_golang/prometheus"
	"oras.land/oras-go/v2/registry"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

const (
	// maxMirrorAnswer bounds how long a mirror may take to answer, so that one that hangs delays a fetch by less than the host's own limits.
	maxMirrorAnswer = 5 * time.Second
	// maxMirrorList bounds how long a mirror may take to list tags.
	maxMirrorList = 15 * time.Second
	// mirrorRest is how long a mirror that did not answer is passed over.
	mirrorRest = time.Minute
	// maxManifest is the size to which manifests are read.
	maxManifest = 4 * limit.MiB
)

// Mirror is a registry that is asked for what another one has, before that one is.
type Mirror struct {
	// At is the host of the mirror, and the path below which it has the repositories of the other registry.
	At string
	// Access is how the mirror is reached.
	Access Access
	// Tenant for whom it is asked: a mirror that did not answer one tenant is passed over for that tenant only.
	Tenant string
}

// mirrors remembers which mirrors did not answer. The zero value is ready for use.
type mirrors struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// rest has a mirror passed over for mirrorRest.
func (m *mirrors) rest(key string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, until := range m.until {
		if !now.Before(until) {
			delete(m.until, other)
		}
	}
	if m.until == nil {
		m.until = map[string]time.Time{}
	}
	m.until[key] = now.Add(mirrorRest)
}

func (m *mirrors) rests(key string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until[key])
}

// mirrorRequests counts what mirrors were asked. No label has a value that tenants or registries write, so the number of series is fixed.
var mirrorRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kubeop_registry_mirror_requests_total",
	Help: "Questions to mirrors of registries, by the result: answered, missing (the mirror does not have it), failed, or skipped because it did not answer within the last minute.",
}, []string{"result"})

// MirrorMetrics returns the metrics of mirrors.
func MirrorMetrics() prometheus.Collector { return mirrorRequests }

// mirror is the repository of a mirror that stands for one of the registry.
type mirror struct {
	*single
	network *Network
	key     string
	// failed is why the mirror did not serve.
	failed error
}

// Registry is a client of one repository of an OCI registry, and of its mirror.
type Registry struct {
	*single
	mirror *mirror
}

// OpenRegistry returns a client of a repository of a registry, host/path.
func OpenRegistry(network *Network, at string, by Access) (*Registry, error) {
	r, err := openSingle(network, at, by)
	if err != nil {
		return nil, err
	}
	m, err := openMirror(network, r.Reference, by.Mirror)
	return &Registry{single: r, mirror: m}, err
}

// Close closes the idle connections.
func (r *Registry) Close() {
	r.single.Close()
	if r.mirror != nil {
		r.mirror.Close()
	}
}

// Failed explains why the registry refused, or could not answer, and its mirror before.
func (r *Registry) Failed(err error, what string) error {
	return r.mirror.explain(r.single.Failed(err, what))
}

// openMirror opens the repository of a mirror for one of the registry that it mirrors; nil without a mirror.
func openMirror(network *Network, of registry.Reference, by *Mirror) (*mirror, error) {
	if by == nil {
		return nil, nil
	}
	if network == nil {
		network = &Network{}
	}
	r, err := openSingle(network, by.At+"/"+of.Repository, by.Access)
	if err != nil {
		return nil, fmt.Errorf("mirror %s of %s: %w", by.At, of.Registry, err)
	}
	return &mirror{single: r, network: network, key: by.Tenant + " " + by.At}, nil
}

// Resolve returns what a tag or digest names.
func (r *Registry) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	about, served, err := fromMirror(ctx, r.mirror, maxMirrorAnswer, func(ctx context.Context) (ocispec.Descriptor, error) {
		return r.mirror.Resolve(ctx, reference)
	})
	if served {
		return about, err
	}
	return r.Repository.Resolve(ctx, reference)
}

// FetchReference opens the manifest that a tag or digest names.
func (r *Registry) FetchReference(ctx context.Context, reference string) (ocispec.Descriptor, io.ReadCloser, error) {
	type answer struct {
		about ocispec.Descriptor
		body  []byte
	}
	got, served, err := fromMirror(ctx, r.mirror, maxMirrorAnswer, func(ctx context.Context) (answer, error) {
		about, body, err := r.mirror.FetchReference(ctx, reference)
		if err != nil {
			return answer{}, err
		}
		defer body.Close()
		read, err := io.ReadAll(io.LimitReader(body, maxManifest)) // The caller refuses what is larger by its size.
		return answer{about, read}, err
	})
	if served {
		return got.about, io.NopCloser(bytes.NewReader(got.body)), err
	}
	return r.Repository.FetchReference(ctx, reference)
}

// Tags calls do with each page of the tags. Those of a mirror come in one page, after it has listed all of them.
func (r *Registry) Tags(ctx context.Context, last string, do func([]string) error) error {
	tags, served, err := fromMirror(ctx, r.mirror, maxMirrorList, func(ctx context.Context) (all []string, err error) {
		err = r.mirror.Tags(ctx, last, func(page []string) error {
			all = append(all, page...)
			return nil
		})
		return all, err
	})
	switch {
	case served && err != nil:
		return err
	case served:
		return do(tags)
	}
	return r.Repository.Tags(ctx, last, do)
}

// Blob opens a blob, such as the layer with a chart.
func (r *Registry) Blob(ctx context.Context, about ocispec.Descriptor) (io.ReadCloser, error) {
	if body := r.mirror.blob(ctx, about); body != nil {
		return body, nil
	}
	return r.Blobs().Fetch(FromStorage(ctx), about)
}

// blob opens a blob of a mirror; nil if the mirror does not begin to send it. The mirror's watchdog ends when the blob is closed.
func (m *mirror) blob(ctx context.Context, about ocispec.Descriptor) io.ReadCloser {
	if m == nil || m.skip() {
		return nil
	}
	limits := DefaultTimeouts()
	limits.Answer = maxMirrorAnswer
	own, done := watched(ctx, limits)
	body, err := m.Blobs().Fetch(FromStorage(own), about)
	if err != nil {
		done()
		m.note(context.Cause(own), err)
		return nil
	}
	mirrorRequests.WithLabelValues("answered").Inc()
	return &mirroredBlob{ReadCloser: body, ctx: own, done: done, of: m}
}

// mirroredBlob is a blob that a mirror sends.
type mirroredBlob struct {
	io.ReadCloser
	ctx  context.Context
	done func()
	of   *mirror
}

// Read implements io.Reader. When the mirror stops sending, the fetch fails, and the next one passes it over.
func (b *mirroredBlob) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if cause := context.Cause(b.ctx); cause != nil {
		err = cause
	}
	b.of.network.resting.rest(b.of.key, b.of.network.now())
	return n, fmt.Errorf("%w: the mirror %s stopped sending: %w", failure.ErrUnavailable, b.of.Reference.Registry, err)
}

// Close implements io.Closer.
func (b *mirroredBlob) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// fromMirror asks a mirror within a time of its own. served is false if the registry itself is to be asked: there is no mirror, or it does not have
// what is asked for, or cannot give it.
func fromMirror[T any](ctx context.Context, m *mirror, within time.Duration, ask func(context.Context) (T, error)) (got T, served bool, err error) {
	if m == nil || m.skip() {
		return got, false, nil
	}
	limits := DefaultTimeouts()
	limits.Whole, limits.Answer = within, maxMirrorAnswer
	var slow error
	got, err = Within(ctx, limits, func(ctx context.Context) (T, error) {
		got, err := ask(ctx)
		slow = context.Cause(ctx)
		return got, err
	})
	switch {
	case err == nil:
		mirrorRequests.WithLabelValues("answered").Inc()
		return got, true, nil
	case ctx.Err() != nil:
		return got, true, err
	}
	m.note(slow, err)
	return got, false, nil
}

// skip reports whether the mirror did not answer a short time ago.
func (m *mirror) skip() bool {
	if !m.network.resting.rests(m.key, m.network.now()) {
		return false
	}
	mirrorRequests.WithLabelValues("skipped").Inc()
	if m.failed == nil {
		m.failed = failure.New(failure.ErrUnavailable, "did not answer within the last minute, and is passed over")
	}
	return true
}

// note keeps why the mirror did not serve. slow is the limit that it exceeded, nil if it did not.
func (m *mirror) note(slow, err error) {
	if slow != nil {
		m.failed = slow
	} else {
		m.failed = m.Failed(err, "it")
	}
	result := "failed"
	if errors.Is(m.failed, failure.ErrNotFound) {
		result = "missing"
	}
	mirrorRequests.WithLabelValues(result).Inc()
	silent := errors.Is(m.failed, failure.ErrUnavailable) && !errors.Is(m.failed, failure.ErrServer)
	if silent || errors.Is(m.failed, failure.ErrSlow) {
		m.network.resting.rest(m.key, m.network.now())
	}
}

// explain adds to the failure of a registry why its mirror did not serve.
func (m *mirror) explain(err error) error {
	if m == nil || m.failed == nil || err == nil {
		return err
	}
	return fmt.Errorf("%w; its mirror %s was asked first: %s", err, m.Reference.Registry, m.failed.Error())
}
