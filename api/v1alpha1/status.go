package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReconcileStatus is what every kind reports alike.
type ReconcileStatus struct {
	// ObservedGeneration is the last generation of the spec that was acted on; -1 before the first time.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions say how far the object came. Ready is the summary of the others; Reconciling and Stalled are present
	// only while they are true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// Inventory lists the objects that were applied, so that what leaves the source can be deleted.
type Inventory struct {
	// Entries are sorted by ID.
	// +optional
	Entries []InventoryEntry `json:"entries,omitempty"`
}

// InventoryEntry names one applied object.
type InventoryEntry struct {
	// ID is "<namespace>_<name>_<group>_<kind>", empty parts left empty, as Flux writes it.
	ID string `json:"id"`
	// Version is the API version the object was last applied with.
	Version string `json:"v"`
	// Digest is the state the object was left in: the applied manifest, under a key that only the operator has, and the fields owned
	// afterwards. When both still match, the object is neither read nor written.
	// +optional
	Digest string `json:"d,omitempty"`
	// Policy is what the object's annotation paas.kubeop.io/prune said when it was applied: "c" for confirm, "d" for
	// disabled, empty for none. Of a Secret, and of what no watch shows, it is "c" too once it was found to wait; "cl" is of an
	// object that left its source and owns claims that hold data.
	// +optional
	Policy PrunePolicy `json:"p,omitempty"`
	// Stale says of a cluster-scoped object of a Helm release that it left the chart and may still be there.
	// +optional
	Stale bool `json:"s,omitempty"`
}

// PrunePolicy says what protects an object from deletion, in one letter: the inventory may hold thousands.
// +kubebuilder:validation:Enum=c;cl;d
type PrunePolicy string

// The policies, the strictest last; that of an object without protection is "".
const (
	PolicyConfirm  PrunePolicy = "c"
	PolicyClaims   PrunePolicy = "cl"
	PolicyDisabled PrunePolicy = "d"
)

// LocalSecretReference names a Secret; the field that holds it says in which namespace.
type LocalSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DeletionPolicy says what happens to what an object made when the object is deleted.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionDelete removes everything the object made and waits until it is gone.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves everything running, unmanaged.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// AppDeletionPolicy says what happens to what an app delivered when the app is deleted.
// +kubebuilder:validation:Enum=Delete;Orphan;WaitForTermination
type AppDeletionPolicy string

const (
	// AppDeletionDelete removes everything the app delivered and waits until those objects are gone. What holds data, such
	// as a PersistentVolumeClaim, stays until somebody deletes it.
	AppDeletionDelete AppDeletionPolicy = "Delete"
	// AppDeletionOrphan leaves everything running, unmanaged.
	AppDeletionOrphan AppDeletionPolicy = "Orphan"
	// AppDeletionWaitForTermination is Delete, and waits also for what those objects own, pods above all.
	AppDeletionWaitForTermination AppDeletionPolicy = "WaitForTermination"
)

// ClaimDeletionPolicy says what becomes of PersistentVolumeClaims that hold data when what they belong to is deleted: the
// app, the project, the tenant or the namespace. The most specific policy that is set holds: the App's before the
// Project's before the Tenant's; Retain where none is.
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimDeletionPolicy string

const (
	// ClaimRetain keeps the claim, its volume and the namespace it is in. A deletion never takes it along.
	ClaimRetain ClaimDeletionPolicy = "Retain"
	// ClaimDelete deletes the claim once somebody has confirmed a deletion whose list names it.
	ClaimDelete ClaimDeletionPolicy = "Delete"
)
