package release

import (
	"context"
	"errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
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
	dryRun  string // Helm's option of that name: "server" writes nothing, "" is no dry run.
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
		Mended:      req.Policy.Mended, Retry: req.Policy.Retry,
		Retries:  retries,
		Strategy: req.Actions.Remediation.Strategy,
		Manual:   decide.Manual{Force: req.Manual.Force, Reset: req.Manual.Reset},
		Proven:   req.proven,
		Trusts:   slot.Memory.records.Trusts,
		Last:     slot.Memory.last,
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

// digests returns two digests. digest is of the input: while it is equal, no action is needed. trial is of the input, of how it is
// installed, upgraded and tested, and of what Policy allows: a trial that failed for its input is not repeated.
func (r *Request) digests() (digest, trial string, err error) {
	if r.Input.Chart.Digest == "" {
		return "", "", errors.New("the chart has no digest")
	}
	values := r.Input.Values
	if values == nil {
		values = map[string]any{}
	}
	input := struct {
		Render      int
		Chart, Name string
		Values      map[string]any
		Files       []string                 `json:",omitempty"`
		Renderers   []v1alpha1.PostRenderer  `json:",omitempty"`
		Common      *v1alpha1.CommonMetadata `json:",omitempty"`
		Admission   string                   `json:",omitempty"`
	}{renderVersion, r.Input.Chart.Digest, r.Name, values, r.Input.ValuesFiles, r.Input.PostRenderers, r.Input.CommonMetadata, r.Input.Admission}
	how := v1alpha1.HelmActions{Wait: r.Actions.Wait, Install: r.Actions.Install, Upgrade: r.Actions.Upgrade, Test: r.Actions.Test}
	digest, trial, err = decide.Digests(input, r.Policy.Allowance, how)
	if err != nil {
		return "", "", fault.Render(err)
	}
	return digest, trial, nil
}
