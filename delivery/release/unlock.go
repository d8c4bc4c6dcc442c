package release

import (
	"context"
	"fmt"
	"strconv"

	helm "helm.sh/helm/v3/pkg/release"
)

// interrupted marks the pending revision as failed, so that Helm lets the next action begin. It loses its digests: an
// action that was interrupted says nothing about its input, which is tried again at once.
func (p *pass) interrupted(ctx context.Context, r *revision) error {
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return err
	}
	store := conn.store(p.request.Name, &p.slot.memory, p.engine.opts.Now)
	rel, meta, err := store.read(ctx, r.number)
	if err != nil {
		return err
	}
	if meta.ResourceVersion != r.version {
		store.memory.wrote(meta, store.now())
		return fmt.Errorf("%w: revision %d has just been written", ErrLocked, r.number)
	}
	holder := r.holder
	if holder == "" {
		holder = "its holder"
	}
	rel.SetStatus(helm.StatusFailed, fmt.Sprintf("Interrupted: %s stopped while it was %s", holder, r.status))
	if !r.ours { // it is now
		rel.Labels = notOurs(rel.Labels)
		rel.Labels[appLabel], rel.Labels[revisionLabel] = p.want.app, strconv.Itoa(r.number)
	}
	delete(rel.Labels, digestLabel)
	delete(rel.Labels, trialLabel)
	if _, err := store.replace(ctx, rel, r.version); err != nil {
		return fmt.Errorf("unlocking revision %d: %w", r.number, err)
	}
	return nil
}
