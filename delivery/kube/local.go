package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
)

// refusals is how many times in a row the API server may refuse a first list before callers get the error. Each attempt lists in two ways.
// With the backoff of retries, this covers the first one or two seconds, in which the rights of a new deployer take effect.
const refusals = 8

// local are the kinds that a LocalWatch covers besides the sources of Flux.
var local = map[string]schema.GroupVersionResource{
	"ConfigMap": corev1.SchemeGroupVersion.WithResource("configmaps"), "Secret": corev1.SchemeGroupVersion.WithResource("secrets"),
	"ServiceAccount": corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
}

// LocalWatch holds the metadata of Secrets, ConfigMaps, service accounts and, where they are served, the sources of Flux in the namespaces of
// projects. It watches each namespace as that namespace's deployer, because the operator itself may not read Secrets, and watches only what has
// its labels, which the service accounts that Kubernetes makes do not have. The watch of a kind in a namespace
// starts with the first read and ends with Forget. It costs one watch request, and the memory for the packed metadata without annotations.
//
// No read waits. Until the first list has arrived, a read returns *Unready, which contains the API server's error if it keeps refusing, and
// which can wake the caller. Later reads return the last known state, also while the watch is interrupted.
type LocalWatch struct {
	// Mapper finds the version in which a source of Flux is served. With nil, no sources are watched. Set it before the first read.
	Mapper meta.RESTMapper
	// Deployers are the accounts that watch. Set it before the first read.
	Deployers Deployers

	config    *rest.Config
	transport http.RoundTripper
	log       logr.Logger
	clock     clock.PassiveClock

	mu       sync.Mutex
	places   map[place]*localWatch
	onChange []func(namespace, kind, name string, labels map[string]string)
}

// place is one kind in one namespace.
type place struct{ namespace, kind string }

func (p place) String() string { return p.kind + "s of namespace " + p.namespace + " as its deployer" }

// NewLocalWatch returns a LocalWatch over the operator's own connection and its HTTP client, so that all namespaces share connections. It
// takes the time from the clock.
func NewLocalWatch(config *rest.Config, shared *http.Client, log logr.Logger, c clock.PassiveClock) *LocalWatch {
	config = rest.CopyConfig(config)
	config.QPS = -1 // A watch is one request in minutes, but there may be a thousand of them to start.
	return &LocalWatch{config: config, transport: shared.Transport, log: log, clock: c, places: map[place]*localWatch{}}
}

// OnChange registers f, which is called for each object that is added, changed or removed after the first list of its kind in its
// namespace, with the object's labels, or the last labels of a deleted object. If the labels now name another release or app, f is called
// with the earlier labels, too. f is called once for every change that the API server sends and must not block; a queue should combine
// bursts. Call OnChange before the first read.
func (w *LocalWatch) OnChange(f func(namespace, kind, name string, labels map[string]string)) {
	w.onChange = append(w.onChange, f)
}

// Records returns the metadata of the Secrets that Helm keeps of a release, in no particular order.
func (w *LocalWatch) Records(_ context.Context, namespace, release string) ([]metav1.PartialObjectMetadata, error) {
	secrets, err := w.known(place{namespace, "Secret"})
	if err != nil {
		return nil, err
	}
	return secrets.records(namespace, release), nil
}

// Releases returns the names, sorted, of the releases whose records have labels that name the app.
func (w *LocalWatch) Releases(_ context.Context, namespace, app string) ([]string, error) {
	secrets, err := w.known(place{namespace, "Secret"})
	if err != nil {
		return nil, err
	}
	return secrets.releases(app), nil
}

// Version returns the resourceVersion of a ConfigMap, Secret, service account or source of Flux as last seen, "" if there is none of that name.
func (w *LocalWatch) Version(_ context.Context, namespace, kind, name string) (string, error) {
	objects, err := w.known(place{namespace, kind})
	if err != nil {
		return "", err
	}
	return objects.version(name), nil
}

// Forget ends the watches of a namespace; the next read starts them anew.
func (w *LocalWatch) Forget(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, watched := range w.places {
		if at.namespace == namespace {
			watched.giveUp()
			delete(w.places, at)
		}
	}
}

// Start ends all watches, for good, when the context ends.
func (w *LocalWatch) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, watched := range w.places {
		watched.giveUp()
	}
	w.places = nil
	return nil
}

// known returns the rows of a place, or *Unready until its first list has arrived.
func (w *LocalWatch) known(at place) (*rows, error) {
	watched, err := w.started(at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("watching %s: %w", at, err)
	case !watched.inStep():
		return nil, watched.unready()
	}
	return watched.rows, nil
}

func (w *LocalWatch) started(at place) (*localWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched, ok := w.places[at]; ok {
		return watched, nil
	}
	if w.places == nil {
		return nil, errors.New("the operator is about to end")
	}
	resource, err := w.resource(at.kind)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfigAndClient(w.config, &http.Client{Transport: deployer{w.Deployers.Of(at.namespace), w.transport}})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	watched := &localWatch{
		firstList: newFirstList(at.String(), w.clock.Now()), stop: stop,
		log: w.log.WithValues("namespace", at.namespace, "kind", at.kind),
	}
	watched.rows = newRows(func(name string, labels map[string]string) {
		for _, f := range w.onChange {
			if ctx.Err() == nil {
				f(at.namespace, at.kind, name, labels)
			}
		}
	})
	objects := client.Resource(resource).Namespace(at.namespace)
	go follow(ctx, objects, watched.rows, watched.note)
	go func() {
		select {
		case <-watched.synced:
			watched.end()
		case <-ctx.Done():
		}
	}()
	w.places[at] = watched
	return watched, nil
}

// resource returns the API resource of a kind.
func (w *LocalWatch) resource(kind string) (schema.GroupVersionResource, error) {
	if resource, ok := local[kind]; ok {
		return resource, nil
	}
	if w.Mapper == nil {
		return schema.GroupVersionResource{}, fmt.Errorf("objects of the kind %s are not watched here: only ConfigMaps, Secrets and service accounts are", kind)
	}
	mapping, err := w.Mapper.RESTMapping(schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: kind})
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

// deployer sends requests as a namespace's deployer. It requests no compression: the decompressor of a watch would hold 40 KiB for as long
// as the watch lasts.
type deployer struct {
	user string
	http.RoundTripper
}

// RoundTrip sends a request.
func (d deployer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(transport.ImpersonateUserHeader, d.user)
	r.Header.Set("Accept-Encoding", "identity")
	return d.RoundTripper.RoundTrip(r)
}

// localWatch is the watch of one place.
type localWatch struct {
	*rows
	*firstList
	stop context.CancelFunc
	log  logr.Logger

	noted    sync.Mutex
	denied   bool // The API server refused a list or watch, and has answered none since.
	failures int  // before the first list
}

// giveUp ends the watch.
func (w *localWatch) giveUp() {
	w.stop()
	w.end()
}

// note records the result of a list or watch. If the API server starts to refuse a watch that it allowed before, note logs that once. An
// interrupted request in between says nothing about the rights.
func (w *localWatch) note(err error) {
	w.noted.Lock()
	defer w.noted.Unlock()
	was := w.denied
	w.denied = refused(err) || was && err != nil
	switch {
	case w.inStep():
		if w.denied && !was {
			w.log.Info("The deployer may not watch any more; what was seen last stands until it may again", "reason", err.Error())
		}
	case err != nil:
		if w.failures++; w.failures >= refusals {
			w.fail(err)
		}
	}
}

func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
