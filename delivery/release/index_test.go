package release

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// at gives a record another version.
func at(version string, r metav1.PartialObjectMetadata) metav1.PartialObjectMetadata {
	r.ResourceVersion = version
	return r
}

func TestTheNewerOfIndexAndOwnWritesCounts(t *testing.T) {
	deployed, superseded := record(1, helm.StatusDeployed, "a"), record(1, helm.StatusSuperseded, "a")
	tests := map[string]struct {
		wrote *metav1.PartialObjectMetadata
		gone  string
		index []metav1.PartialObjectMetadata
		later time.Duration
		want  map[int]string
	}{
		"the index lags":                     {wrote: new(at("100", superseded)), index: history(at("99", deployed)), want: map[int]string{1: "superseded"}},
		"longer numbers are greater":         {wrote: new(at("100", superseded)), index: history(at("1000", deployed)), want: map[int]string{1: "deployed"}},
		"the index is ahead":                 {wrote: new(at("100", superseded)), index: history(at("101", deployed)), want: map[int]string{1: "deployed"}},
		"the index knows nothing yet":        {wrote: new(at("100", superseded)), want: map[int]string{1: "superseded"}},
		"the index knows nothing for long":   {wrote: new(at("100", superseded)), later: time.Minute, want: map[int]string{}},
		"deleted, the index lags":            {gone: "100", index: history(at("100", deployed)), want: map[int]string{}},
		"deleted, the index lags for long":   {gone: "100", index: history(at("100", deployed)), later: time.Minute, want: map[int]string{}},
		"deleted, and made anew by somebody": {gone: "100", index: history(at("101", deployed)), want: map[int]string{1: "deployed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := &memo{}
			if test.wrote != nil {
				m.wrote(&test.wrote.ObjectMeta, noon)
			}
			if test.gone != "" {
				m.removed(keyOf("web", 1), test.gone, noon)
			}
			for range 2 { // What it forgot it does not need.
				got := stateOf("web", m.correct(test.index, noon.Add(test.later))).statuses()
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestHistoryForgetsWhatIsGone(t *testing.T) {
	m := &memo{}
	for n := range 4 {
		m.saw(recorded(n+1, helm.StatusPendingUpgrade), map[string]string{contentLabel: "c"})
	}
	s := stateOf("web", history(record(2, helm.StatusSuperseded, "a"), record(3, helm.StatusDeployed, "b", label(testLabel, testFailed)), record(5, helm.StatusFailed, "c")))
	got := m.history(s)
	if len(got) != 2 || got[0].Revision != 3 || got[0].Status != "deployed" || got[0].Test != testFailed || got[1].Status != "superseded" {
		t.Errorf("got %+v", got)
	}
	if got[0].Chart != "web" || got[0].ChartVersion != "1.2.3" || got[0].AppVersion != "9" || got[0].Digest != "c" || len(got[0].ValuesDigest) != 71 {
		t.Errorf("got %+v", got[0])
	}
	if len(m.snapshots) != 2 {
		t.Errorf("%d snapshots are kept", len(m.snapshots))
	}
}
