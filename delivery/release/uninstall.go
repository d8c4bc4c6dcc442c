package release

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// uninstalling stands for the digest of an uninstallation: it has no other input.
const uninstalling = "uninstall"

// Uninstall brings the release to nothing, without waiting. It is done when its objects and its records are gone, or it
// is another app's. While an action runs it returns (false, nil) and Notify follows. *Terminating names objects that
// are still there; any other error is why the last try failed, or why none can be made now. Request.Retry holds here too.
func (e *Engine) Uninstall(ctx context.Context, req Request) (done bool, err error) {
	if err := req.check(); err != nil {
		return false, err
	}
	slot := e.slot(req.key())
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.action != settled {
		return false, nil
	}
	p := &pass{engine: e, slot: slot, request: req, want: e.want(req, uninstalling, slot.last)}
	if p.conn, err = e.dial(req); err != nil {
		return false, err
	}
	return p.remove(ctx)
}

func (p *pass) remove(ctx context.Context) (done bool, err error) {
	s, err := read(p.store(ctx), p.request.Name)
	if err != nil {
		return false, err
	}
	d := removal(s, p.want)
	switch d.act {
	case settled:
		p.slot.last = attempt{}
		return true, nil
	case locked:
		return false, fmt.Errorf("%w: %s", ErrLocked, d.why)
	case failed:
		return false, p.want.last.err
	case vacate:
		if err := p.vacated(s); err != nil {
			return false, err
		}
		if err := p.purge(ctx, s); err != nil {
			return false, err
		}
		p.slot.last = attempt{}
		return true, nil
	}
	_, err = p.start(ctx, job{act: uninstall, digest: uninstalling, run: p.uninstall})
	return false, err
}

// vacated is nil when the objects of the uninstalled release are gone.
func (p *pass) vacated(s state) error {
	left, err := objects{client: p.conn.kube, release: p.request.key()}.remaining(s)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return &Terminating{Objects: left}
	}
	return nil
}

func (p *pass) purge(ctx context.Context, s state) error {
	d := p.conn.secrets(ctx)
	for _, r := range s {
		if _, err := d.Delete(keyOf(r.record)); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
			return fmt.Errorf("removing revision %d from the history: %w", r.number, err)
		}
	}
	return nil
}

// uninstall deletes the objects. The history stays, and with it what to look for, until they are gone.
func (p *pass) uninstall(ctx context.Context) (stored bool, err error) {
	s, err := p.engine.open(ctx, p.request, uninstalling, 0)
	if err != nil {
		return false, err
	}
	history, err := s.history()
	if err != nil || history.last() == nil {
		return false, err
	}
	if err := s.removeOthers(history); err != nil {
		return false, plain(err, p.request.Sensitive)
	}
	u := action.NewUninstall(s.config)
	u.KeepHistory = true
	u.Timeout = p.request.timeout()
	_, err = u.Run(p.request.Name)
	return false, plain(s.explained(err), p.request.Sensitive)
}

// removeOthers deletes what only earlier revisions have: Helm looks at the last one alone, and when that one failed the
// deployed one's objects may still be there.
func (s *session) removeOthers(history state) error {
	earlier := history[:len(history)-1]
	live := earlier.failures()
	if deployed := earlier.deployed(); deployed != nil {
		live = append(state{*deployed}, live...)
	}
	if history.last().status == helm.StatusDeployed {
		live = nil
	}
	return s.objects().removeLeftovers(live, []string{history.last().record.Manifest})
}
