package step

import (
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Quiet is how long work may take before the status reports it, QuietRemoval the same for removals, and QuietInLine for work that waits for
// its turn while many objects change at once. Most work ends sooner, so this saves a status write that the next one would replace at once.
const (
	Quiet        = 2 * time.Second
	QuietRemoval = 10 * time.Second
	QuietInLine  = 30 * time.Second
)

// LastLook is the longest interval between two checks while a step waits.
const LastLook = 15 * time.Second

// NextLook is when to check again something for which there is no event, and the pause between two health checks: after a tenth of the time
// waited so far, between 1 and 15 seconds.
func NextLook(waited time.Duration) time.Duration { return min(max(waited/10, time.Second), LastLook) }

// WaitQuietly ends a step that has waited for some time: like Soon until the quiet time is over, then like Wait with a message. The object
// is reconciled again after the time "again".
func WaitQuietly(waited, quiet, again time.Duration, message error) error {
	if waited < quiet {
		return Soon(min(again, quiet-waited))
	}
	return Wait(v1alpha1.ProgressingReason, again, "%w", message)
}
