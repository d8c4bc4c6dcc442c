// Package subject has the facts about an App that all steps of its Reconcile use: its owner, its deployer's client, its limits, the texts
// to mask, and when to reconcile again.
package subject

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/own"
)

// maxQuoted is how many characters of another component's text a message quotes.
const maxQuoted = 200

// Subject is the App of one Reconcile.
type Subject struct {
	App *v1alpha1.App
	// Owner is the tenant, project and namespace of the App, and Client acts as the project's deployer. Both are unset until the project is
	// resolved.
	Owner  own.Owner
	Client client.Client
	// ClusterKinds are the cluster-scoped kinds that the App may have. Limits are those of its tenant.
	ClusterKinds []string
	Limits       budget.Limits
	Exceptions
	// PullSecrets are those with the credentials of Registries in the App's namespace.
	PullSecrets []v1alpha1.PullSecret
	// Guardrails are the rules of the policies that hold in the App's project; nil for none.
	Guardrails *v1alpha1.GuardrailsSpec
	Holds
	// PodSecurity is the Pod Security level of the App's namespace. Fill is which pod fields are filled in for that level, a constant of
	// package podsecurity.
	PodSecurity, Fill string

	clock     clock.PassiveClock
	progress  *progress
	sensitive []string
	again     time.Duration
}

// Exceptions are what administrators allow the App's tenant besides what every App may have: taints that its pods may tolerate, annotations of
// its Ingresses, CSI drivers of which its pods may have inline volumes, PriorityClasses of its pods, and how long a pod may take to end. Usual are the cluster's
// default classes.
type Exceptions struct {
	Taints, IngressAnnotations, CSIDrivers, PriorityClasses []string

	GracePeriod time.Duration
	Usual       classes.Usual
}

// Holds are what keeps back what is new of the App's tenant.
type Holds struct {
	// Freeze are the freeze windows of the tenant. Frozen says that administrators froze it, and Stopped that they stopped it; nil if they did not.
	Freeze          []v1alpha1.FreezeWindow
	Frozen, Stopped *freeze.Hold
	// PodsRefused: the App is being deleted from a namespace in which no pod is admitted, because the tenant is stopped.
	PodsRefused bool
}

// Actions returns the settings of the App's Helm actions. A release is uninstalled without hooks where no pod is admitted: none could end, and the
// deletion of a tenant that is stopped does not start anything of it.
func (h Holds) Actions(declared v1alpha1.HelmActions) v1alpha1.HelmActions {
	declared.Uninstall.DisableHooks = declared.Uninstall.DisableHooks || h.PodsRefused
	return declared
}

// progress is the phase in which an App waits, and since when.
type progress struct {
	phase string
	since time.Time
}

// Subjects creates the Subject of each Reconcile, and keeps the progress of Apps between Reconciles.
type Subjects struct {
	Clock clock.PassiveClock

	progress Memory[progress]
}

// New returns the subject of a Reconcile of an App.
func (s *Subjects) New(app *v1alpha1.App) *Subject {
	return &Subject{App: app, progress: s.progress.Get(app), clock: s.Clock}
}

// Forget drops the state of an App.
func (s *Subjects) Forget(app *v1alpha1.App) { s.progress.Forget(app) }

// Apart returns a copy of the subject, for work beside the Reconcile: its App does not get the status that the Reconcile writes, and its phases are its
// own.
func (s *Subject) Apart() *Subject {
	c, waits := *s, *s.progress
	c.App, c.progress, c.sensitive = s.App.DeepCopy(), &waits, slices.Clip(s.sensitive)
	return &c
}

// Key is the namespace and name of the App.
func (s *Subject) Key() types.NamespacedName { return client.ObjectKeyFromObject(s.App) }

// OfPlatform reports whether the App is one of the platform itself.
func (s *Subject) OfPlatform() bool { return s.Owner.Tenant == v1alpha1.PlatformTenant }

// Now returns the present time.
func (s *Subject) Now() time.Time { return s.clock.Now() }

// Since returns when the App began to wait in a phase: now, if its last phase was another one.
func (s *Subject) Since(phase string) time.Time {
	if s.progress.phase != phase {
		s.progress.phase, s.progress.since = phase, s.Now()
	}
	return s.progress.since
}

// Waited returns for how long the App has been waiting in a phase.
func (s *Subject) Waited(phase string) time.Duration { return s.Now().Sub(s.Since(phase)) }

// Settled ends the phase. If the App waits again, its time starts anew.
func (s *Subject) Settled() { s.progress.phase = "" }

// Hide adds texts that no message may show.
func (s *Subject) Hide(texts ...string) { s.sensitive = append(s.sensitive, texts...) }

// Sensitive returns the texts that no message may show.
func (s *Subject) Sensitive() []string { return s.sensitive }

// Mask masks the sensitive texts in a message.
func (s *Subject) Mask(text string) string { return mask.Of(s.sensitive)(text) }

// Quote returns the first 200 characters of another component's text. It masks the text before it cuts it, because half a secret would not
// be recognized.
func (s *Subject) Quote(text string) string {
	return few.Cut(s.Mask(text), maxQuoted)
}

// LookAgain schedules another Reconcile of a healthy App, before its interval is over. The earliest of all calls counts; 0 or less schedules none.
func (s *Subject) LookAgain(after time.Duration) { s.again = backoff.Sooner(s.again, after) }

// Again returns after which time to reconcile a healthy App; 0 for its interval.
func (s *Subject) Again() time.Duration { return s.again }

// DeclaredRevision is the commit that declared the App; for an App that was not declared in Git, its generation.
func (s *Subject) DeclaredRevision() string {
	if revision := s.App.Annotations[v1alpha1.RevisionAnnotation]; revision != "" {
		return revision
	}
	return fmt.Sprintf("generation %d", s.App.Generation)
}

// Requested reports whether the App has a new reconcile request.
func (s *Subject) Requested() bool {
	token, ok := meta.ReconcileAnnotationValue(s.App.Annotations)
	return ok && token != s.App.Status.GetLastHandledReconcileRequest()
}

// Forced reports whether a person requests another try, by an annotation with a new value.
func (s *Subject) Forced() bool {
	return isNew(s.App.Annotations[meta.ForceRequestAnnotation], s.App.Status.LastHandledForceAt)
}

// Reset reports whether a person requests that the release's failures are forgotten, by an annotation with a value that was not handled.
func (s *Subject) Reset() bool {
	return isNew(s.App.Annotations[v1alpha1.ResetAnnotation], s.App.Status.LastHandledResetAt)
}

// isNew reports whether an annotation has a value that was not handled. Removing the annotation requests nothing.
func isNew(value, handled string) bool { return value != "" && value != handled }

// Labels are the labels of the objects that the App owns.
func (s *Subject) Labels() map[string]string {
	return map[string]string{v1alpha1.TenantLabel: s.Owner.Tenant, v1alpha1.ProjectLabel: s.Owner.Project, v1alpha1.AppLabel: s.Owner.App}
}
