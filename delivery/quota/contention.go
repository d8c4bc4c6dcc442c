package quota

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// contention is how long a place in a quota is fought for: some two seconds.
var contention = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 8}

// Create makes an object. Only the quota of its namespace conflicts with a creation: the API server counts the object in it
// and gives up, having made nothing, where others were counted at the same time.
func Create(create func() error) error { return retry.RetryOnConflict(contention, create) }
