package release

import (
	"context"
	"errors"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/pool"
)

// defaultRetries is how often an input is retried before it is given up.
const defaultRetries = 1

// pass is one Reconcile of a release whose slot is free.
type pass struct {
	engine  *Engine
	slot    *slot
	request Request
	want    decide.Want
}

// enterSlot starts a pass of a request that was checked; release ends it.
func (e *Engine) enterSlot(req Request) (p *pass, release func(), err error) {
	digest, trial, err := req.digests()
	if err != nil {
		return nil, nil, err
	}
	slot := e.pool.Slot(req.key())
	slot.Lock()
	return e.pass(slot, req, digest, trial), slot.Unlock, nil
}

// pass returns a pass. The caller holds the slot's lock.
func (e *Engine) pass(slot *slot, req Request, digest, trial string) *pass {
	req.seal = e.opts.Seal
	retries := defaultRetries
	if n := req.Actions.Remediation.Retries; n != nil {
		retries = int(*n)
	}
	alive := e.opts.HolderAlive
	if slot.Memory.fenced {
		// The process that took the release over is running.
		alive = func(string) bool { return true }
	}
	return &pass{engine: e, slot: slot, request: req, want: decide.Want{
		App:         decide.LabelValue(req.App.Name),
		Holder:      e.opts.Holder,
		Digest:      digest,
		Trial:       trial,
		HolderAlive: alive,
		Now:         e.opts.Now(),
		Timeout:     req.longest(),
		Retry:       req.Policy.Retry,
		Retries:     retries,
		Strategy:    req.Actions.Remediation.Strategy,
		Manual:      decide.Manual{Force: req.Manual.Force, Reset: req.Manual.Reset},
		Proven:      req.proven,
		Trusts:      slot.Memory.records.Trusts,
		Last:        slot.Memory.last,
	}}
}

func (p *pass) start(ctx context.Context, j job) (Outcome, error) {
	j.tenant = p.request.tenant()
	if p.want.Manual.Force || p.want.Manual.Reset {
		j.request = decide.LabelValue(p.request.Manual.ID)
	}
	err := p.engine.start(ctx, p.slot, p.request.App, j)
	if err != nil && !errors.Is(err, pool.ErrQueued) {
		return Outcome{}, err
	}
	return Outcome{Running: true, Queued: err != nil, Action: string(j.act), Why: j.why}, nil
}
