package apply

import (
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
