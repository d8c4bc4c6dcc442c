package records

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/delivery/release/decide"
)

// at gives a record another version.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// listed are the records that the index has.
func listed(records ...metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata { return records }

// record is the metadata of a revision's record.
func record(number int, status helm.Status, change ...string) metav1.PartialObjectMetadata {
	labels := map[string]string{"owner": "helm", "name": "web", "status": status.String(), decide.RevisionLabel: strconv.Itoa(number)}
	for i := 0; i < len(change); i += 2 {
		labels[change[i]] = change[i+1]
	}
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: decide.KeyOf("web", number), Labels: labels, ResourceVersion: strconv.Itoa(100 + number),
	}}
}

func at(version string, r metav1.PartialObjectMetadata) metav1.PartialObjectMetadata {
	r.ResourceVersion = version
	return r
}

func TestTheNewerOfIndexAndOwnWritesCounts(t *testing.T) {
	deployed, superseded := record(1, helm.StatusDeployed), record(1, helm.StatusSuperseded)
	tests := map[string]struct {
		wrote *metav1.PartialObjectMetadata
		gone  string
		index []metav1.PartialObjectMetadata
		later time.Duration
		want  map[int]string
	}{
		"the index lags":                     {wrote: new(at("100", superseded)), index: listed(at("99", deployed)), want: map[int]string{1: "superseded"}},
		"longer numbers are greater":         {wrote: new(at("100", superseded)), index: listed(at("1000", deployed)), want: map[int]string{1: "deployed"}},
		"the index is ahead":                 {wrote: new(at("100", superseded)), index: listed(at("101", deployed)), want: map[int]string{1: "deployed"}},
		"the index knows nothing yet":        {wrote: new(at("100", superseded)), want: map[int]string{1: "superseded"}},
		"the index knows nothing for long":   {wrote: new(at("100", superseded)), later: time.Minute, want: map[int]string{}},
		"deleted, the index lags":            {gone: "100", index: listed(at("100", deployed)), want: map[int]string{}},
		"deleted, the index lags for long":   {gone: "100", index: listed(at("100", deployed)), later: time.Minute, want: map[int]string{}},
		"deleted, and made anew by somebody": {gone: "100", index: listed(at("101", deployed)), want: map[int]string{1: "deployed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := &Memo{}
			if test.wrote != nil {
				m.wrote(&test.wrote.ObjectMeta, noon)
			}
			if test.gone != "" {
				m.removed(decide.KeyOf("web", 1), test.gone, noon)
			}
			for range 2 { // What it forgot it does not need.
				got := decide.StateOf("web", m.Correct(test.index, noon.Add(test.later))).Statuses()
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestHistoryForgetsDeletedRecords(t *testing.T) {
	m := &Memo{}
	for n := range 4 {
		m.saw(recorded(n+1, helm.StatusPendingUpgrade), map[string]string{decide.ContentLabel: "c"})
	}
	s := decide.StateOf("web", listed(record(2, helm.StatusSuperseded), record(3, helm.StatusDeployed, decide.TestLabel, decide.TestFailed), record(5, helm.StatusFailed)))
	got := m.History(s)
	if len(got) != 2 || got[0].Revision != 3 || got[0].Status != "deployed" || got[0].Test != decide.TestFailed || got[1].Status != "superseded" {
		t.Errorf("got %+v", got)
	}
	if got[0].Chart != "web" || got[0].ChartVersion != "1.2.3" || got[0].AppVersion != "9" || got[0].Digest != "c" || len(got[0].ValuesDigest) != 71 {
		t.Errorf("got %+v", got[0])
	}
	if len(m.snapshots) != 2 {
		t.Errorf("%d snapshots are kept, want 2", len(m.snapshots))
	}
}
