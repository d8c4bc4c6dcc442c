// Package release keeps Helm releases at what Git says. It is the only importer of the Helm SDK.
//
// What is true is read from Helm's own storage (state.go), what to do next is decided by a pure function (next.go), and
// each action has its file. Actions run detached from the caller in a bounded pool: a reconcile that is cancelled or
// repeated never stops one half-way. The releases are ordinary ones; the helm command reads and changes them.
package release

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	defaultWorkers = 4
	defaultTimeout = 5 * time.Minute
	// maxHistory is how many revisions of a release are kept, as Flux does by default.
	maxHistory = 5
)

// Options of an Engine.
type Options struct {
	// Config reaches the API server as the operator; each request impersonates its own user on a copy.
	Config *rest.Config
	// Discovery and Mapper are shared by all actions. They are asked as the operator.
	Discovery discovery.CachedDiscoveryInterface
	Mapper    meta.RESTMapper
	// Workers is how many actions run at once, those of one namespace on at most half of them. Default 4.
	Workers int
	// Holder names this process on the releases it works on.
	Holder string
	// HolderAlive says whether another process that calls itself holder may still be working. Nil: never, because leader
	// election leaves one active operator.
	HolderAlive func(holder string) bool
	// Now is the clock. Default: the system's.
	Now func() time.Time
	// Notify is called when an action of the app has ended; Reconcile or Uninstall then tell how. It must not block.
	Notify func(types.NamespacedName)
	// Log gets Helm's own messages at level 1.
	Log logr.Logger
}

// Engine runs Helm actions, one per release at a time.
type Engine struct {
	opts Options
	dial func(Request) (*connection, error)

	mu       sync.Mutex
	slots    map[types.NamespacedName]*slot
	draining bool
	stop     chan struct{}
	tokens   chan struct{}
	shares   map[string]chan struct{}
	actions  sync.WaitGroup

	capsMu sync.Mutex
	caps   *chartutil.Capabilities
}

// New returns an Engine. Config, Discovery, Mapper and Holder are required.
func New(o Options) *Engine {
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if o.Now == nil {
		o.Now = clock.RealClock{}.Now
	}
	if o.Notify == nil {
		o.Notify = func(types.NamespacedName) {}
	}
	if o.HolderAlive == nil {
		o.HolderAlive = func(string) bool { return false }
	}
	o.Holder = labelValue(o.Holder)
	e := &Engine{
		opts:   o,
		slots:  map[types.NamespacedName]*slot{},
		stop:   make(chan struct{}),
		tokens: make(chan struct{}, o.Workers),
		shares: map[string]chan struct{}{},
	}
	e.dial = e.connect
	return e
}

// Request is a release as it should be. The Engine keeps it until the action it starts has ended; it must not be changed.
type Request struct {
	// App is the object the release belongs to; Notify gets it. No two apps share a release.
	App types.NamespacedName
	// Name and Namespace of the release. Its records are Secrets of that namespace.
	Name, Namespace string
	// User is impersonated for everything, such as "system:serviceaccount:team:kubeop-deployer".
	User string
	// Chart and Values to release. Values are merged over the chart's own.
	Chart  Chart
	Values map[string]any
	// Timeout of the action's hooks, each. Default 5 minutes.
	Timeout time.Duration
	// Admit checks the rendered objects and stamps them in place: first all manifests, then all hooks, Lists flattened. Its
	// error stops the action before anything is written and comes back in a *NotAllowed. It is called while the action
	// runs, after Reconcile has returned.
	Admit func([]*unstructured.Unstructured) error
	// Retry is the pause after so many failed attempts (1 or more) at this very input. Nil: it is not tried again.
	Retry func(attempts int) time.Duration
	// Sensitive strings, such as values taken from Secrets, are masked in every error.
	Sensitive []string
}

// Chart is an archive or a folder.
type Chart struct {
	// Archive is the path of a chart's .tgz.
	Archive string
	// Files is a chart folder with its dependencies in charts/; used when Archive is empty.
	Files fs.FS
	// Digest changes when the content does.
	Digest string
}

// Outcome is what Reconcile found.
type Outcome struct {
	// Running is true while an action is queued or under way, Action being what it does, such as "upgrading". Notify follows;
	// nothing else of the Outcome is set.
	Running bool
	Action  string
	// Release is the newest revision.
	Release Info
	// Objects of the newest deployed revision, with their namespace; hooks are not among them.
	Objects []*unstructured.Unstructured
	// Failed is why the last attempt at this input failed: ErrRender, *NotAllowed, or anything else that may pass. Nil: the
	// release is deployed with this input.
	Failed error
	// Attempts counts the failures in a row at this input.
	Attempts int
	// RetryAt is when Reconcile will try again; zero when it will not.
	RetryAt time.Time
}

// Info describes a revision of a release.
type Info struct {
	Name     string
	Revision int
	// Status is Helm's word for it, such as "deployed".
	Status string
	// Chart is "name-version".
	Chart      string
	AppVersion string
	// Digest of the input it was made from; empty when kubeop did not make it.
	Digest string
}

func (r *Request) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

func (r *Request) timeout() time.Duration {
	if r.Timeout <= 0 {
		return defaultTimeout
	}
	return r.Timeout
}

// check holds what would else fail dangerously: without a user the operator itself would act.
func (r *Request) check() error {
	switch {
	case r.Name == "" || r.Namespace == "":
		return errors.New("the release has no name or namespace")
	case r.User == "":
		return errors.New("the release has no user to impersonate")
	case r.Admit == nil:
		return errors.New("the release has no admission")
	}
	return nil
}
