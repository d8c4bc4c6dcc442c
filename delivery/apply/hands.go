package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// HandsOn lets events through that change what was applied: an object is deleted, fields of ours became somebody else's,
// or a person added some. The status that controllers keep writing on quotas and namespaces is no such thing.
var HandsOn = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	CreateFunc: func(event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
		return ownedFields(e.ObjectOld) != ownedFields(e.ObjectNew)
	},
}
