package step

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/kube"
)

const (
	// listLimit is how long the first list of a kind may take before the status of what needs it says so.
	listLimit = 30 * time.Second
	// listLook is when to look again at what a list did not wake.
	listLook = 15 * time.Second
)

// waker is what a watch wakes, one for each object.
type waker struct {
	runner *Runner
	key    client.ObjectKey
}

// awaits returns how a step ends that needs a watch's first list before there is one: it waits, without a worker, and the list wakes the
// object. It returns nil for any other error. A list that the API server refuses counts as a failure, but its first success wakes the object.
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
