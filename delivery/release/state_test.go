package release

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func numbers(s state) []int {
	var out []int
	for _, r := range s {
		out = append(out, r.number)
	}
	return out
}

func TestOnlyRecordsOfThisReleaseAreRevisions(t *testing.T) {
	strange := func(name string) metav1.PartialObjectMetadata {
		r := record(7, helm.StatusDeployed, "x")
		r.Name = name
		return r
	}
	s := stateOf("web", history(
		record(2, helm.StatusDeployed, "b"), record(1, helm.StatusSuperseded, "a"), strange("sh.helm.release.v1.other.v7"),
		strange("sh.helm.release.v1.web.v"), strange("sh.helm.release.v1.web.v0"), strange("sh.helm.release.v1.web.v-7"),
		strange("sh.helm.release.v1.web.v09"), strange("sh.helm.release.v1.web.v+7"), strange("web")))
	if diff := cmp.Diff([]int{1, 2}, numbers(s)); diff != "" {
		t.Error(diff)
	}
	if last := state(nil).last(); last != nil {
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
		"carried on": {record(3, helm.StatusDeployed, "d", label(revisionLabel, "2")), false, "", ""},
		"a number written otherwise, which admission takes for another": {record(3, helm.StatusDeployed, "d", label(revisionLabel, "03")), false, "", ""},
		"never ours":        {record(3, helm.StatusDeployed, ""), false, "", ""},
		"digest taken away": {record(3, helm.StatusFailed, "d", interruptedly), true, "", "me"},
		"forged counters":   {record(3, helm.StatusFailed, "d", label(attemptLabel, "-4"), label(blameLabel, "x")), true, "d", "me"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := revisionOf(3, &test.record.ObjectMeta)
			if r.ours != test.ours || r.digest != test.digest || r.holder != test.holder || r.attempt < 0 || r.blame != 0 {
				t.Errorf("got %+v", r)
			}
			if !r.since.Equal(noon) {
				t.Errorf("written at %s, want the last time, %s", r.since, noon)
			}
		})
	}
}

func TestSurplus(t *testing.T) {
	failures := history(
		record(1, helm.StatusSuperseded, "a"), record(2, helm.StatusDeployed, "b"), record(3, helm.StatusFailed, "c"),
		record(4, helm.StatusFailed, "c"), record(5, helm.StatusFailed, "c"))
	condemned := history(
		record(1, helm.StatusSuperseded, "a", label(provenLabel, yes)), record(2, helm.StatusSuperseded, "b", label(provenLabel, no)),
		record(3, helm.StatusFailed, "c"), record(4, helm.StatusFailed, "c"))
	good := func(*revision) bool { return true }
	tests := map[string]struct {
		history []metav1.PartialObjectMetadata
		keep    int
		want    []int
	}{
		"room":                             {failures, 5, nil},
		"the oldest goes":                  {failures, 4, []int{1}},
		"the deployed one stays":           {failures, 2, []int{1, 3, 4}},
		"even when nothing is kept":        {failures, 0, []int{1, 3, 4, 5}},
		"what a rollback returns to stays": {condemned, 2, []int{2, 3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, numbers(stateOf("web", test.history).surplus(test.keep, good, nil))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTally(t *testing.T) {
	tests := map[string]struct {
		history []metav1.PartialObjectMetadata
		want    tally
	}{
		"no failure":        {history(record(1, helm.StatusDeployed, "new")), tally{}},
		"another input's":   {history(record(1, helm.StatusFailed, "old", inputFailed(3))), tally{}},
		"this input's":      {history(record(1, helm.StatusFailed, "new", inputFailed(3))), tally{attempts: 3, blame: 3, at: noon}},
		"interrupted since": {history(record(1, helm.StatusFailed, "new", inputFailed(3)), record(2, helm.StatusFailed, "new", interruptedly)), tally{attempts: 3, blame: 3}},
		"succeeded since":   {history(record(1, helm.StatusFailed, "new", inputFailed(3)), record(2, helm.StatusDeployed, "old")), tally{}},
		"failed by hand":    {history(record(1, helm.StatusFailed, "new", label(revisionLabel, "9"))), tally{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, stateOf("web", test.history).tally("new"), cmp.AllowUnexported(tally{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
