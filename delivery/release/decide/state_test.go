package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func numbers(s State) []int {
	var out []int
	for _, r := range s {
		out = append(out, r.Number)
	}
	return out
}

func TestOnlyRecordsOfThisReleaseAreRevisions(t *testing.T) {
	strange := func(name string) metav1.PartialObjectMetadata {
		r := record(7, helm.StatusDeployed, "x")
		r.Name = name
		return r
	}
	s := StateOf("web", history(
		record(2, helm.StatusDeployed, "b"), record(1, helm.StatusSuperseded, "a"), strange("sh.helm.release.v1.other.v7"),
		strange("sh.helm.release.v1.web.v"), strange("sh.helm.release.v1.web.v0"), strange("sh.helm.release.v1.web.v-7"),
		strange("sh.helm.release.v1.web.v09"), strange("sh.helm.release.v1.web.v+7"), strange("web")))
	if diff := cmp.Diff([]int{1, 2}, numbers(s)); diff != "" {
		t.Error(diff)
	}
	if last := State(nil).Last(); last != nil {
		t.Errorf("nothing has a revision %v", last)
	}
}

func TestOnlyOurOwnRevisionSpeaks(t *testing.T) {
	tests := map[string]struct {
		record         metav1.PartialObjectMetadata
		ours           bool
		digest, holder string
	}{
		"ours":       {record(3, helm.StatusDeployed, "d"), true, "d", "me"},
		"carried on": {record(3, helm.StatusDeployed, "d", label(RevisionLabel, "2")), false, "", ""},
		"a number written otherwise, which admission takes for another": {record(3, helm.StatusDeployed, "d", label(RevisionLabel, "03")), false, "", ""},
		"never ours":        {record(3, helm.StatusDeployed, ""), false, "", ""},
		"digest taken away": {record(3, helm.StatusFailed, "d", interruptedly), true, "", "me"},
		"forged counters":   {record(3, helm.StatusFailed, "d", label(AttemptLabel, "-4"), label(InputFailuresLabel, "x")), true, "d", "me"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := revisionOf(3, &test.record.ObjectMeta)
			if r.Ours != test.ours || r.Digest != test.digest || r.Holder != test.holder || r.attempt < 0 || r.InputFailures != 0 {
				t.Errorf("got %+v", r)
			}
			if !r.Since.Equal(noon) {
				t.Errorf("written at %s, want the last time, %s", r.Since, noon)
			}
		})
	}
}

func TestTheOldestRevisionsAreSurplusButNotTheDeployedOne(t *testing.T) {
	failures := history(
		record(1, helm.StatusSuperseded, "a"), record(2, helm.StatusDeployed, "b"), record(3, helm.StatusFailed, "c"),
		record(4, helm.StatusFailed, "c"), record(5, helm.StatusFailed, "c"))
	failedAfter := history(
		record(1, helm.StatusSuperseded, "a", label(ProvenLabel, Yes)), record(2, helm.StatusSuperseded, "b", label(ProvenLabel, No)),
		record(3, helm.StatusFailed, "c"), record(4, helm.StatusFailed, "c"))
	good := func(*Revision) bool { return true }
	tests := map[string]struct {
		history []metav1.PartialObjectMetadata
		keep    int
		want    []int
	}{
		"room":                             {failures, 5, nil},
		"the oldest goes":                  {failures, 4, []int{1}},
		"the deployed one stays":           {failures, 2, []int{1, 3, 4}},
		"even when nothing is kept":        {failures, 0, []int{1, 3, 4, 5}},
		"what a rollback returns to stays": {failedAfter, 2, []int{2, 3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, numbers(StateOf("web", test.history).Surplus(test.keep, good, nil))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFailuresOfOneInputAreCounted(t *testing.T) {
	tests := map[string]struct {
		history []metav1.PartialObjectMetadata
		want    Tally
	}{
		"no failure":              {history(record(1, helm.StatusDeployed, "new")), Tally{}},
		"another input's":         {history(record(1, helm.StatusFailed, "old", inputFailed(3))), Tally{}},
		"this input's":            {history(record(1, helm.StatusFailed, "new", inputFailed(3))), Tally{attempts: 3, inputFailures: 3, at: noon}},
		"interrupted since":       {history(record(1, helm.StatusFailed, "new", inputFailed(3)), record(2, helm.StatusFailed, "new", interruptedly)), Tally{attempts: 3, inputFailures: 3}},
		"without its count":       {history(record(1, helm.StatusFailed, "new", label(AttemptLabel, ""))), Tally{attempts: 1, at: noon}},
		"without, interrupted":    {history(record(1, helm.StatusFailed, "new", label(AttemptLabel, "")), record(2, helm.StatusFailed, "new", interruptedly)), Tally{attempts: 1}},
		"succeeded since":         {history(record(1, helm.StatusFailed, "new", inputFailed(3)), record(2, helm.StatusDeployed, "old")), Tally{}},
		"failed by hand since":    {history(record(1, helm.StatusFailed, "new", inputFailed(3)), record(2, helm.StatusFailed, "new", label(RevisionLabel, "1"))), Tally{}},
		"a rollback failed since": {history(record(1, helm.StatusFailed, "new", inputFailed(3)), record(2, helm.StatusFailed, "new", label(ActionLabel, ActionRollback))), Tally{}},
		"failed by hand":          {history(record(1, helm.StatusFailed, "new", label(RevisionLabel, "9"))), Tally{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, StateOf("web", test.history).tally("new"), cmp.AllowUnexported(Tally{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDeployedIsTheNewest(t *testing.T) {
	s := StateOf("web", history(record(1, helm.StatusDeployed, "a"), record(2, helm.StatusDeployed, "b"), record(3, helm.StatusFailed, "c")))
	if r := s.Deployed(); r == nil || r.Number != 2 {
		t.Errorf("got %+v", r)
	}
	if r := s[2:].Deployed(); r != nil {
		t.Errorf("got %+v of a release that is not deployed", r)
	}
}

func TestTheNewestFailureOfAnInputIsFound(t *testing.T) {
	s := StateOf("web", history(
		record(1, helm.StatusFailed, "new"), record(2, helm.StatusFailed, "new"), record(3, helm.StatusFailed, "old"),
		record(4, helm.StatusFailed, "new", interruptedly), record(5, helm.StatusDeployed, "new")))
	if r := s.Failure("new"); r == nil || r.Number != 2 {
		t.Errorf("the newest failure is %+v", r)
	}
	for _, trial := range []string{"", "other"} {
		if r := s.Failure(trial); r != nil {
			t.Errorf("%q failed in %+v", trial, r)
		}
	}
}

func TestAcceptedFindsTheRequestInAnyRevision(t *testing.T) {
	s := StateOf("web", history(record(1, helm.StatusDeployed, "a", label(RequestLabel, "now")), record(2, helm.StatusDeployed, "b")))
	if !s.Accepted("now") || s.Accepted("later") {
		t.Errorf("now %t, later %t", s.Accepted("now"), s.Accepted("later"))
	}
}
