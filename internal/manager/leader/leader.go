// Package leader has one of several managers do what only one should do at a time, such as measuring usage.
package leader

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/store"
)

const (
	// again is how often a manager tries to lead, and how long it waits after its work failed once. After each further failure it waits twice as long, and maxPause at most.
	again    = 5 * time.Second
	maxPause = time.Minute
)

// Elector elects by a lock in the store, so no right in Kubernetes is needed, and who cannot reach the store, without which there is nothing to do, does not lead. A manager that is killed
// loses the lead at once, and one that hangs within 15 s; then another one takes it within 5 s.
type Elector struct {
	Leads store.Leads
	Log   logr.Logger
}

// Run runs do for as long as this manager has the lead of this name, until the context ends. Each name has a lead of its own. The context of do ends when the lead is lost. What do has
// begun then may meet what the next leader does, so it has to be safe to do it twice. If do returns before, it is run again, after a pause.
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
			pause = again // A failure after a long lead is no further one.
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
