package release

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// uninstalling stands for the digests of an uninstallation: it has no other input.
const uninstalling = "uninstall"

// Uninstall brings the release to nothing, without waiting, and every other release of the app (Options.Releases). It is
// done when its objects are gone, and its records unless Actions.Uninstall.KeepHistory, or it is another app's. While an
// action runs it returns (false, nil) and Notify follows; the action's waiting for objects is ended. *Terminating names
// objects that are still there; any other error is why the last try failed, or why none can be made now. Request.Retry
// holds here too.
func (e *Engine) Uninstall(ctx context.Context, req Request) (done bool, err error) {
	if err := req.check(); err != nil {
		return false, err
	}
	defer e.call(&req)
	former, err := e.former(ctx, req)
	if err != nil {
		return false, err
	}
	done = true
	for _, name := range append(former, req.Name) {
		gone, err := e.uninstall(ctx, req.named(name))
		if err != nil {
			return false, brief(err)
		}
		done = done && gone
	}
	return done, nil
}

// uninstall is Uninstall of one release.
func (e *Engine) uninstall(ctx context.Context, req Request) (done bool, err error) {
	slot := e.slot(req.key())
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.action != settled {
		if slot.trial != uninstalling {
			slot.supersede()
		}
		return false, nil
	}
	p := e.pass(slot, req, uninstalling, uninstalling)
	s, err := e.index(ctx, req)
	if err != nil {
		return false, err
	}
	done, err = p.remove(ctx, s)
	if done {
		e.leave(req.key())
	}
	return done, err
}

func (p *pass) remove(ctx context.Context, s state) (done bool, err error) {
	keep := p.request.Actions.Uninstall.KeepHistory
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
		if err := p.vacated(ctx, s); err != nil {
			return false, err
		}
		if !keep {
			if err := p.purge(ctx, s); err != nil {
				return false, err
			}
		}
		p.slot.last = attempt{}
		return true, nil
	}
	d.act = uninstall
	_, err = p.start(ctx, job{act: uninstall, trial: uninstalling, run: p.dismantle(d, !keep)})
	return false, err
}

// vacated is nil when the objects of the uninstalled release are gone.
func (p *pass) vacated(ctx context.Context, s state) error {
	last := s.last()
	if p.slot.gone == last.number {
		return nil
	}
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return err
	}
	own := objects{client: conn.kube, release: p.request.key(), app: p.want.app}
	if p.slot.leaving.version != last.version {
		r := newRecords(ctx, conn.store(p.request.Name, &p.slot.memory, p.engine.opts.Now), &fence{now: p.engine.opts.Now}, s)
		all, err := r.outline(own)
		if err != nil {
			return err
		}
		p.slot.leaving = leaving{version: last.version, objects: all}
	}
	var holds []string
	if p.slot.leaving.objects, holds, err = own.remaining(p.slot.leaving.objects); err != nil {
		return err
	}
	if len(holds) > 0 {
		slices.Sort(holds)
		return &Terminating{Objects: holds}
	}
	p.slot.gone, p.slot.leaving = last.number, leaving{}
	return nil
}

// leaving are the objects that were still there when last looked for, of the release uninstalled by that version of a record.
type leaving struct {
	version string
	objects []*unstructured.Unstructured
}

func (p *pass) purge(ctx context.Context, s state) error {
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return err
	}
	r := newRecords(ctx, conn.store(p.request.Name, &p.slot.memory, p.engine.opts.Now), &fence{now: p.engine.opts.Now}, s)
	return r.drop(ctx, s)
}

// dismantle deletes the objects. The history stays, and with it what to look for, until they are gone; if that is at once,
// it goes too when purge says so.
func (p *pass) dismantle(d decision, purge bool) func(context.Context, *place) result {
	return func(ctx context.Context, at *place) result {
		s, err := p.open(ctx, at, d)
		if err != nil {
			return result{err: err, world: true}
		}
		s.rendered = true // no error is a template's
		if s.state.last() == nil {
			return result{}
		}
		err = s.uninstall()
		switch {
		case err != nil:
		case purge && s.fence.allGone():
			err = s.records.drop(ctx, s.state)
		default:
			err = s.records.put(s.revision(s.state.last().number))
		}
		r := s.end(err)
		r.stored = false // no revision counts the tries
		if r.err == nil && s.fence.allGone() {
			r.gone = s.state.last().number
		}
		return r
	}
}

func (s *session) uninstall() (err error) {
	defer recovered(string(uninstall), &err)
	last, deployed := s.state.last(), s.state.deployed()
	if err := s.records.load(last.number); err != nil {
		return err
	}
	if deployed != nil {
		if err := s.records.load(deployed.number); err != nil {
			return err
		}
	}
	how := s.request.Actions.Uninstall
	if how.DeletionPropagation != "orphan" {
		if err := s.guardData(""); err != nil {
			return err
		}
	}
	rel := s.revision(last.number)
	checked := genuine(rel)
	s.claim(rel)
	rel.Info.Status, rel.Info.Description = helm.StatusUninstalling, "Uninstalling"
	rel.Info.Deleted = helmtime.Time{Time: s.engine.opts.Now()}
	s.fence.watch(keyOf(rel.Name, rel.Version), last.version)
	if err := s.records.put(rel); err != nil {
		return err
	}
	if deployed != nil && deployed.number != last.number {
		// Helm looks at the last revision alone, and when that one failed the deployed one's objects may still be there.
		if err := s.objects().removeLeftovers([]*helm.Release{s.revision(deployed.number)}, []string{rel.Manifest}); err != nil {
			return err
		}
	}
	u := action.NewUninstall(s.config)
	u.KeepHistory = true
	u.DisableHooks = how.DisableHooks || !checked
	u.DeletionPropagation = how.DeletionPropagation
	u.Timeout = s.within(how.Timeout)
	_, err = u.Run(s.request.Name)
	return err
}

// claim notes on the revision who uninstalls it and, where that is so, because of which trial.
func (s *session) claim(rel *helm.Release) {
	if rel.Labels[revisionLabel] != strconv.Itoa(rel.Version) {
		rel.Labels = notOurs(rel.Labels)
		rel.Labels[revisionLabel] = strconv.Itoa(rel.Version)
	}
	rel.Labels[appLabel], rel.Labels[holderLabel] = s.want.app, s.want.holder
	rel.Labels[actionLabel] = actionUninstall
	if s.plan.mends && rel.Labels[heldLabel] == "" {
		rel.Labels[heldLabel] = s.want.trial
	}
}
