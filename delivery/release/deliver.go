package release

import (
	"context"
	"errors"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/pool"
)

// deliver installs, upgrades or rolls back, as d says.
func (p *pass) deliver(d decide.Decision) func(context.Context, *pool.Worker) result {
	return func(ctx context.Context, at *pool.Worker) (r result) {
		if p.slot.IsSuperseded() {
			return result{} // it was superseded while it was queued
		}
		s, err := p.open(ctx, at.Idle, d)
		if err != nil {
			return result{err: err, environment: true}
		}
		if now := decide.Next(s.state, p.want); now.Act != d.Act && (now.Act != decide.Reinstall || d.Act != decide.Install) || now.To != d.To {
			return result{} // the next pass decides again
		}
		return s.concluded(s.deliver(ctx))
	}
}

func (s *session) deliver(ctx context.Context) (err error) {
	defer fault.Recovered(string(s.plan.Act), &err)
	if s.plan.Act == decide.Rollback {
		return s.rollback()
	}
	if err := s.records.Load(s.needed()...); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	_, err = s.apply()
	return err
}

// apply installs or upgrades.
func (s *session) apply() (*helm.Release, error) {
	if s.plan.Act == decide.Upgrade {
		return s.upgrade(s.plain)
	}
	return s.install(s.plain)
}

// concluded records how an install, upgrade or rollback ended, where Helm did not record it.
func (s *session) concluded(err error) result {
	r := s.end(err)
	made := s.records.Made
	if r.err == nil && made != nil {
		r.applied = s.deployedObjects(made)
		r.applied.log = s.log.Warnings(mask.Of(s.pass.request.Sensitive))
	}
	if r.err == nil || made == nil || errors.Is(r.err, fence.ErrFenced) {
		return r
	}
	if made.Info.Status != helm.StatusFailed {
		made.SetStatus(helm.StatusFailed, fmt.Sprintf("Failed %s: %v", s.plan.Act, fault.Brief(err)))
	}
	decide.SetFault(made, r.environment, s.plan.InputFailures)
	if err := s.records.Put(made); err != nil {
		// The revision stays pending; the next pass of this process sees that the action was its own.
		return result{err: fault.Plain(err, mask.Of(s.pass.request.Sensitive)), environment: true, log: r.log}
	}
	r.stored = true
	return r
}
