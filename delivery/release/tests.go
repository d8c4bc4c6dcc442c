package release

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/release"
)

// Test starts the chart's tests on the deployed revision of this input, unless they have run. While they run Reconcile
// returns Outcome.Running; Notify follows, and Outcome.Test tells how they ended. Tests that failed make the revision a
// failed one, unless Actions.Test.IgnoreFailures. Like Reconcile it never waits. When they could not be run to an end, such
// as by an API server that is away, Outcome.Failed is why, beside World, and RetryAt when it is tried again (Request.Retry).
// Apart from these and Running the Outcome is empty; wholly so when no tests are to be run. An error is as of Reconcile.
func (e *Engine) Test(ctx context.Context, req Request) (Outcome, error) {
	p, release, err := e.enterSlot(req)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	if p.slot.action != settled {
		return Outcome{Running: true, Queued: !p.slot.working, Action: string(p.slot.action)}, nil
	}
	s, err := e.index(ctx, req)
	if err != nil {
		return Outcome{}, err
	}
	last := s.judged(p.want)
	if last == nil || last.test != "" {
		return Outcome{}, nil
	}
	if d := p.want.try(probe, tally{}); d.act == failed {
		last := p.slot.last
		return Outcome{Failed: last.err, World: last.world, Attempts: d.attempts, RetryAt: d.until, Log: last.log}, nil
	}
	return p.start(ctx, job{act: probe, trial: p.want.trial, run: p.tested})
}

// tested runs the tests and notes on the revision how they ended.
func (p *pass) tested(ctx context.Context, at *place) result {
	s, err := p.open(ctx, at, decision{act: probe})
	if err != nil {
		return result{err: err, world: true}
	}
	last := s.state.judged(p.want)
	if last == nil || last.test != "" {
		return result{}
	}
	if err := s.records.load(last.number); err != nil {
		return s.end(err)
	}
	if err := mustBeGenuine(s.revision(last.number)); err != nil {
		return result{err: err, world: true}
	}
	s.fence.watch(keyOf(p.request.Name, last.number), last.version)
	r := s.end(s.test())
	if r.world {
		return r
	}
	return s.noteTest(last, r)
}

func (s *session) noteTest(last *revision, r result) result {
	rel := s.revision(last.number)
	rel.Labels[testLabel] = testSucceeded
	if r.err != nil {
		rel.Labels[testLabel] = testFailed
		r.err = fmt.Errorf("tests failed: %w", r.err)
		if !s.request.Actions.Test.IgnoreFailures {
			rel.SetStatus(helm.StatusFailed, r.err.Error())
			faulted(rel, false, last.blame)
		}
	}
	if err := s.records.put(rel); err != nil {
		return s.end(err)
	}
	r.stored = true
	return r
}

func (s *session) test() (err error) {
	defer recovered(string(probe), &err)
	how := s.request.Actions.Test
	t := action.NewReleaseTesting(s.config)
	t.Namespace = s.request.Namespace
	t.Timeout = s.within(how.Timeout)
	for _, f := range how.Filters {
		key := action.IncludeNameFilter
		if f.Exclude {
			key = action.ExcludeNameFilter
		}
		t.Filters[key] = append(t.Filters[key], f.Name)
	}
	_, err = t.Run(s.request.Name)
	s.rendered = true // whatever failed, it was no template
	return err
}
