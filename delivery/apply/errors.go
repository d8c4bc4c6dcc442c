package apply

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeop/kubeop/delivery/denial"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// ErrPending says that an object will be applied as soon as some operation in progress has ended; nothing is wrong.
var ErrPending = errors.New("is under way")

// ErrQuota means that an object would exceed the namespace's quota.
var ErrQuota = errors.New("the quota has no room")

// quotaError says that the quota refused an object.
type quotaError struct{ error }

func (e *quotaError) Error() string {
	return e.error.Error() + "; raise the quota in project.yaml, or ask for less"
}
func (e *quotaError) Unwrap() error { return e.error }

// Is reports that quotaError is an ErrQuota.
func (e *quotaError) Is(reason error) bool { return reason == ErrQuota }

// OverQuota reports whether the API server refused an object because of a quota.
func OverQuota(err error) bool {
	return errors.Is(err, ErrQuota) || denial.ByQuota(err)
}

// Only reports whether all objects in an error of Apply failed for one of these reasons: ErrPending, ErrContested, ErrForeign or ErrQuota.
func Only(err error, reasons ...error) bool {
	for _, each := range inventory.Split(err) {
		if !slices.ContainsFunc(reasons, func(reason error) bool { return errors.Is(each, reason) }) {
			return false
		}
	}
	return err != nil
}

// refused reports whether the API server answered and rejected the object.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}
