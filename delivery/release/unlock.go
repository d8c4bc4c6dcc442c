package release

import (
	"context"
	"fmt"
	"strconv"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// interrupted marks the pending revision as failed, so that Helm lets the next action begin. It loses its digests: an
// action that was interrupted says nothing about its input, which is tried again at once.
func (p *pass) interrupted(ctx context.Context, r *decide.Revision) error {
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return err
	}
	store := p.engine.records(conn, p.request, &p.slot.memory)
	rel, meta, err := store.Read(ctx, r.Number)
	if err != nil {
		return err
	}
	if meta.ResourceVersion != r.Version {
		store.Found(meta)
		return fmt.Errorf("%w: revision %d has just been written", fault.ErrLocked, r.Number)
	}
	holder := r.Holder
	if holder == "" {
		holder = "its holder"
	}
	rel.SetStatus(helm.StatusFailed, fmt.Sprintf("Interrupted: %s stopped while it was %s", holder, r.Status))
	if !r.Ours { // it is now
		rel.Labels = notOurs(rel.Labels)
		rel.Labels[decide.AppLabel], rel.Labels[decide.RevisionLabel] = p.want.App, strconv.Itoa(r.Number)
	}
	delete(rel.Labels, decide.DigestLabel)
	delete(rel.Labels, decide.TrialLabel)
	if _, err := store.Replace(ctx, rel, r.Version); err != nil {
		return fmt.Errorf("unlocking revision %d: %w", r.Number, err)
	}
	return nil
}
