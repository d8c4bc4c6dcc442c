package step

import (
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// How long work may go on before the status reports it; of a removal; and of work that waits for its turn while many objects change at
// once. Most work ends sooner, and a status that the next one replaces at once is a request for nothing.
const (
	Quiet        = 2 * time.Second
	QuietRemoval = 10 * time.Second
	QuietInLine  = 30 * time.Second
)

// LastLook is the longest pause between two looks at what a step waits for.
const LastLook = 15 * time.Second

// NextLook is when to look again at what no event reports: after a tenth of the time waited so far, from 1 to 15 seconds.
func NextLook(waited time.Duration) time.Duration { return min(max(waited/10, time.Second), LastLook) }

// WaitQuietly ends a step that has waited for a while: as Soon until the quiet time is over, then as Wait with a message. It is looked at
// again after the given time.
func WaitQuietly(waited, quiet, again time.Duration, message error) error {
	if waited < quiet {
		return Soon(min(again, quiet-waited))
	}
	return Wait(v1alpha1.ProgressingReason, again, "%w", message)
}
