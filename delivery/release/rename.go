package release

import (
	"context"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

const renamed = "the release has another name now"

// renamed notes in the release's slot that it replaces another one.
func (e *Engine) renamed(req Request, note func(*slot)) {
	slot := e.slot(req.key())
	slot.mu.Lock()
	defer slot.mu.Unlock()
	note(slot)
}

// former names the app's releases of other names than the request's, except those that are uninstalled and of which no more
// than the history is kept.
func (e *Engine) former(ctx context.Context, req Request) ([]string, error) {
	if e.opts.Releases == nil {
		return nil, nil
	}
	names, err := e.opts.Releases(ctx, req.Namespace, decide.LabelValue(req.App.Name))
	if err != nil {
		return nil, fmt.Errorf("looking for former releases of app %s: %w", req.App.Name, err)
	}
	var out []string
	for _, name := range names {
		if name == req.Name {
			continue
		}
		former, err := e.isFormer(ctx, req.named(name))
		if err != nil {
			return nil, err
		}
		if former {
			out = append(out, name)
		}
	}
	return out, nil
}

// isFormer is whether a release is the app's, which Helm's labels alone do not say, as Helm carries them on to what people
// release, and something may be left to do about it. While this process uninstalls it that is not known.
func (e *Engine) isFormer(ctx context.Context, req Request) (bool, error) {
	s, err := e.index(ctx, req)
	if err != nil {
		return false, err
	}
	last := s.Last()
	if last == nil {
		return true, nil
	}
	if !last.Ours || last.App != decide.LabelValue(req.App.Name) {
		return false, nil
	}
	if !req.Actions.Uninstall.KeepHistory || last.Status != helm.StatusUninstalled {
		return true, nil
	}
	slot := e.slot(req.key())
	slot.mu.Lock()
	defer slot.mu.Unlock()
	return slot.action != decide.Settled || slot.last.Act == decide.Uninstall, nil
}

// named is the request for another release of the app.
func (r *Request) named(name string) Request {
	other := *r
	other.Name = name
	if name != r.Name {
		other.Known, other.KnownContent, other.Unmoved = 0, "", nil
	}
	return other
}

// depart has the app's former releases uninstalled and reports whether they are.
func (e *Engine) depart(ctx context.Context, req Request, former []string) (done bool, err error) {
	for _, name := range former {
		gone, err := e.uninstall(ctx, req.named(name))
		if !gone || err != nil {
			return false, err
		}
	}
	return true, nil
}

// inherit has the former releases, whose objects the new one has taken over, forgotten, and what it has not taken removed.
func (e *Engine) inherit(ctx context.Context, req Request, former []string) (done bool, err error) {
	for _, name := range former {
		gone, err := e.forget(ctx, req.named(name))
		if !gone || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (e *Engine) forget(ctx context.Context, req Request) (done bool, err error) {
	slot := e.slot(req.key())
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.action != decide.Settled {
		return false, nil
	}
	s, err := e.index(ctx, req)
	if err != nil {
		return false, err
	}
	p := e.pass(slot, req, uninstalling, uninstalling)
	switch d := decide.Removal(s, p.want); d.Act {
	case decide.Settled:
		e.leave(req.key())
		return true, nil
	case decide.Locked:
		return false, fmt.Errorf("%w: release %s: %s", fault.ErrLocked, req.Name, d.Why)
	case decide.Failed:
		return false, p.want.Last.Err
	}
	_, err = p.start(ctx, job{act: decide.Uninstall, trial: uninstalling, run: p.forgotten})
	return false, err
}

// forgotten removes the objects that still are the former release's own, and its records.
func (p *pass) forgotten(ctx context.Context, at *place) result {
	s, err := p.open(ctx, at, decide.Decision{Act: decide.Uninstall})
	if err != nil {
		return result{err: err, world: true}
	}
	s.gate.Rendered = true
	all, err := s.records.Outline()
	if err != nil {
		return s.end(err)
	}
	for _, u := range all {
		if err := s.objects().Remove(u); err != nil {
			return s.end(fmt.Errorf("removing what release %s left: %w", p.request.Name, err))
		}
	}
	r := s.end(s.records.Drop(ctx, s.state))
	r.stored = false
	return r
}
