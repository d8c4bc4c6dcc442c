package quota

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// contention is how long to retry a conflict about a quota: some two seconds.
var contention = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 8}

// Create creates an object. A creation can only conflict about the quota of its namespace: the API server counts the object in the quota,
// and gives up without creating anything if other objects were counted at the same time.
func Create(create func() error) error { return retry.RetryOnConflict(contention, create) }
