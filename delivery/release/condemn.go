package release

import (
	"context"
	"errors"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
)

// Condemn records that the deployed revision of this very input is no good after all, such as one that did not become
// healthy in time: it counts as failed because of its input, and the next Reconcile decides what follows. It does nothing,
// and says so by false, when the release is at another input, busy, was rolled back, or was installed: there is nothing
// better to return to. It blocks for two requests.
func (e *Engine) Condemn(ctx context.Context, req Request, why string) (done bool, err error) {
	p, release, err := e.enterSlot(req)
	if err != nil {
		return false, err
	}
	defer release()
	if p.slot.action != settled {
		return false, nil
	}
	s, err := e.index(ctx, req)
	if err != nil {
		return false, err
	}
	last := s.judged(p.want)
	if last == nil || last.action == actionInstall {
		return false, nil
	}
	conn, err := e.dial(req)
	if err != nil {
		return false, err
	}
	store := conn.store(req.Name, &p.slot.memory, e.opts.Now)
	rel, meta, err := store.read(ctx, last.number)
	if err != nil {
		return false, err
	}
	if meta.ResourceVersion != last.version {
		store.memory.wrote(meta, store.now())
		return false, nil
	}
	rel.SetStatus(helm.StatusFailed, why)
	faulted(rel, false, last.blame)
	if _, err := store.replace(ctx, rel, last.version); err != nil {
		return false, fmt.Errorf("condemning revision %d: %w", last.number, err)
	}
	p.slot.cause = attempt{trial: p.want.trial, err: brief(plain(errors.New(why), req.Sensitive)), at: p.want.now}
	p.slot.last = p.slot.cause
	return true, nil
}

// judged returns the newest revision if it is deployed with the wanted input and that input's own doing, else nil.
func (s state) judged(w want) *revision {
	last := s.last()
	if last == nil || last.status != helm.StatusDeployed || !last.ours || last.digest != w.digest || last.action == actionRollback || last.app != w.app {
		return nil
	}
	return last
}
