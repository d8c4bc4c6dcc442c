package release

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

func stored(t *testing.T, records ...*helm.Release) *storage.Storage {
	t.Helper()
	d := driver.NewMemory()
	d.SetNamespace("team")
	store := storage.Init(d)
	for _, r := range records {
		if err := store.Create(r); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func TestReadNothing(t *testing.T) {
	s, err := read(stored(t), "web")
	if err != nil || s.last() != nil {
		t.Fatalf("got %v, %v; want an empty state", s, err)
	}
	if got := s.info(); got != (Info{}) {
		t.Errorf("info of nothing: %v", got)
	}
}

func TestReadOnlyThisRelease(t *testing.T) {
	other := record(7, helm.StatusDeployed, "x")
	other.Name = "other"
	s, err := read(stored(t, other, record(2, helm.StatusDeployed, "b"), record(1, helm.StatusSuperseded, "a")), "web")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2}, numbers(s)); diff != "" {
		t.Error(diff)
	}
}

func numbers(s state) []int {
	var out []int
	for _, r := range s {
		out = append(out, r.number)
	}
	return out
}

func TestReadError(t *testing.T) {
	broken := errors.New("forbidden")
	_, err := read(storage.Init(failing{Driver: driver.NewMemory(), err: broken}), "web")
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// failing is a storage that does not answer.
type failing struct {
	driver.Driver
	err error
}

func (f failing) Query(map[string]string) ([]*helm.Release, error) { return nil, f.err }

func TestOnlyOurOwnRevisionSpeaks(t *testing.T) {
	tests := map[string]struct {
		record         *helm.Release
		ours           bool
		digest, holder string
	}{
		"ours":              {record(3, helm.StatusDeployed, "d"), true, "d", "me"},
		"carried on":        {record(3, helm.StatusDeployed, "d", label(revisionLabel, "2")), false, "", ""},
		"never ours":        {record(3, helm.StatusDeployed, ""), false, "", ""},
		"digest taken away": {record(3, helm.StatusFailed, "d", func(r *helm.Release) { delete(r.Labels, digestLabel) }), true, "", "me"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := revisionOf(test.record)
			if r.ours != test.ours || r.digest != test.digest || r.holder != test.holder {
				t.Errorf("got %v %q %q", r.ours, r.digest, r.holder)
			}
		})
	}
}

func TestRecordWithoutInfoIsNoRevision(t *testing.T) {
	if s := stateOf(history(&helm.Release{Name: "web", Version: 9})); len(s) != 0 {
		t.Errorf("got %d revisions", len(s))
	}
}

func TestSurplus(t *testing.T) {
	failures := history(
		record(1, helm.StatusSuperseded, "a"), record(2, helm.StatusDeployed, "b"), record(3, helm.StatusFailed, "c"),
		record(4, helm.StatusFailed, "c"), record(5, helm.StatusFailed, "c"))
	tests := map[string]struct {
		keep int
		want []int
	}{
		"room":                      {5, nil},
		"the oldest goes":           {4, []int{1}},
		"the deployed one stays":    {2, []int{1, 3, 4}},
		"even when nothing is kept": {0, []int{1, 3, 4, 5}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, numbers(stateOf(failures).surplus(test.keep))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	tests := map[string]struct {
		history []*helm.Release
		want    []int
	}{
		"none":              {history(record(1, helm.StatusDeployed, "a")), nil},
		"all":               {history(record(1, helm.StatusFailed, "a"), record(2, helm.StatusFailed, "a")), []int{1, 2}},
		"since the success": {history(record(1, helm.StatusFailed, "a"), record(2, helm.StatusDeployed, "a"), record(3, helm.StatusFailed, "b")), []int{3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, numbers(stateOf(test.history).failures())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	r := record(4, helm.StatusDeployed, "d")
	r.Chart = &chart.Chart{Metadata: &chart.Metadata{Name: "nginx", Version: "1.2.3", AppVersion: "9"}}
	want := Info{Name: "web", Revision: 4, Status: "deployed", Chart: "nginx-1.2.3", AppVersion: "9", Digest: "d"}
	if diff := cmp.Diff(want, stateOf(history(r)).info()); diff != "" {
		t.Error(diff)
	}
}

func TestInterruptedIsTriedAgainAtOnce(t *testing.T) {
	store := stored(t, record(1, helm.StatusPendingInstall, "new"))
	s, err := read(store, "web")
	if err != nil {
		t.Fatal(err)
	}
	if err := interrupted(store, s.last()); err != nil {
		t.Fatal(err)
	}
	again, err := read(store, "web")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]state{"in memory": s, "in storage": again} {
		if got := next(s, asWanted()); got.act != install || got.attempts != 0 {
			t.Errorf("%s: next is %+v, want an install at once", name, got)
		}
		if s.last().status != helm.StatusFailed {
			t.Errorf("%s: status %s", name, s.last().status)
		}
	}
}
