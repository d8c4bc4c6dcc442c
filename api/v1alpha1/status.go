package v1alpha1

import (
	"strings"

	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReconcileStatus is the status that all kinds share.
type ReconcileStatus struct {
	// ObservedGeneration is the last generation of the spec that was reconciled. It is -1 before the first time.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the results of the steps. Ready is their summary. Reconciling and Stalled are present only while they are true.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ReadyMessage is the message that Ready had before the object was suspended: while it is suspended, Ready's message begins with that of
	// Suspended. Otherwise it is empty.
	ReadyMessage string `json:"readyMessage,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// Refused is a newer version in Git that is not used because something is wrong with it.
type Refused struct {
	// Revision is the commit that has this version, as "branch@sha1:<commit>".
	Revision string `json:"revision"`
	// Place is where it is wrong first, as "file:line:column", or as much of it as is known.
	Place string `json:"place"`
	// Problem is what is wrong there.
	Problem string `json:"problem"`
}

// AppCounts are the apps of a Project or Tenant.
type AppCounts struct {
	// Apps counts the apps.
	Apps int `json:"apps,omitempty"`
	// ReadyApps counts the apps that are Ready.
	ReadyApps int `json:"readyApps,omitempty"`
	// AppsReady is both, as "10/12".
	AppsReady string `json:"appsReady,omitempty"`
}

// Inventory lists the applied objects, so that objects that leave the source can be deleted.
type Inventory struct {
	// Entries are sorted by ID.
	Entries []InventoryEntry `json:"entries,omitempty"`
}

// InventoryEntry names one applied object.
type InventoryEntry struct {
	// ID is "<namespace>_<name>_<group>_<kind>", as in Flux. Missing parts are empty.
	ID string `json:"id"`
	// Version is the API version with which the object was last applied.
	Version string `json:"v"`
	// Digest of the last applied state: a keyed digest of the manifest, and the fields that kubeop owned afterwards. If both still
	// match, the object is neither read nor written. Only the operator has the key.
	Digest string `json:"d,omitempty"`
	// Policy is the object's annotation paas.kubeop.io/prune when it was applied: "c" for confirm, "d" for disabled, empty for none. For
	// a Secret, or an object that is not watched, it is also "c" after its deletion was held. "cl" means that the object left its source
	// and owns claims that hold data.
	Policy PrunePolicy `json:"p,omitempty"`
	// Stale marks a cluster-scoped object that left the chart of a Helm release and may still exist.
	Stale bool `json:"s,omitempty"`
}

// PrunePolicy defines how an object is protected from deletion. Values are short because an inventory may hold thousands.
// +kubebuilder:validation:Enum=c;cl;d
type PrunePolicy string

// The policies, from weak to strict. An object without protection has "".
const (
	PolicyConfirm  PrunePolicy = "c"
	PolicyClaims   PrunePolicy = "cl"
	PolicyDisabled PrunePolicy = "d"
)

// LocalSecretReference names a Secret. The field that holds it defines the namespace.
type LocalSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DeletionPolicy defines what happens to the objects that a deleted object created.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionDelete deletes everything the object created and waits until it is gone.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan keeps everything running, unmanaged.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// AppDeletionPolicy defines what happens to the objects that a deleted app delivered.
// +kubebuilder:validation:Enum=Delete;Orphan;WaitForTermination
type AppDeletionPolicy string

const (
	// AppDeletionDelete deletes everything the app delivered and waits until it is gone. Objects that hold data, such as a
	// PersistentVolumeClaim, are kept.
	AppDeletionDelete AppDeletionPolicy = "Delete"
	// AppDeletionOrphan keeps everything running, unmanaged.
	AppDeletionOrphan AppDeletionPolicy = "Orphan"
	// AppDeletionWaitForTermination is Delete, and also waits for dependents of those objects, such as pods.
	AppDeletionWaitForTermination AppDeletionPolicy = "WaitForTermination"
)

// ClaimDeletionPolicy defines what happens to PersistentVolumeClaims that hold data when their app, project, tenant or namespace is
// deleted. The App's policy overrides the Project's, which overrides the Tenant's. Default Retain.
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimDeletionPolicy string

const (
	// ClaimRetain keeps the claim, its volume and its namespace. A deletion of their owner never deletes them.
	ClaimRetain ClaimDeletionPolicy = "Retain"
	// ClaimDelete deletes the claim after a confirmation of a list of deletions that names it.
	ClaimDelete ClaimDeletionPolicy = "Delete"
)

// The step runner needs the schedule and the common status, including conditions, of every kind.

// GetSchedule returns a copy, because the interval of a Repository has another default.
func (o *Repository) GetSchedule() *Schedule {
	p := &o.Spec.Polling
	return &Schedule{Pace: Pace{Interval: p.Interval, RetryInterval: p.RetryInterval}, Suspend: p.Suspend}
}
func (o *Repository) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *Repository) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *Repository) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

func (o *Tenant) GetSchedule() *Schedule               { return &o.Spec.Schedule }
func (o *Tenant) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *Tenant) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *Tenant) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

func (o *Project) GetSchedule() *Schedule               { return &Schedule{Pace: o.Spec.Pace} }
func (o *Project) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *Project) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *Project) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

// GetSchedule returns the default interval: events report what changes.
func (o *Registry) GetSchedule() *Schedule {
	return &Schedule{Pace: Pace{Interval: metav1.Duration{Duration: 10 * time.Minute}}}
}
func (o *Registry) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *Registry) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *Registry) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

func (o *App) GetSchedule() *Schedule               { return &o.Spec.Schedule }
func (o *App) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *App) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *App) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

// StatusIsCurrent reports whether a condition Ready of the app is about the present spec, and about the present content of the app's folder. A commit that
// changes only files beside app.yaml changes annotations, and not the generation.
func (o *App) StatusIsCurrent(ready *metav1.Condition) bool {
	tree := o.Annotations[TreeAnnotation]
	switch {
	case ready.ObservedGeneration != o.Generation:
		return false
	case tree == "":
		return true
	case ready.Status == metav1.ConditionTrue:
		return o.Status.ObservedTree == tree
	}
	// The status of an app with content from elsewhere names the revision of that, so it does not say which folder was tried.
	elsewhere := o.Spec.Git != nil || o.Spec.Helm != nil && (o.Spec.Helm.Git != nil || o.Spec.Helm.Repository != "")
	return elsewhere || o.Status.LastAttemptedRevision == o.Annotations[RevisionAnnotation]
}

// CommitOf returns the commit in a revision of Git, such as "main@sha1:<commit>"; "" for any other revision.
func CommitOf(revision string) string {
	_, commit, _ := strings.Cut(revision, "sha1:")
	return commit
}
