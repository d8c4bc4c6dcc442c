package decide

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// released is a revision as kubeop records it.
func released(t *testing.T) *helm.Release {
	t.Helper()
	rel := &helm.Release{
		Name: "web", Namespace: "team", Version: 3, Manifest: "kind: ConfigMap", Config: map[string]any{"a": 1},
		Info:   &helm.Info{Status: helm.StatusDeployed, FirstDeployed: helmtime.Time{Time: noon}, LastDeployed: helmtime.Time{Time: noon.Add(time.Hour)}},
		Chart:  &chart.Chart{Metadata: &chart.Metadata{Name: "shop", Version: "1.2.3", AppVersion: "9"}},
		Hooks:  []*helm.Hook{{Path: "b", Manifest: "2"}, {Path: "a", Manifest: "1"}},
		Labels: map[string]string{RevisionLabel: "3"},
	}
	content, err := Content(rel)
	if err != nil {
		t.Fatal(err)
	}
	rel.Labels[ContentLabel] = content
	return rel
}

// TestOnlyWhatKubeopRecordedIsGenuine: what an action adds to a revision later does not count, everything else does.
func TestOnlyWhatKubeopRecordedIsGenuine(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*helm.Release)
		want   bool
	}{
		"as it was recorded":              {func(*helm.Release) {}, true},
		"another status":                  {func(r *helm.Release) { r.Info.Status = helm.StatusFailed }, true},
		"deployed again":                  {func(r *helm.Release) { r.Info.LastDeployed = helmtime.Time{} }, true},
		"the time in another zone":        {func(r *helm.Release) { r.Info.FirstDeployed.Time = noon.In(time.FixedZone("CET", 3600)) }, true},
		"the results of hooks":            {func(r *helm.Release) { r.Hooks[0].LastRun.Phase = helm.HookPhaseFailed }, true},
		"the order of hooks":              {func(r *helm.Release) { r.Hooks[0], r.Hooks[1] = r.Hooks[1], r.Hooks[0] }, true},
		"a number as JSON has it":         {func(r *helm.Release) { r.Config["a"] = 1.0 }, true},
		"another manifest":                {func(r *helm.Release) { r.Manifest = "kind: Secret" }, false},
		"another hook":                    {func(r *helm.Release) { r.Hooks[0].Manifest = "3" }, false},
		"the path of a hook":              {func(r *helm.Release) { r.Hooks[0].Path = "c" }, false},
		"other values":                    {func(r *helm.Release) { r.Config["a"] = 2 }, false},
		"no values":                       {func(r *helm.Release) { r.Config = nil }, false},
		"values that are no JSON":         {func(r *helm.Release) { r.Config["a"] = math.Inf(1) }, false},
		"another name":                    {func(r *helm.Release) { r.Name = "api" }, false},
		"another version of the chart":    {func(r *helm.Release) { r.Chart.Metadata.Version = "1.2.4" }, false},
		"no chart":                        {func(r *helm.Release) { r.Chart = nil }, false},
		"no metadata of the chart":        {func(r *helm.Release) { r.Chart.Metadata = nil }, false},
		"first installed at another time": {func(r *helm.Release) { r.Info.FirstDeployed = helmtime.Time{Time: noon.Add(time.Second)} }, false},
		"no status":                       {func(r *helm.Release) { r.Info = nil }, false},
		"no digest":                       {func(r *helm.Release) { delete(r.Labels, ContentLabel) }, false},
		"the labels of another revision":  {func(r *helm.Release) { r.Labels[RevisionLabel] = "2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			rel := released(t)
			c.change(rel)
			if got := Genuine(rel); got != c.want {
				t.Errorf("genuine: %t, want %t", got, c.want)
			}
			if err := CheckGenuine(rel); (err == nil) != c.want || err != nil && (!errors.Is(err, ErrAltered) || !strings.HasPrefix(err.Error(), "revision 3: its record")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestContentIsThatOfWhatIsRead(t *testing.T) {
	for name, c := range map[string]struct{ made, read map[string]any }{
		"no values":                      {nil, map[string]any{}},
		"a key that is no UTF-8":         {map[string]any{"a\xff": 1}, map[string]any{"a\ufffd": 1.0}},
		"a number that is a whole":       {map[string]any{"a": 3}, map[string]any{"a": 3.0}},
		"a large number, as JSON has it": {map[string]any{"a": uint64(1<<63 + 1)}, map[string]any{"a": float64(1 << 63)}},
	} {
		made, read := released(t), released(t)
		made.Config, read.Config = c.made, c.read
		want, err := Content(made)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Content(read); err != nil || got != want {
			t.Errorf("%s: %s after it is read, %s before; %v", name, got, want, err)
		}
	}
	odd := released(t)
	odd.Config["a"] = math.Inf(1)
	if got, err := Content(odd); err == nil || got != "" {
		t.Errorf("values that are no JSON: %q, %v", got, err)
	}
}

func TestASnapshotShowsTheFactsOfARevision(t *testing.T) {
	full := v1alpha1.ReleaseSnapshot{
		Revision: 3, Status: "deployed", Chart: "shop", ChartVersion: "1.2.3", AppVersion: "9", Test: TestFailed, Digest: "c",
		FirstDeployed: metav1.NewTime(noon), LastDeployed: metav1.NewTime(noon.Add(time.Hour)),
		ValuesDigest: "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",
	}
	byHand, bare := full, full
	byHand.Test, byHand.Digest = "", released(t).Labels[ContentLabel]
	bare.Chart, bare.ChartVersion, bare.AppVersion = "", "", ""
	bare.ValuesDigest = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // of {}
	labels := map[string]string{TestLabel: TestFailed, ContentLabel: "c"}
	for name, c := range map[string]struct {
		change func(*helm.Release)
		labels map[string]string
		want   v1alpha1.ReleaseSnapshot
	}{
		"kubeop's":           {func(*helm.Release) {}, labels, full},
		"a person's":         {func(*helm.Release) {}, nil, byHand},
		"no chart or values": {func(r *helm.Release) { r.Chart, r.Config = nil, nil }, labels, bare},
	} {
		t.Run(name, func(t *testing.T) {
			rel := released(t)
			c.change(rel)
			if diff := cmp.Diff(c.want, Snapshot(rel, c.labels)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := valuesDigest(map[string]any{"a": math.NaN()}); got != "" {
		t.Errorf("values that are no JSON have the digest %q", got)
	}
}

func TestLabelValueOfAName(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, want := range map[string]string{"shop": "shop", long[:63]: long[:63], long: Digest([]byte(long)), "a b": Digest([]byte("a b"))} {
		if got := LabelValue(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if one, other := Digest([]byte("a")), Digest([]byte("b")); len(one) != 40 || one == other {
		t.Errorf("digests %s and %s", one, other)
	}
}

func TestRevisionsAreFoundByTheirNumbers(t *testing.T) {
	s := StateOf("web", history(record(4, helm.StatusDeployed, "b"), record(2, helm.StatusSuperseded, "a")))
	if diff := cmp.Diff(map[int]string{2: "superseded", 4: "deployed"}, s.Statuses()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if two := s.Number(2); two != &s[0] || s.Number(3) != nil || s.Number(5) != nil {
		t.Errorf("got %v, %v and %v", two, s.Number(3), s.Number(5))
	}
}
