package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// HandsOn lets events through that change what was applied: an object is deleted, fields of ours became somebody else's,
// or a person added some. The status that controllers keep writing on quotas and namespaces is no such thing.
var HandsOn = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return ownedFields(e.ObjectOld) != ownedFields(e.ObjectNew)
	},
}

// ChangedByHand reports whether a person changed with kubectl what an object does: such fields are added to what was applied,
// and the next apply takes them back.
func ChangedByHand(o metav1.Object) bool { return slices.ContainsFunc(o.GetManagedFields(), byHand) }

// Applied reports whether kubeop applied the object, by the owners of its fields: labels can be taken away, these cannot by
// whoever may not write everything.
func Applied(o metav1.Object) bool { return slices.ContainsFunc(o.GetManagedFields(), owns) }
