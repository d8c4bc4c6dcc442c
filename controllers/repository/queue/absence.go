package queue

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Absence is what is known of objects that a commit does not declare any more.
type Absence struct {
	// Gone are objects that left Git and may still exist in the cluster.
	Gone sets.Set[identity.Ref]
	// Shown are objects that the cache has shown since this process last applied them: if it does not show one any more, the object does not exist. Others it
	// may not show yet.
	Shown sets.Set[identity.Ref]
	// written are the objects that this process applied and that are not in Shown, with the resourceVersion of the last write; "" if it is not known.
	written map[identity.Ref]string
}

// NewAbsence returns one that knows of no object.
func NewAbsence() Absence {
	return Absence{Gone: sets.New[identity.Ref](), Shown: sets.New[identity.Ref](), written: map[identity.Ref]string{}}
}

// Wrote records that an object was applied, and the resourceVersion in which it was written; "" if that is not known, as after an error.
func (a *Absence) Wrote(ref identity.Ref, version string) {
	a.Shown.Delete(ref)
	a.written[ref] = version
}

// Show records that the cache shows an object. A state from before the last apply does not count: it may be of an object that was deleted by hand meanwhile,
// and that was made again by the apply.
func (a *Absence) Show(ref identity.Ref, live metav1.Object) {
	if version, wrote := a.written[ref]; wrote && (version == "" || metadata.Behind(live, version)) {
		return
	}
	delete(a.written, ref)
	a.Shown.Insert(ref)
}

// Forget drops an object that does not exist, or is another repository's.
func (a *Absence) Forget(ref identity.Ref) {
	a.Gone.Delete(ref)
	a.Shown.Delete(ref)
	delete(a.written, ref)
}
