package step

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/kube"
)

const (
	// listLimit is how long the first list of a kind may take before the status of objects that need it reports the delay.
	listLimit = 30 * time.Second
	// listLook is when to reconcile an object again if no list has woken it.
	listLook = 15 * time.Second
)

// waker identifies an object to a watch's first list, which wakes each object once.
type waker struct {
	runner *Runner
	key    client.ObjectKey
}

// awaits returns the verdict of a step that needs a watch which had no first list yet: the step waits without occupying a worker, and the
// list wakes the object. It returns nil for any other error. If the API server refuses the list, the step fails, but the first successful
// list still wakes the object.
func (r *Runner) awaits(obj Object, err error) *verdict {
	var unready *kube.Unready
	if !errors.As(err, &unready) {
		return nil
	}
	if key := client.ObjectKeyFromObject(obj); r.Wake != nil {
		unready.Wake(waker{r, key}, func() { r.Wake(key) })
	}
	switch lasts := r.Clock.Now().Sub(unready.Since); {
	case unready.Err != nil:
		return nil
	case lasts < listLimit:
		return &verdict{kind: quiet, after: listLook, err: err}
	}
	return &verdict{kind: waiting, reason: v1alpha1.ProgressingReason, after: listLook, err: err}
}
