package release

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/delivery/mask"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// Reconcile sees how the release is and, if it is not as requested, starts what brings it there. It never waits for an
// action; one that waits for objects on behalf of another input is told to end. An error means that nothing could be found
// out or nothing may be done now (ErrLocked, ErrTaken, ErrDraining, *Terminating, an API error); it is worth another try
// later. A failed attempt is no error but Outcome.Failed. When nothing is to be done no request is made, except those that
// tell what this process does not know: the objects, unless Request.Recorded, and why an input failed before it started.
func (e *Engine) Reconcile(ctx context.Context, req Request) (Outcome, error) {
	defer e.pool.NotifyNext(req.tenant())
	out, err := e.whole(ctx, req)
	return out, fault.Brief(err)
}

// whole is Reconcile, former releases included.
func (e *Engine) whole(ctx context.Context, req Request) (Outcome, error) {
	if err := req.check(); err != nil {
		return Outcome{}, err
	}
	former, err := e.former(ctx, req)
	if err != nil {
		return Outcome{}, err
	}
	if len(former) > 0 && !req.Actions.Install.TakeOwnership {
		if done, err := e.depart(ctx, req, former); !done || err != nil {
			e.renamed(req, func(s *slot) { s.Memory.because = renamed })
			return Outcome{Running: err == nil, Action: string(decide.Uninstall), Why: renamed}, err
		}
	}
	out, err := e.reconcile(ctx, req)
	if err == nil && len(former) > 0 && req.Actions.Install.TakeOwnership && !out.Running && out.Failed == nil {
		if done, err := e.inherit(ctx, req, former); !done || err != nil {
			e.renamed(req, func(s *slot) { s.Memory.ended = conclusion{why: renamed, at: e.opts.Now()} })
			return Outcome{Running: err == nil, Action: string(decide.Uninstall), Why: renamed}, err
		}
	}
	return out, err
}

func (e *Engine) reconcile(ctx context.Context, req Request) (Outcome, error) {
	p, release, err := e.enterSlot(req)
	if errors.Is(err, fault.ErrRender) {
		return Outcome{Failed: fault.Brief(fault.Mask(err, mask.Of(req.Sensitive))), Accepted: req.Manual.ID != ""}, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	if p.slot.Busy() {
		if p.slot.Action().Input != p.want.Trial {
			p.slot.Supersede()
		}
		return Outcome{Running: true, Queued: p.slot.Queued(), Action: p.slot.Action().Name, Why: p.slot.Action().Why}, nil
	}
	return p.run(ctx)
}

func (p *pass) run(ctx context.Context) (Outcome, error) {
	s, err := p.engine.index(ctx, p.request)
	if err != nil {
		return Outcome{}, err
	}
	accepted := p.heed(s)
	d := decide.Next(s, p.want)
	if d.Act == decide.Unlock {
		if err := p.interrupted(ctx, s.Last()); err != nil {
			return Outcome{}, err
		}
		if s, err = p.engine.index(ctx, p.request); err != nil {
			return Outcome{}, err
		}
		d = decide.Next(s, p.want)
	}
	out, err := p.act(ctx, s, d)
	out.Accepted = err == nil && p.request.Manual.ID != "" && (accepted || d.Act == decide.Settled)
	return out, err
}

// heed reports whether what is asked for was done already, and then asks for it no more.
func (p *pass) heed(s decide.State) (accepted bool) {
	asked := decide.LabelValue(p.request.Manual.ID)
	if asked == "" {
		return false
	}
	if accepted = p.slot.Memory.heeded == asked || s.Heeded(asked); accepted {
		p.want.Manual.Force, p.want.Manual.Reset = false, false
	}
	p.want.Manual.Fresh = (p.want.Manual.Force || p.want.Manual.Reset) && p.slot.Memory.begun != asked
	return accepted
}

// act reports, or begins, what was decided.
func (p *pass) act(ctx context.Context, s decide.State, d decide.Decision) (Outcome, error) {
	switch d.Act {
	case decide.Settled, decide.Failed, decide.Withheld:
		return p.report(ctx, s, d)
	case decide.Locked, decide.Unlock:
		return Outcome{}, fmt.Errorf("%w: %s", fault.ErrLocked, d.Why)
	case decide.Taken:
		return Outcome{}, fault.TakenBy(p.request.Name, d.Why)
	case decide.Uninstall:
		return p.start(ctx, job{act: decide.Uninstall, trial: p.want.Trial, why: d.Why, run: p.dismantle(d, false)})
	case decide.Vacate:
		if err := p.vacate(ctx, s); err != nil {
			return Outcome{}, err
		}
		d.Act = decide.Install
	}
	return p.start(ctx, job{act: d.Act, trial: p.want.Trial, why: d.Why, run: p.deliver(d)})
}

// vacate makes room for a first install: with nothing of the old release to adopt, and without its history unless that is
// to go on.
func (p *pass) vacate(ctx context.Context, s decide.State) error {
	if err := p.vacated(ctx, s); err != nil {
		return err
	}
	if p.request.Actions.Install.Replace {
		return nil
	}
	return p.purge(ctx, s)
}
