package quota

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// contention is how long to retry a conflict about a quota: some two seconds.
var contention = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 8}

// Retry calls write, which may create an object, and again while the answer is a conflict about a quota.
func Retry(write func() error) error { return retry.OnError(contention, Contended, write) }

// Contended reports whether the API server refused an object because other objects were counted in its namespace's quota at the same time.
// Nothing was written then.
func Contended(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsConflict(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "resourcequotas"
}
