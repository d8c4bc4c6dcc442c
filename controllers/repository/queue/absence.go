package queue

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubeop/kubeop/gitops/identity"
)

// Absence is what is known of objects that a commit does not declare any more.
type Absence struct {
	// Gone are objects that left Git and may still exist in the cluster.
	Gone sets.Set[identity.Ref]
	// Shown are objects that the cache has shown since this process last applied them: if it does not show one any more, the object does not exist. Others it
	// may not show yet.
	Shown sets.Set[identity.Ref]
}

// NewAbsence returns one that knows of no object.
func NewAbsence() Absence {
	return Absence{Gone: sets.New[identity.Ref](), Shown: sets.New[identity.Ref]()}
}

// Forget drops an object that does not exist, or is another repository's.
func (a *Absence) Forget(ref identity.Ref) {
	a.Gone.Delete(ref)
	a.Shown.Delete(ref)
}
