// Package release keeps Helm releases as Git declares them. It is the only importer of the Helm SDK.
//
// The state of a release is read from the labels of Helm's own records; pure functions (decide) choose the next action. Each action has its
// own file. The packages below this one do not depend on each other's work: charts and evaluate read and render a chart, manifest checks
// and changes what was rendered, records and fence store it, cluster sends it to the API server. Actions run in a bounded pool, detached
// from the caller, so a Reconcile that is cancelled or repeated never interrupts one. The releases are ordinary Helm releases; the helm
// command can read and change them.
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
	// Discovery and Mapper are shared by all actions. Their requests are made as the operator.
	Discovery discovery.CachedDiscoveryInterface
	Mapper    meta.RESTMapper
	// Records returns the metadata of a release's records without a request: Secrets labelled owner=helm and name=<release>. It may be
	// behind the last writes. If Records is nil, they are listed each time, with the rights of the request's user.
	Records func(ctx context.Context, namespace, release string) ([]metav1.PartialObjectMetadata, error)
	// Releases names the releases whose records have the app's label, without a request. A release of the app with another name than the
	// request is a former one and is uninstalled. Nil: releases are never renamed.
	Releases func(ctx context.Context, namespace, app string) ([]string, error)
	// Explain returns one line, without the name of the object, that says why an object of a namespace (it may be a hook) is not ready, "" when
	// the reason is unknown; mask hides secret values. Nil: no explanations.
	Explain func(ctx context.Context, namespace string, mask func(string) string, o *unstructured.Unstructured) string
	// Apart reads and renders charts in another process.
	Apart apart.Runner
	// Trials is the folder that lists the inputs that exceeded a limit; they are not evaluated again while it exists. "": nothing is
	// recorded.
	Trials string
	// Workers bounds the actions that run at once, 4 by default. A tenant's next action starts only while the tenant runs fewer actions
	// than there are free workers, see fair.Places. An action occupies no worker while it waits for a hook or for objects to become ready,
	// and while its chart is evaluated.
	Workers fair.Bounds
	// Holder names this process in the labels of the releases that it works on.
	Holder string
	// HolderAlive reports whether another process with this holder name may still be running. Nil: it never is, because leader election
	// leaves one active operator.
	HolderAlive func(holder string) bool
	// Now is the clock. Default: the system's.
	Now func() time.Time
	// Seal replaces the digests in Outcome.Deployed and its History, so that readers cannot find out the content by trying guesses. Nil
	// leaves them.
	Seal digest.Seal
	// Notify is called when an action of the app has ended; the next Reconcile or Uninstall returns its result. It must not block.
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

// Forget drops what is remembered of a deleted namespace, and its actions that have no worker yet. Running actions end by themselves.
func (e *Engine) Forget(namespace string) {
	e.pool.Forget(namespace)
	if err := e.trials.Forget(namespace); err != nil {
		e.opts.Log.Error(err, "Forgetting what was evaluated in a namespace that is gone", "namespace", namespace)
	}
}

// Drain accepts no new action, drops those that have no worker yet, and waits until the running ones or ctx have ended.
func (e *Engine) Drain(ctx context.Context) error { return e.pool.Drain(ctx) }
