package release

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// Reconcile compares the release with the request and starts the action that is needed next. It never waits for an action; if one waits for
// the objects of another input, Reconcile cancels that wait. An error means that the state could not be read or that no action is allowed
// now (ErrLocked, ErrTaken, ErrDraining, *Terminating, an API error); try again later. A failed attempt is not an error: it is
// Outcome.Failed. When there is nothing to do, Reconcile sends no request, except to read what this process does not know: the objects,
// unless Request.Recorded has them, and why an input failed before this process started.
func (e *Engine) Reconcile(ctx context.Context, req Request) (Outcome, error) {
	defer e.pool.NotifyNext(req.tenant())
	out, err := e.whole(ctx, req)
	return out, fault.Brief(err)
}

// whole is Reconcile including the former releases of the app.
func (e *Engine) whole(ctx context.Context, req Request) (Outcome, error) {
	if err := req.check(); err != nil {
		return Outcome{}, err
	}
	former, err := e.former(ctx, req)
	if err != nil {
		return Outcome{}, err
	}
	adopts := req.Actions.Install.TakeOwnership
	if len(former) > 0 && !adopts {
		if out, err := e.depart(ctx, req, former); out.Running || err != nil {
			return out, err
		}
	}
	out, err := e.reconcile(ctx, req)
	if err == nil && len(former) > 0 && adopts && !out.Running && out.Failed == nil {
		if left, err := e.inherit(ctx, req, former); left.Running || err != nil {
			return left, err
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
	accepted := p.skipAccepted(s)
	d := decide.Next(s, p.want)
	if d.Act == decide.Unlock {
		if err := p.unlock(ctx, s.Last()); err != nil {
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

// skipAccepted reports whether a revision or this process has already carried out the manual request. If so, it removes the request from p.want.
func (p *pass) skipAccepted(s decide.State) (accepted bool) {
	asked := decide.LabelValue(p.request.Manual.ID)
	if asked == "" {
		return false
	}
	if accepted = p.slot.Memory.accepted == asked || s.Accepted(asked); accepted {
		p.want.Manual.Force, p.want.Manual.Reset = false, false
	}
	p.want.Manual.Fresh = (p.want.Manual.Force || p.want.Manual.Reset) && p.slot.Memory.begun != asked
	return accepted
}

// act reports the decision or starts its action.
func (p *pass) act(ctx context.Context, s decide.State, d decide.Decision) (Outcome, error) {
	switch d.Act {
	case decide.Settled, decide.Failed, decide.Withheld:
		return p.report(ctx, s, d)
	case decide.Locked, decide.Unlock:
		return Outcome{}, fmt.Errorf("%w: %s", fault.ErrLocked, d.Why)
	case decide.Taken:
		return Outcome{}, &fault.Taken{Release: p.request.Name, App: d.Why}
	case decide.Uninstall:
		return p.start(ctx, job{act: decide.Uninstall, trial: p.want.Trial, why: d.Why, run: p.runUninstall(d, false)})
	case decide.Reinstall:
		if err := p.prepareReinstall(ctx, s); err != nil {
			return Outcome{}, err
		}
		d.Act = decide.Install
	}
	return p.start(ctx, job{act: d.Act, trial: p.want.Trial, why: d.Why, run: p.deliver(d)})
}

// prepareReinstall prepares a first install after an uninstall: it waits until no objects of the old release are left to adopt, and deletes the
// release's history unless it is to be kept.
func (p *pass) prepareReinstall(ctx context.Context, s decide.State) error {
	if err := p.checkObjectsGone(ctx, s); err != nil {
		return err
	}
	if p.request.Actions.Install.Replace {
		return nil
	}
	return p.purge(ctx, s)
}
