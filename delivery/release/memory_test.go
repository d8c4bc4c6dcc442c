package release

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fence"
)

// TestTheLastActionIsRememberedForTheReport decides which attempt is reported, and whether a manual request is carried out again.
func TestTheLastActionIsRememberedForTheReport(t *testing.T) {
	no := errors.New("no")
	type kept struct {
		Begun, Accepted, Why string
		Cause, Fenced        bool
		Gone                 int
	}
	for name, test := range map[string]struct {
		job    job
		result result
		want   kept
	}{
		"a forced upgrade that failed by its input":   {job{act: decide.Upgrade, request: "r", why: "w"}, result{err: no}, kept{Begun: "r", Accepted: "r", Why: "w", Cause: true}},
		"a forced install that failed by its input":   {job{act: decide.Install, request: "r"}, result{err: no}, kept{Begun: "r", Accepted: "r", Cause: true}},
		"a forced upgrade that the cluster prevented": {job{act: decide.Upgrade, request: "r"}, result{err: no, environment: true}, kept{Begun: "r", Cause: true}},
		"a forced rollback that failed":               {job{act: decide.Rollback, request: "r"}, result{err: no}, kept{Begun: "r"}},
		"a forced upgrade that succeeded":             {job{act: decide.Upgrade, request: "r"}, result{}, kept{Cause: true}},
		"an upgrade that nobody forced":               {job{act: decide.Upgrade}, result{err: no}, kept{Cause: true}},
		"a test":                                      {job{act: decide.Probe, why: "w"}, result{err: no}, kept{Cause: true}},
		"an uninstall":                                {job{act: decide.Uninstall, why: "w"}, result{gone: 3}, kept{Why: "w", Gone: 3}},
		"one that another process took over":          {job{act: decide.Upgrade}, result{err: fence.ErrFenced, environment: true}, kept{Cause: true, Fenced: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := memory{fenced: true, leaving: leaving{version: "7"}, gone: 1, applied: applied{revision: 1}}
			m.record(test.job, test.result, noon)
			got := kept{m.begun, m.accepted, m.ended.why, m.cause.Act == test.job.act, m.fenced, m.gone}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if m.last.Act != test.job.act || m.last.At != noon || m.leaving.version != "" || m.applied.revision != 0 || m.ended.at.Equal(noon) != (test.job.act != decide.Probe) {
				t.Errorf("the last attempt is %+v, it ended %+v", m.last, m.ended)
			}
		})
	}
}

// TestATestThatCouldNotRunIsNotForgotten when the release is settled, because it is tried again when it is due.
func TestATestThatCouldNotRunIsNotForgotten(t *testing.T) {
	for name, test := range map[string]struct {
		last decide.Attempt
		kept bool
	}{
		"a test of this input":    {decide.Attempt{Act: decide.Probe, Trial: "t", Unstored: 2}, true},
		"a test of another input": {decide.Attempt{Act: decide.Probe, Trial: "u", Unstored: 2}, false},
		"an upgrade":              {decide.Attempt{Act: decide.Upgrade, Trial: "t", Unstored: 2}, false},
	} {
		m := memory{last: test.last, fenced: true}
		if m.settle("t"); (m.last.Unstored == 2) != test.kept || m.fenced {
			t.Errorf("%s: got %+v", name, m.last)
		}
	}
}

// TestTheCauseOfAFailedTestIsKnownForItsInputOnly, and only in the process that ran it.
func TestTheCauseOfAFailedTestIsKnownForItsInputOnly(t *testing.T) {
	tested := func(result string) decide.State {
		s := decide.State{{Number: 1}}
		s[0].Test = result
		return s
	}
	failed := tested(decide.TestFailed)
	probe := func(act decide.Act, trial string, err error) decide.Attempt {
		return decide.Attempt{Act: act, Trial: trial, Err: err}
	}
	no := errors.New("no")
	for name, test := range map[string]struct {
		state decide.State
		cause decide.Attempt
		want  Test
	}{
		"no revision":               {nil, probe(decide.Probe, "t", no), Test{}},
		"not tested":                {tested(""), probe(decide.Probe, "t", no), Test{}},
		"they succeeded":            {tested(decide.TestSucceeded), probe(decide.Probe, "t", no), Test{Result: decide.TestSucceeded}},
		"they failed":               {failed, probe(decide.Probe, "t", no), Test{Result: decide.TestFailed, Why: "no"}},
		"tests of another input":    {failed, probe(decide.Probe, "u", no), Test{Result: decide.TestFailed}},
		"the upgrade failed before": {failed, probe(decide.Upgrade, "t", no), Test{Result: decide.TestFailed}},
		"of another process":        {failed, probe(decide.Probe, "t", nil), Test{Result: decide.TestFailed}},
	} {
		s := &slot{}
		s.Memory.cause = test.cause
		p := &pass{slot: s, want: decide.Want{Trial: "t"}}
		if diff := cmp.Diff(test.want, p.testResult(test.state)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
