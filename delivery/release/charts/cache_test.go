package charts

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// parent is a chart whose subchart can be switched off and hands values up.
func parent() fstest.MapFS {
	return sources.ChartFolder(map[string]string{
		"Chart.yaml":                 sources.ChartYAML + "dependencies:\n- name: db\n  version: 1.0.0\n  condition: db.enabled\n  import-values: [exports]\n",
		"values.yaml":                "color: blue\ndb: {enabled: true}\n",
		"values-prod.yaml":           "color: red\nnested: {a: 1}\n",
		"values-eu.yaml":             "nested: {b: 2}\n",
		"templates/a.yaml":           "color: {{ .Values.color }}\nport: {{ .Values.port }}\n",
		"charts/db/Chart.yaml":       "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"charts/db/values.yaml":      "exports: {exports: {port: 5432}}\n",
		"charts/db/templates/b.yaml": "color: {{ .Values.color }}\n",
	})
}

// rendered is the chart as Helm renders it.
func rendered(t *testing.T, c *chart.Chart, values map[string]any) map[string]string {
	t.Helper()
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "web"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Run it with -race: the SDK changes the chart it works on.
func TestActionsDoNotSeeEachOther(t *testing.T) {
	e := &Cache{}
	source := Chart{Files: parent(), Digest: "1"}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			c, _, err := e.Open(source, nil, nil)
			if err != nil {
				t.Error(err)
				return
			}
			color := fmt.Sprintf("c%d", i)
			got := rendered(t, c, map[string]any{"color": color, "db": map[string]any{"enabled": i%2 == 0, "color": color}})
			_, sub := got["web/charts/db/templates/b.yaml"]
			if !strings.Contains(got["web/templates/a.yaml"], color) || sub != (i%2 == 0) {
				t.Errorf("action %d rendered %v", i, got)
			}
			c.Values["color"], c.Metadata.Version = "spoilt", "0.0.0"
			c.Metadata.Dependencies = nil
		})
	}
	all.Wait()
	c, _, err := e.Open(source, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fresh.Values, c.Values); diff != "" {
		t.Errorf("values: %s", diff)
	}
	if diff := cmp.Diff(fresh.Metadata, c.Metadata); diff != "" {
		t.Errorf("metadata: %s", diff)
	}
	want, got := rendered(t, fresh, map[string]any{}), rendered(t, c, map[string]any{})
	if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(got["web/templates/a.yaml"], "port: 5432") {
		t.Errorf("rendered: %s\n%v", diff, got)
	}
}

// sortAlpha sorts a list of strings where it is.
func TestATemplateDoesNotSortTheNextOnesLists(t *testing.T) {
	e := &Cache{}
	source := Chart{Digest: "1", Files: sources.ChartFolder(map[string]string{
		"Chart.yaml":       sources.ChartYAML + "keywords: [b, a]\nsources: [d, c]\n",
		"templates/a.yaml": "{{ sortAlpha .Chart.Keywords }} {{ sortAlpha .Chart.Sources }}",
	})}
	first, _, err := e.Open(source, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := rendered(t, first, map[string]any{})["web/templates/a.yaml"]; got != "[a b] [c d]" {
		t.Fatalf("rendered %q, want %q", got, "[a b] [c d]")
	}
	second, _, err := e.Open(source, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"b", "a"}, {"d", "c"}}, [][]string{second.Metadata.Keywords, second.Metadata.Sources}); diff != "" {
		t.Error(diff)
	}
}

func TestLaterValuesFilesOfAChartWin(t *testing.T) {
	e := &Cache{}
	source := Chart{Files: parent(), Digest: "1"}
	_, got, err := e.Open(source, []string{"values-prod.yaml", "./values-eu.yaml"}, map[string]any{"nested": map[string]any{"b": 3.0}})
	want := map[string]any{"color": "red", "nested": map[string]any{"a": 1.0, "b": 3.0}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	_, _, err = e.Open(source, []string{"values-us.yaml"}, nil)
	if !errors.Is(err, fault.ErrRender) || !strings.Contains(err.Error(), "chart web has no values file values-us.yaml") {
		t.Errorf("got %v", err)
	}
}

// opened counts how often the chart is read.
type opened struct {
	fstest.MapFS
	reads *atomic.Int32
}

func (o opened) ReadFile(name string) ([]byte, error) {
	if name == "Chart.yaml" {
		o.reads.Add(1)
	}
	return fs.ReadFile(o.MapFS, name)
}

func TestAChartIsReadOnce(t *testing.T) {
	var reads atomic.Int32
	source := Chart{Files: opened{parent(), &reads}, Digest: "1"}
	e := &Cache{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := e.Open(source, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if reads.Load() != 1 {
		t.Errorf("read %d times, want 1", reads.Load())
	}
}

func TestABadChartIsReadAgain(t *testing.T) {
	files := fstest.MapFS{}
	e := &Cache{}
	if _, _, err := e.Open(Chart{Files: files, Digest: "1"}, nil, nil); !errors.Is(err, fault.ErrRender) {
		t.Fatalf("got %v", err)
	}
	if _, _, err := e.Open(Chart{Files: parent(), Digest: "1"}, nil, nil); err != nil {
		t.Errorf("a failure is remembered: %v", err)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	big := strings.Repeat("x", 4<<20)
	e := &Cache{}
	for i := range 12 {
		c := Chart{Files: sources.ChartFolder(map[string]string{"a.txt": big}), Digest: fmt.Sprint(i)}
		if _, _, err := e.Open(c, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if total := e.parsed.Weight(); total > maxCachedBytes || total < maxCachedBytes/2 {
		t.Errorf("%d bytes are kept", total)
	}
	_, newest := e.parsed.Get("11")
	if _, oldest := e.parsed.Get("0"); !newest || oldest || len(e.reading) > 0 {
		t.Errorf("the newest is kept: %t, the oldest: %t; %d are being read", newest, oldest, len(e.reading))
	}
}

// TestEveryCachedChartHasACost, because there may be any number of tiny ones.
func TestEveryCachedChartHasACost(t *testing.T) {
	s := &Cache{}
	const limit = maxCachedBytes / chartCost
	for i := range 2 * limit {
		digest := fmt.Sprint(i)
		_, r := s.known(digest)
		r.chart = &chart.Chart{}
		s.keep(digest, r)
	}
	if n := s.parsed.Len(); n > limit {
		t.Errorf("%d charts are kept, want at most %d", n, limit)
	}
}

func TestADisabledSubchartHasNoCRDs(t *testing.T) {
	files := parent()
	files["charts/db/crds/a.yaml"] = &fstest.MapFile{Data: []byte("kind: x\n")}
	c, err := Chart{Files: files}.Load()
	if err != nil {
		t.Fatal(err)
	}
	for enabled, want := range map[bool]int{true: 1, false: 0} {
		values := map[string]any{"db": map[string]any{"enabled": enabled}}
		got, err := Resolve(c, values)
		if err != nil || len(got.CRDObjects()) != want {
			t.Errorf("enabled %v: %d, %v", enabled, len(got.CRDObjects()), err)
		}
	}
	if len(c.CRDObjects()) != 1 {
		t.Error("the chart itself was changed")
	}
}

func TestTheFilesOfACachedChartAreNotReadAgain(t *testing.T) {
	var reads atomic.Int32
	files := opened{parent(), &reads}
	c, cache := Chart{Digest: "1", Files: files}, &Cache{}
	first, err := cache.Files(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cache.get(c); err != nil {
		t.Fatal(err)
	}
	before := reads.Load()
	second, err := cache.Files(c)
	if err != nil || reads.Load() != before {
		t.Errorf("%d files are read again, %v", reads.Load()-before, err)
	}
	names := func(all []*loader.BufferedFile) map[string]string {
		text := map[string]string{}
		for _, f := range all {
			text[f.Name] = string(f.Data)
		}
		return text
	}
	if diff := cmp.Diff(names(first), names(second)); diff != "" || len(first) != len(files.MapFS) {
		t.Errorf("%d of %d files (-read +cached):\n%s", len(first), len(files.MapFS), diff)
	}
	second[0].Name = "changed"
	if third, err := cache.Files(c); err != nil || third[0].Name == "changed" {
		t.Errorf("the cache is changed, %v", err)
	}
}

func TestACopyOfMetadataSharesNothing(t *testing.T) {
	if CopyMetadata(nil) != nil {
		t.Error("nothing has a copy")
	}
	made := func() *chart.Metadata {
		return &chart.Metadata{
			Name: "web", Annotations: map[string]string{"a": "b"}, Keywords: []string{"a"}, Sources: []string{"a"},
			Dependencies: []*chart.Dependency{nil, {Name: "db", Tags: []string{"a"}, ImportValues: []any{map[string]any{"child": "a"}}}},
		}
	}
	from := made()
	copied := CopyMetadata(from)
	if diff := cmp.Diff(from, copied); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	copied.Annotations["a"], copied.Keywords[0], copied.Sources[0] = "x", "x", "x"
	copied.Dependencies[1].Tags[0], copied.Dependencies[1].Name = "x", "x"
	copied.Dependencies[1].ImportValues[0].(map[string]any)["child"] = "x"
	copied.Dependencies[0] = &chart.Dependency{}
	if diff := cmp.Diff(made(), from); diff != "" {
		t.Errorf("the metadata changed with its copy:\n%s", diff)
	}
}

func TestNullValuesStayNull(t *testing.T) {
	for name, value := range map[string]any{
		"a map that is nil": map[string]any(nil), "a list that is nil": []any(nil), "an empty map": map[string]any{}, "an empty list": []any{}, "null": nil,
		"nested": map[string]any{"a": []any{map[string]any(nil), []any(nil), 1}},
	} {
		if diff := cmp.Diff(value, DeepCopy(value)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
