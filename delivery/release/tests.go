package release

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/pool"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// Test starts the chart's tests on the deployed revision of this input, unless they have run. It never waits: while the tests run,
// Reconcile returns Outcome.Running; then Notify is called, and Outcome.Test is their result. Failed tests make the revision a failed one,
// unless Actions.Test.IgnoreFailures. If the tests could not be completed, for example because the API server was unavailable,
// Outcome.Failed is the reason, Environment is set, and Retry.At is the time of the next try (Request.Policy.Retry). All other fields except
// Running are empty; if there are no tests to run, all are. Its errors are those of Reconcile.
func (e *Engine) Test(ctx context.Context, req Request) (Outcome, error) {
	if err := req.check(); err != nil {
		return Outcome{}, err
	}
	p, release, err := e.enterSlot(req)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	if p.slot.Busy() {
		return Outcome{Running: true, Queued: p.slot.Queued(), Action: p.slot.Action().Name}, nil
	}
	s, err := e.index(ctx, req)
	if err != nil {
		return Outcome{}, err
	}
	last := decide.Judged(s, p.want)
	if last == nil || last.Test != "" {
		return Outcome{}, nil
	}
	if d := p.want.Try(decide.Probe, decide.Tally{}); d.Act == decide.Failed {
		last := p.slot.Memory.last
		return Outcome{Failed: last.Err, Environment: last.Environment, Retry: Retry{Attempts: d.Attempts, At: d.Until}, Log: last.Log}, nil
	}
	return p.start(ctx, job{act: decide.Probe, trial: p.want.Trial, run: p.tested})
}

// tested runs the tests and records their result on the revision.
func (p *pass) tested(ctx context.Context, at *pool.Worker) result {
	s, err := p.open(ctx, at.Idle, decide.Decision{Act: decide.Probe})
	if err != nil {
		return result{err: err, environment: true}
	}
	last := decide.Judged(s.state, p.want)
	if last == nil || last.Test != "" {
		return result{}
	}
	if err := s.records.Load(last.Number); err != nil {
		return s.end(err)
	}
	if err := records.CheckGenuine(s.records.Revision(last.Number), p.request.App); err != nil {
		return result{err: err, environment: true}
	}
	s.fence.Watch(decide.KeyOf(p.request.Name, last.Number), last.Version)
	r := s.end(s.test())
	if r.environment {
		return r
	}
	return s.noteTest(last, r)
}

func (s *session) noteTest(last *decide.Revision, r result) result {
	rel := s.records.Revision(last.Number)
	rel.Labels[decide.TestLabel] = decide.TestSucceeded
	if r.err != nil {
		rel.Labels[decide.TestLabel] = decide.TestFailed
		r.err = fmt.Errorf("tests failed: %w", r.err)
		if !s.pass.request.Actions.Test.IgnoreFailures {
			rel.SetStatus(helm.StatusFailed, r.err.Error())
			decide.SetFault(rel, false, last.InputFailures)
		}
	}
	if err := s.records.Put(rel); err != nil {
		return s.end(err)
	}
	r.stored = true
	return r
}

func (s *session) test() (err error) {
	defer fault.Recovered(string(decide.Probe), &err)
	how := s.pass.request.Actions.Test
	t := action.NewReleaseTesting(s.config)
	t.Namespace = s.pass.request.Namespace
	t.Timeout = s.limit("test", how.Timeout)
	for _, f := range how.Filters {
		key := action.IncludeNameFilter
		if f.Exclude {
			key = action.ExcludeNameFilter
		}
		t.Filters[key] = append(t.Filters[key], f.Name)
	}
	_, err = t.Run(s.pass.request.Name)
	s.gate.Rendered = true // no later error is one of a template
	return err
}
