// Package release keeps Helm releases at what Git says. It is the only importer of the Helm SDK.
//
// What is true is read from the labels of Helm's own records, and what to do next decided of it, by pure functions (decide). Each action has
// its file; it uses rooms that know nothing of each other's work: what the chart holds and renders to (charts, evaluate), what passes of
// it (manifest), how it is written down (records, fence) and sent to the API server (cluster). Actions run detached from the caller in a
// bounded pool: a reconcile that is cancelled or repeated never stops one half-way. The releases are ordinary ones; the helm command
// reads and changes them.
package release

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/pool"
	"github.com/kubeop/kubeop/delivery/release/records"
	"github.com/kubeop/kubeop/delivery/trials"
)

// maxHistory is how many revisions of a release are kept, as Flux does by default.
const maxHistory = 5

// Options of an Engine.
type Options struct {
	// Config reaches the API server as the operator; each request impersonates its own user on a copy.
	Config *rest.Config
	// Discovery and Mapper are shared by all actions. They are asked as the operator.
	Discovery discovery.CachedDiscoveryInterface
	Mapper    meta.RESTMapper
	// Records returns the metadata of a release's records, at no cost: Secrets labelled owner=helm and name=<release>. It
	// may lag behind what was written. Nil: they are listed each time, as the request's user.
	Records func(ctx context.Context, namespace, release string) ([]metav1.PartialObjectMetadata, error)
	// Releases names the releases whose records carry the app's label, at no cost. A release of the app that has another name
	// than the request is a former one and goes. Nil: no release is ever renamed.
	Releases func(ctx context.Context, namespace, app string) ([]string, error)
	// Explain says on one line why an object of a namespace, a hook maybe, is not as far as it should be, "" when it does not
	// know; mask hides what no message may show. Nil: nobody knows.
	Explain func(ctx context.Context, namespace string, mask func(string) string, o *unstructured.Unstructured) string
	// Apart has charts read and rendered.
	Apart apart.Runner
	// Trials is a folder that remembers which inputs were over a limit, for as long as it exists: they are not evaluated
	// again. "": nothing is remembered.
	Trials string
	// Workers bounds the actions that work at once, 4 by default; one of a tenant begins only while fewer of its own work than workers are
	// free, see fair.Places. An action that waits for a hook or for objects to be ready, or whose chart is evaluated, is none of them.
	Workers fair.Bounds
	// Holder names this process on the releases it works on.
	Holder string
	// HolderAlive says whether another process that calls itself holder may still be working. Nil: never, because leader
	// election leaves one active operator.
	HolderAlive func(holder string) bool
	// Now is the clock. Default: the system's.
	Now func() time.Time
	// Seal has the digests of Outcome.Deployed and its History told so that nobody can tell by them what they are of. Nil leaves them.
	Seal digest.Seal
	// Notify is called when an action of the app has ended; Reconcile or Uninstall then tell how. It must not block.
	Notify func(types.NamespacedName)
	// Log gets Helm's own messages at level 1.
	Log logr.Logger
}

// Engine runs Helm actions, one per release at a time.
type Engine struct {
	opts Options
	dial func(Request) (*cluster.Connection, error)

	pool   *pool.Pool[memory]
	kinds  *cluster.Kinds
	charts charts.Cache
	trials *trials.Trials
}

// New returns an Engine. Config, Discovery, Mapper and Holder are required.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = clock.RealClock{}.Now
	}
	if o.Notify == nil {
		o.Notify = func(types.NamespacedName) {}
	}
	if o.HolderAlive == nil {
		o.HolderAlive = func(string) bool { return false }
	}
	o.Holder = decide.LabelValue(o.Holder)
	e := &Engine{
		opts:   o,
		pool:   pool.New[memory](pool.Options{Workers: o.Workers, Notify: o.Notify, Now: o.Now, Linger: records.Stale}),
		kinds:  cluster.NewKinds(o.Discovery, o.Mapper),
		trials: trials.New(o.Trials, "this chart with these values"),
	}
	e.dial = e.connect
	return e
}

// Forget drops what is remembered of a namespace that is gone, and the actions in it that have no worker yet. Those that run end by themselves.
func (e *Engine) Forget(namespace string) {
	e.pool.Forget(namespace)
	if err := e.trials.Forget(namespace); err != nil {
		e.opts.Log.Error(err, "Forgetting what was evaluated in a namespace that is gone", "namespace", namespace)
	}
}

// Drain starts nothing more, drops the actions that have no worker yet and waits until those that run have ended, or ctx has.
func (e *Engine) Drain(ctx context.Context) error { return e.pool.Drain(ctx) }
