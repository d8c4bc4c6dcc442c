// Package leader elects one of several managers for work that only one may do at a time, such as measuring usage.
package leader

import (
	"context"
	"time"

	"github.com/go-logr/logr"
)

const (
	// again is how often a manager tries to lead, and how long it pauses after its work failed once. Each further failure doubles the pause, up to
	// maxPause.
	again    = 5 * time.Second
	maxPause = time.Minute
)

// Elector elects by a lock in the store. So it needs no right in Kubernetes, and a manager that cannot reach the store, without which it can do no
// work, does not lead. A manager that is killed loses the lead at once, and one that hangs within 15 s. Another one takes the lead within 5 s.
type Elector struct {
	Leads Leads
	Log   logr.Logger
}

// Leads elects the one of several managers that has a lead: the store does.
type Leads interface {
	// Lead calls do unless another manager has the lead of this name, and reports whether it called it. The context of do ends if the lead is lost.
	Lead(ctx context.Context, name string, do func(context.Context) error) (led bool, err error)
}

// Run calls do while this manager has the lead of a name, until the context ends. Each name is elected separately. The context of do ends when the
// lead is lost. The last steps of do may then overlap with the work of the next leader, so they must be safe to do twice. If do returns early, Run
// calls it again after a pause.
func (e *Elector) Run(ctx context.Context, name string, do func(context.Context) error) error {
	log := e.Log.WithValues("work", name)
	pause, failing := again, false
	for {
		began := time.Now()
		led, err := e.Leads.Lead(ctx, name, func(ctx context.Context) error {
			log.Info("Leading")
			return do(logr.NewContext(ctx, log))
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			pause = again
		case led || !failing: // That the store does not answer is logged once.
			log.Error(err, "Leading")
		}
		failing = err != nil
		if time.Since(began) > maxPause {
			pause = again // A failure after a long lead counts as the first one.
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if failing {
			pause = min(2*pause, maxPause)
		}
	}
}
