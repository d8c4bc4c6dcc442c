package release

import (
	"context"
	"fmt"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/pool"
)

// renamed is the reason of what is done because of a former release.
const renamed = "the release has another name now"

// depart uninstalls the app's former releases. The outcome is Running until that is done.
func (e *Engine) depart(ctx context.Context, req Request, former []string) (Outcome, error) {
	return e.leave(ctx, req, former, e.uninstall, func(m *memory) { m.reason = renamed })
}

// inherit removes the records of the former releases, whose objects the new release has adopted, and deletes the objects that it did not
// adopt. The outcome is Running until that is done.
func (e *Engine) inherit(ctx context.Context, req Request, former []string) (Outcome, error) {
	return e.leave(ctx, req, former, e.forget, func(m *memory) { m.ended = conclusion{why: renamed, at: e.opts.Now()} })
}

// leave ends the former releases one after the other. While one is left, note records in the slot of the release that it replaces them.
func (e *Engine) leave(
	ctx context.Context, req Request, former []string, end func(context.Context, Request) (bool, error), note func(*memory),
) (Outcome, error) {
	for _, name := range former {
		done, err := end(ctx, req.named(name))
		if done && err == nil {
			continue
		}
		slot := e.pool.Slot(req.key())
		slot.Lock()
		note(&slot.Memory)
		slot.Unlock()
		return Outcome{Running: err == nil, Action: string(decide.Uninstall), Why: renamed}, err
	}
	return Outcome{}, nil
}

// forget deletes what is left of a former release, and reports whether that is done.
func (e *Engine) forget(ctx context.Context, req Request) (done bool, err error) {
	slot := e.pool.Slot(req.key())
	slot.Lock()
	defer slot.Unlock()
	if slot.Busy() {
		return false, nil
	}
	s, err := e.index(ctx, req)
	if err != nil {
		return false, err
	}
	p := e.pass(slot, req, uninstalling, uninstalling)
	switch d := decide.Removal(s, p.want); d.Act {
	case decide.Settled:
		e.pool.Leave(req.key())
		return true, nil
	case decide.Locked:
		return false, fmt.Errorf("%w: release %s: %s", fault.ErrLocked, req.Name, d.Why)
	case decide.Failed:
		return false, p.want.Last.Err
	}
	_, err = p.start(ctx, job{act: decide.Uninstall, trial: uninstalling, run: p.forgotten})
	return false, err
}

// forgotten deletes the objects that still belong to the former release, and its records.
func (p *pass) forgotten(ctx context.Context, at *pool.Worker) result {
	s, err := p.open(ctx, at.Idle, decide.Decision{Act: decide.Uninstall})
	if err != nil {
		return result{err: err, environment: true}
	}
	s.gate.Rendered = true
	all, err := s.records.Outline()
	if err != nil {
		return s.end(err)
	}
	for _, u := range all {
		if err := s.conn.Client.Release.Remove(u); err != nil {
			return s.end(fmt.Errorf("removing what release %s left: %w", p.request.Name, err))
		}
	}
	r := s.end(s.records.Drop(ctx, s.state))
	r.stored = false
	return r
}
