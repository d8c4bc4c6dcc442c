package delivered

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Changed passes updates of an App that begin or end a delivery.
var Changed = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.App).Status.Deliveries, e.ObjectNew.(*v1alpha1.App).Status.Deliveries
		if len(was) == 0 || len(is) == 0 {
			return len(was) != len(is)
		}
		return was[0].Result != is[0].Result || digestOf(&was[0]) != digestOf(&is[0])
	},
}
