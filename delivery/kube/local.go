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

// refusals is how many times in a row the API server may refuse a first list before callers get the error. By retries, and since
// a list is tried in two ways each time, that is in the first second or two, in which a new deployer's rights come into force.
const refusals = 8

// local are the kinds a LocalWatch knows besides the sources of Flux.
var local = map[string]schema.GroupVersionResource{
	"ConfigMap": corev1.SchemeGroupVersion.WithResource("configmaps"), "Secret": corev1.SchemeGroupVersion.WithResource("secrets"),
}

// LocalWatch knows the metadata of Secrets, ConfigMaps and, where they are served, the sources of Flux in the namespaces of projects, each namespace by the eyes of its
// deployer: the operator itself may not see Secrets. A kind is watched in a namespace from the first look at it
// until Forget. It is one watch request and as much memory as its metadata without annotations needs, packed.
//
// No look waits: until the first list is there it is an *Unready, which says why where the API server keeps refusing it, and can wake
// who looked. From then on looks get what was seen last, also while the watch is interrupted.
type LocalWatch struct {
	// Mapper finds the version in which a source of Flux is served. Without it there is none. It is set before the first look.
	Mapper meta.RESTMapper

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
// bursts. Call OnChange before the first look.
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

// Releases returns the names, sorted, of the releases that are an app's by the labels of their records.
func (w *LocalWatch) Releases(_ context.Context, namespace, app string) ([]string, error) {
	secrets, err := w.known(place{namespace, "Secret"})
	if err != nil {
		return nil, err
	}
	return secrets.releases(app), nil
}

// Version returns the resourceVersion of a ConfigMap, Secret or source of Flux as last seen, "" when there is none of that name.
func (w *LocalWatch) Version(_ context.Context, namespace, kind, name string) (string, error) {
	objects, err := w.known(place{namespace, kind})
	if err != nil {
		return "", err
	}
	return objects.version(name), nil
}

// Forget ends the watches of a namespace; the next look begins them anew.
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

// known returns what is known of a place, once that is all there is.
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
	client, err := metadata.NewForConfigAndClient(w.config, &http.Client{Transport: deployer{DeployerOf(at.namespace), w.transport}})
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

// resource is where objects of a kind are.
func (w *LocalWatch) resource(kind string) (schema.GroupVersionResource, error) {
	if resource, ok := local[kind]; ok {
		return resource, nil
	}
	if w.Mapper == nil {
		return schema.GroupVersionResource{}, fmt.Errorf("objects of the kind %s are not watched here: only ConfigMaps and Secrets are", kind)
	}
	mapping, err := w.Mapper.RESTMapping(schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: kind})
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

// deployer sends requests as a namespace's deployer. Answers come as they are: a watch that is compressed holds 40 KiB to
// be inflated with for as long as it lasts.
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
	last     error // of the last list or watch
	failures int   // before the first list
}

// giveUp ends the watch.
func (w *localWatch) giveUp() {
	w.stop()
	w.end()
}

// note takes in how a list or watch went. That the API server refuses what it allowed before is logged, once.
func (w *localWatch) note(err error) {
	w.noted.Lock()
	defer w.noted.Unlock()
	was := w.last
	w.last = err
	switch {
	case w.inStep():
		if refused(err) && !refused(was) {
			w.log.Info("The deployer may not watch any more; what was seen last stands until it may again", "reason", err.Error())
		}
	case err != nil:
		if w.failures++; w.failures >= refusals {
			w.fail(err)
		}
	}
}

func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
