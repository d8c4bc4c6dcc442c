package release

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// MarkFailed marks the deployed revision of this very input as failed because of its input, for example because it did not become healthy
// in time. The next Reconcile decides what follows. It does nothing and returns false when the release has another input, is busy, or was
// rolled back or installed: then there is no better revision to return to. It blocks for two requests.
func (e *Engine) MarkFailed(ctx context.Context, req Request, why string) (done bool, err error) {
	if err := req.check(); err != nil {
		return false, err
	}
	p, release, err := e.enterSlot(req)
	if err != nil {
		return false, err
	}
	defer release()
	if p.slot.Busy() {
		return false, nil
	}
	s, err := e.index(ctx, req)
	if err != nil {
		return false, err
	}
	last := decide.Judged(s, p.want)
	if last == nil || last.Action == decide.ActionInstall {
		return false, nil
	}
	conn, err := e.dial(req)
	if err != nil {
		return false, err
	}
	store := e.records(conn, req, &p.slot.Memory.records)
	rel, meta, err := store.Read(ctx, last.Number)
	if err != nil {
		return false, err
	}
	if meta.ResourceVersion != last.Version {
		store.Found(meta)
		return false, nil
	}
	rel.SetStatus(helm.StatusFailed, why)
	decide.SetFault(rel, false, last.InputFailures)
	if _, err := store.Replace(ctx, rel, last.Version); err != nil {
		return false, fmt.Errorf("marking revision %d as failed: %w", last.Number, err)
	}
	p.slot.Memory.cause = decide.Attempt{Trial: p.want.Trial, Err: fault.Brief(fault.Plain(errors.New(why), mask.Of(req.Sensitive))), At: p.want.Now}
	p.slot.Memory.last = p.slot.Memory.cause
	return true, nil
}

// unlock marks the pending revision of an interrupted action as failed, so that Helm allows the next action. It removes the revision's
// digests: an interrupted action proves nothing about its input, so the input is retried at once.
func (p *pass) unlock(ctx context.Context, r *decide.Revision) error {
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return err
	}
	store := p.engine.records(conn, p.request, &p.slot.Memory.records)
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
	if !r.Ours { // MarkFailed took it over
		rel.Labels = decide.ForeignLabels(rel.Labels)
		rel.Labels[decide.AppLabel], rel.Labels[decide.RevisionLabel] = p.want.App, strconv.Itoa(r.Number)
	}
	delete(rel.Labels, decide.DigestLabel)
	delete(rel.Labels, decide.TrialLabel)
	if _, err := store.Replace(ctx, rel, r.Version); err != nil {
		return fmt.Errorf("unlocking revision %d: %w", r.Number, err)
	}
	return nil
}
