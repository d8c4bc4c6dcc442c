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
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/trials"
)

const (
	defaultWorkers = 4
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
	// Workers is how many actions work at once; one of a tenant begins only while fewer of its own work than workers are free, see
	// fair.Places. An action that waits for a hook or for objects to be ready, or whose chart is evaluated, is none of them. Default 4.
	Workers int
	// Weight returns how many turns a tenant has for one of another's; nil: one.
	Weight func(tenant string) int
	// Holder names this process on the releases it works on.
	Holder string
	// HolderAlive says whether another process that calls itself holder may still be working. Nil: never, because leader
	// election leaves one active operator.
	HolderAlive func(holder string) bool
	// Now is the clock. Default: the system's.
	Now func() time.Time
	// Seal has the digests of Outcome.Content and its History told so that nobody can tell by them what they are of. Nil leaves them.
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

	mu       sync.Mutex
	slots    map[types.NamespacedName]*slot
	crowded  int
	left     map[types.NamespacedName]time.Time
	draining bool
	// running ends with stop, when the engine drains.
	running context.Context
	stop    context.CancelFunc
	workers *fair.Places
	tenants map[string]*tenantActions
	actions sync.WaitGroup

	kinds  *cluster.Kinds
	charts charts.Cache
	trials *trials.Trials
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
	o.Holder = decide.LabelValue(o.Holder)
	e := &Engine{
		opts:    o,
		slots:   map[types.NamespacedName]*slot{},
		crowded: maxUnused,
		left:    map[types.NamespacedName]time.Time{},
		workers: fair.NewPlaces("Helm actions", fair.Bounds{Places: o.Workers, Weight: o.Weight}, clock.RealClock{}),
		tenants: map[string]*tenantActions{},
		kinds:   cluster.NewKinds(o.Discovery, o.Mapper),
		trials:  trials.New(o.Trials, "this chart with these values"),
	}
	e.running, e.stop = context.WithCancel(context.Background())
	e.dial = e.connect
	return e
}

// Request is a release as it should be. The Engine keeps it until the action it starts has ended; it must not be changed.
type Request struct {
	// App is the object the release belongs to; Notify gets it. No two apps share a release.
	App types.NamespacedName
	// Tenant whose share of the workers and of evaluations its actions take, in whatever namespace. Empty: the
	// App's namespace has a share of its own.
	Tenant string
	// Name and Namespace of the release. Its records are Secrets of that namespace.
	Name, Namespace string
	// User is impersonated for everything, such as "system:serviceaccount:team:kubeop-deployer".
	User string
	// Chart and Values to release. Values are merged over those of ChartValuesFiles, and these over the chart's own.
	Chart  charts.Chart
	Values map[string]any
	// ChartValuesFiles are files of the chart, merged in order.
	ChartValuesFiles []string
	// PostRenderers change what was rendered, hooks included, in order; CommonMetadata is then put on it; then Admit sees it.
	PostRenderers  []v1alpha1.PostRenderer
	CommonMetadata *v1alpha1.CommonMetadata
	// Actions say how it is installed, upgraded, tested, mended and uninstalled. A change of them alone makes no revision,
	// but an input that failed or is held is tried again when its install, upgrade or tests are to be done otherwise.
	Actions v1alpha1.HelmActions
	// Ignore names fields that others may change: a change of theirs is no drift.
	Ignore []v1alpha1.IgnoreRule
	// Timeout of the action's hooks, each, where Actions name none. Default 5 minutes.
	Timeout time.Duration
	// Admit checks the rendered objects and stamps them in place: first all manifests, then all hooks, Lists flattened. Its
	// error stops the action before anything is written and comes back in a *NotAllowed. It is called while the action
	// runs, after Reconcile has returned.
	Admit func([]*unstructured.Unstructured) error
	// Refused says that an error of Admit is a refusal, for which only another input helps. Any other is the world's: the
	// attempt is made again. Nil: all are refusals but those of the network and of an API server that is away.
	Refused func(error) bool
	// Weigh is asked before a revision is recorded, but for one of a rollback, with the size of its manifests and of as many records as are
	// kept, in bytes. Its error is a refusal, as one of Admit is. Nil: all sizes are let through.
	Weigh func(bytes int64) error
	// Allowance tells what Admit and Weigh let through, where that is up to more than the input: what failed is tried again with another one.
	Allowance string
	// Retry is the pause after so many failed attempts (1 or more) at this very input. Nil: it is not tried again.
	Retry func(attempts int) time.Duration
	// Proven says that the revision Known was seen healthy and, where that is asked for, its tests succeeded: a rollback may
	// return to it. To one of which that was not said before it was superseded, none does.
	Proven bool
	// Force upgrades a release that is settled or held. Reset counts the failures of this input as none and lifts its hold.
	// Set them until Outcome.Accepted says so. Asked identifies the request and is required then: what was accepted once is
	// not done again, also not by another process.
	Force, Reset bool
	Asked        string
	// Known is the deployed revision whose objects the caller has recorded, and KnownContent the Outcome.Content it came
	// with, without which the number may be that of another installation; zero for none.
	Known        int
	KnownContent string
	// Unmoved reports that the live object is for certain as the engine last left it. Nil: nothing is known.
	Unmoved func(*unstructured.Unstructured) bool
	// Owned names, for each object of the namespace that owns claims with data, those claims, as they are now. Kubernetes would delete
	// them with the object, so that no action deletes it. Once somebody confirmed that they go, it names none.
	Owned func(context.Context) (map[types.UID][]string, error)
	// Sensitive strings, such as values taken from Secrets, are masked in every error.
	Sensitive []string

	// fence goes round every request of an action, seal is that of the Options.
	fence *fence.Fence
	seal  digest.Seal
}

// Outcome is what Reconcile found.
type Outcome struct {
	// Running is true while an action is queued or under way, Action being what it does, such as "upgrading", and Why why,
	// where that is not plain: revisions made by hand, another name. Notify follows. Accepted is set beside it; nothing else is. Why is
	// also set beside Failed when somebody has made a revision by hand since.
	Running bool
	// Queued: it still waits for a worker.
	Queued bool
	Action string
	Why    string
	// Ended is when this process last ended an action on the release, and Why then why that was begun, while none is under way.
	Ended time.Time
	// Accepted: what Request.Asked stands for was done. A revision tells of it, or there was nothing to do, or it failed because
	// of the input before it came to a revision.
	Accepted bool
	// Release is the newest revision.
	Release Info
	// Deployed is the number of the newest deployed revision, zero when there is none, and Content the digest of what it
	// holds and when the release was installed; empty when kubeop did not make it.
	Deployed int
	Content  string
	// Installed: that revision was made by an install, which is kept even when it does not become healthy: there is nothing to
	// return to.
	Installed bool
	// Objects of that revision, with their namespace; hooks are not among them. Nil when Request.Known and KnownContent are of
	// that revision.
	Objects []cluster.Applied
	// Shared are the cluster-scoped objects of that revision, known and unknown as Objects are. An upgrade deletes those that left
	// the chart, but for definitions and what the user may not delete any more: what a caller recorded before and does not
	// find here may still be there.
	Shared []cluster.Shared
	// Failed is why the last attempt at this input failed: ErrRender, *NotAllowed, or anything else. Nil: the release is
	// deployed with this input.
	Failed error
	// World: the failure says nothing about the input, which is tried again for ever.
	World bool
	// Held: this input failed too often and is not tried again until it changes, or Force or Reset asks for it.
	Held bool
	// Stuck: the input failed too often and there is no earlier good revision to return to, so that it is tried on.
	Stuck bool
	// Remediation is what was done, or is being tried, about the failed input; nil for nothing.
	Remediation *Remediation
	// Attempts counts the failures in a row at this input, or of its remediation.
	Attempts int
	// RetryAt is when Reconcile will try again; zero when it will not.
	RetryAt time.Time
	// Log holds Helm's last lines about the failed action, or the API server's warnings about the one that made Objects, at
	// most ten, masked. Only the process that ran it has them.
	Log []string
	// Test is how the tests of the newest revision ended, "Succeeded" or "Failed", or empty; TestWhy why they failed.
	Test, TestWhy string
	// History holds the revisions whose records were at hand since the last Outcome, newest first, and Revisions the status
	// of every revision there is. A snapshot of a revision that is not in Revisions is of the past.
	History   []v1alpha1.ReleaseSnapshot
	Revisions map[int]string
}

// Remediation is what follows an input that failed too often.
type Remediation struct {
	// Kind is what was done.
	Kind v1alpha1.RemediationStrategy
	// To is the revision that a rollback returned to.
	To int
	// Err is why it failed, nil when it succeeded. It is tried again at Outcome.RetryAt.
	Err error
}

// Info describes a revision of a release.
type Info struct {
	Name     string
	Revision int
	// Status is Helm's word for it, such as "deployed".
	Status string
	// Chart is "name-version". It and AppVersion are empty when the revision's record was not read: a snapshot of it was in
	// an earlier Outcome's History.
	Chart      string
	AppVersion string
	// Digest of the input it was made from; empty when kubeop did not make it.
	Digest string
}

func (r *Request) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// knows is whether the caller has recorded this very revision.
func (r *Request) knows(v *decide.Revision) bool {
	return v.Number == r.Known && r.seal.Of(v.Content) == r.KnownContent
}

// proven is whether the caller saw this very revision to be good.
func (r *Request) proven(v *decide.Revision) bool { return r.Proven && r.knows(v) }

func (r *Request) timeout() time.Duration {
	if r.Timeout <= 0 {
		return cluster.DefaultTimeout
	}
	return r.Timeout
}

// longest is the longest that an action may take between two signs of life.
func (r *Request) longest() time.Duration {
	longest := r.timeout()
	a := r.Actions
	for _, own := range []*metav1.Duration{a.Install.Timeout, a.Upgrade.Timeout, a.Uninstall.Timeout, a.Test.Timeout} {
		if own != nil {
			longest = max(longest, own.Duration)
		}
	}
	return longest
}

// check holds what would else fail dangerously: without a user the operator itself would act.
func (r *Request) check() error {
	switch {
	case r.Name == "" || r.Namespace == "":
		return errors.New("the release has no name or namespace")
	case r.User == "":
		return errors.New("the release has no user to impersonate")
	case r.Owned == nil:
		return errors.New("the release does not know what owns claims")
	case r.Admit == nil:
		return errors.New("the release has no admission")
	case (r.Force || r.Reset) && r.Asked == "":
		return errors.New("the release is to be forced or reset, and Asked does not say for which request")
	}
	return nil
}
