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

	"github.com/kubeop/kubeop/delivery/finalizer"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/pool"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// uninstalling is used in place of the digests: an uninstall has no input.
const uninstalling = "uninstall"

// Uninstall removes the release and every other release of the app (Options.Releases), without waiting. It is done when the objects are
// gone, and the records too unless Actions.Uninstall.KeepHistory, or when the release belongs to another app. While an action runs it
// returns (false, nil), Notify is called at the end, and the action's wait for objects is cancelled. *Terminating names objects that still
// exist; any other error is why the last try failed, or why none can start now. Request.Policy.Retry sets the pause between tries.
func (e *Engine) Uninstall(ctx context.Context, req Request) (done bool, err error) {
	if err := req.check(); err != nil {
		return false, err
	}
	defer e.pool.NotifyNext(req.tenant())
	former, err := e.former(ctx, req)
	if err != nil {
		return false, err
	}
	done = true
	for _, name := range append(former, req.Name) {
		gone, err := e.uninstall(ctx, req.named(name))
		if err != nil {
			return false, fault.Brief(err)
		}
		done = done && gone
	}
	return done, nil
}

// uninstall uninstalls one release.
func (e *Engine) uninstall(ctx context.Context, req Request) (done bool, err error) {
	slot := e.pool.Slot(req.key())
	slot.Lock()
	defer slot.Unlock()
	if slot.Busy() {
		if slot.Action().Input != uninstalling {
			slot.Supersede()
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
		e.pool.Leave(req.key())
	}
	return done, err
}

func (p *pass) remove(ctx context.Context, s decide.State) (done bool, err error) {
	keep := p.request.Actions.Uninstall.KeepHistory
	d := decide.Removal(s, p.want)
	switch d.Act {
	case decide.Settled:
		p.slot.Memory.last = decide.Attempt{}
		return true, nil
	case decide.Locked:
		return false, fmt.Errorf("%w: %s", fault.ErrLocked, d.Why)
	case decide.Failed:
		return false, p.want.Last.Err
	case decide.Reinstall:
		if err := p.checkObjectsGone(ctx, s); err != nil {
			return false, err
		}
		if !keep {
			if err := p.purge(ctx, s); err != nil {
				return false, err
			}
		}
		p.slot.Memory.last = decide.Attempt{}
		return true, nil
	}
	d.Act = decide.Uninstall
	_, err = p.start(ctx, job{act: decide.Uninstall, trial: uninstalling, run: p.runUninstall(d, !keep)})
	return false, err
}

// terminating returns the error for objects that are being deleted.
func terminating(all []finalizer.Terminating) error {
	e := &fault.Terminating{Foreign: slices.ContainsFunc(all, finalizer.Terminating.Foreign)}
	for _, o := range all {
		e.Objects = append(e.Objects, o.String())
	}
	slices.Sort(e.Objects)
	return e
}

// checkObjectsGone returns an error while objects of the uninstalled release still exist.
func (p *pass) checkObjectsGone(ctx context.Context, s decide.State) error {
	last := s.Last()
	if p.slot.Memory.gone == last.Number {
		return nil
	}
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return err
	}
	own := conn.Client.Release
	if p.slot.Memory.leaving.version != last.Version {
		r := records.NewDriver(ctx, p.engine.records(conn, p.request, &p.slot.Memory.records), fence.New(p.engine.opts.Now, nil), s)
		all, err := r.Outline()
		if err != nil {
			return err
		}
		p.slot.Memory.leaving = leaving{version: last.Version, objects: all}
	}
	left, holds, err := own.Remaining(p.slot.Memory.leaving.objects)
	if err != nil {
		return err
	}
	p.slot.Memory.leaving.objects = left
	if len(holds) > 0 {
		return terminating(holds)
	}
	p.slot.Memory.gone, p.slot.Memory.leaving = last.Number, leaving{}
	return nil
}

// leaving are the objects that still existed at the last check. version is that of the record which says that the release is uninstalled.
type leaving struct {
	version string
	objects []*unstructured.Unstructured
}

func (p *pass) purge(ctx context.Context, s decide.State) error {
	conn, err := p.engine.dial(p.request)
	if err != nil {
		return err
	}
	r := records.NewDriver(ctx, p.engine.records(conn, p.request, &p.slot.Memory.records), fence.New(p.engine.opts.Now, nil), s)
	return r.Drop(ctx, s)
}

// runUninstall deletes the objects. The history is kept until they are gone, because it lists what to check. If they are gone at once and
// purge is set, the history is deleted as well.
func (p *pass) runUninstall(d decide.Decision, purge bool) func(context.Context, *pool.Worker) result {
	return func(ctx context.Context, at *pool.Worker) result {
		s, err := p.open(ctx, at.Idle, d)
		if err != nil {
			return result{err: err, environment: true}
		}
		s.gate.Rendered = true // no error from here is one of a template
		if s.state.Last() == nil {
			return result{}
		}
		err = s.uninstall()
		switch {
		case err != nil:
		case purge && s.fence.AllGone():
			err = s.records.Drop(ctx, s.state)
		default:
			err = s.records.Put(s.records.Revision(s.state.Last().Number))
		}
		r := s.end(err)
		r.stored = false // no revision counts these tries
		if r.err == nil && s.fence.AllGone() {
			r.gone = s.state.Last().Number
		}
		return r
	}
}

func (s *session) uninstall() (err error) {
	defer fault.Recovered(string(decide.Uninstall), &err)
	last, deployed := s.state.Last(), s.state.Deployed()
	if err := s.records.Load(last.Number); err != nil {
		return err
	}
	if deployed != nil {
		if err := s.records.Load(deployed.Number); err != nil {
			return err
		}
	}
	how := s.pass.request.Actions.Uninstall
	if how.DeletionPropagation != "orphan" {
		if err := s.guardData(""); err != nil {
			return err
		}
	}
	rel := s.records.Revision(last.Number)
	checked := decide.Genuine(rel)
	s.claim(rel)
	rel.Info.Status, rel.Info.Description = helm.StatusUninstalling, "Uninstalling"
	rel.Info.Deleted = helmtime.Time{Time: s.pass.engine.opts.Now()}
	s.fence.Watch(decide.KeyOf(rel.Name, rel.Version), last.Version)
	if err := s.records.Put(rel); err != nil {
		return err
	}
	if deployed != nil && deployed.Number != last.Number {
		// Helm looks only at the last revision. If that one failed, objects of the deployed one may still exist.
		if err := s.conn.Client.Release.RemoveLeftovers([]*helm.Release{s.records.Revision(deployed.Number)}, []string{rel.Manifest}); err != nil {
			return err
		}
	}
	u := action.NewUninstall(s.config)
	u.KeepHistory = true
	u.DisableHooks = how.DisableHooks || !checked
	u.DeletionPropagation = how.DeletionPropagation
	u.Timeout = s.limit("uninstall", how.Timeout)
	_, err = u.Run(s.pass.request.Name)
	return err
}

// claim records on the revision that this process uninstalls it and, for a remediation, which trial caused it.
func (s *session) claim(rel *helm.Release) {
	if rel.Labels[decide.RevisionLabel] != strconv.Itoa(rel.Version) {
		rel.Labels = decide.ForeignLabels(rel.Labels)
		rel.Labels[decide.RevisionLabel] = strconv.Itoa(rel.Version)
	}
	rel.Labels[decide.AppLabel], rel.Labels[decide.HolderLabel] = s.pass.want.App, s.pass.want.Holder
	rel.Labels[decide.ActionLabel] = decide.ActionUninstall
	if s.plan.Remediates && rel.Labels[decide.HeldLabel] == "" {
		rel.Labels[decide.HeldLabel] = s.pass.want.Trial
	}
}
