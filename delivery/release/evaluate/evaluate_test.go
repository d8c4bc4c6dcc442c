package evaluate

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// boxes evaluate the charts of all tests, in processes of this test binary.
var boxes = sandbox.New(sandbox.Options{})

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Serve(os.Args[2:], map[string]sandbox.Function{Function: Chart}))
	}
	if flag.Parse(); testing.Short() {
		fmt.Println("left out with -short: charts are evaluated in confined processes, in which the race detector cannot run")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// chartsOf are the folders of charts in the corpus.
func chartsOf(t *testing.T) []string {
	t.Helper()
	one, err := filepath.Glob("../testdata/charts/*/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	two, err := filepath.Glob("../testdata/charts/*/*/Chart.yaml")
	if err != nil || len(one) == 0 || len(two) == 0 {
		t.Fatalf("%d and %d charts, %v", len(one), len(two), err)
	}
	var out []string
	for _, file := range append(one, two...) {
		out = append(out, filepath.Dir(file))
	}
	return out
}

// dryRun is what Helm makes of a chart.
func dryRun(c *chart.Chart) (*helm.Release, error) {
	i := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	i.ClientOnly, i.DryRun, i.Replace = true, true, true
	i.ReleaseName, i.Namespace = "web", "team"
	return i.Run(c, map[string]any{})
}

// nobody has no objects.
func nobody(context.Context, []byte) ([]byte, error) { return message.Write(map[string]any{}) }

// renderIn evaluates a chart in a process of a pool.
func renderIn(ctx context.Context, p *sandbox.Pool, c charts.Chart) (map[string]string, error) {
	files, err := c.Read()
	if err != nil {
		return nil, err
	}
	input, err := Input{
		Files: files, Capabilities: chartutil.DefaultCapabilities, KindsThere: true,
		Release: chartutil.ReleaseOptions{Name: "web", Namespace: "team", Revision: 1, IsInstall: true},
	}.Message()
	if err != nil {
		return nil, err
	}
	answer, err := p.Call(ctx, sandbox.Call{Function: Function, Input: input, NewHandler: func() apart.Handler { return nobody }})
	if err != nil {
		return nil, err
	}
	var out Output
	if err := Unpack(answer, &out); err != nil {
		return nil, err
	}
	return out.Templates, out.Failure()
}

// asRecorded writes manifest and hooks as they are recorded when nothing changes them.
func asRecorded(rel *helm.Release) (err error) {
	write := func(text string) string {
		docs, failed := manifest.Parse(text)
		out, also := manifest.Sealed(docs)
		err = errors.Join(err, failed, also)
		return out
	}
	rel.Manifest = write(rel.Manifest)
	for _, h := range rel.Hooks {
		h.Manifest = write(h.Manifest)
	}
	return err
}

// TestAnEvaluationIsRecordedAsHelmWouldRecordIt: what was rendered in another process and went through Helm in JSON is recorded as what Helm renders, byte by byte.
func TestAnEvaluationIsRecordedAsHelmWouldRecordIt(t *testing.T) {
	same := 0
	for _, dir := range chartsOf(t) {
		t.Run(strings.TrimPrefix(dir, "../testdata/charts/"), func(t *testing.T) {
			source := charts.Chart{Files: os.DirFS(dir)}
			whole, err := source.Load()
			if err != nil {
				t.Skip("it is to be refused:", err)
			}
			again, err := source.Load()
			if err != nil {
				t.Fatal(err)
			}
			first, failed := dryRun(again)
			want, err := dryRun(whole)
			templates, alsoFailed := renderIn(t.Context(), boxes, source)
			if err != nil || failed != nil {
				if alsoFailed == nil || !strings.Contains(alsoFailed.Error(), err.Error()) {
					t.Errorf("it says %v, Helm %v", alsoFailed, err)
				}
				return
			}
			if first.Manifest != want.Manifest {
				t.Skip("it renders differently each time")
			}
			plain, err := Plain(whole, templates)
			if err := errors.Join(alsoFailed, err); err != nil {
				t.Fatal(err)
			}
			got, err := dryRun(plain)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(asRecorded(got), asRecorded(want)); err != nil {
				t.Fatal(err)
			}
			got.Chart, want.Chart, got.Info, want.Info = nil, nil, &helm.Info{Notes: got.Info.Notes}, &helm.Info{Notes: want.Info.Notes}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			same++
		})
	}
	if same < 35 {
		t.Errorf("only %d charts were compared", same)
	}
}

// rendered is the chart as Helm renders it.
func rendered(t *testing.T, c *chart.Chart) map[string]string {
	t.Helper()
	all, err := chartutil.ToRenderValues(c, map[string]any{}, chartutil.ReleaseOptions{Name: "web"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPlainTextRendersToItself(t *testing.T) {
	for _, text := range []string{"", "{{", "a {{- b -}} c", "{{{{{", "}}", "{{/* c */}}", "{ {", "\n\n{{ .Values.a }}\n  ", "{{`x`}}", "a\r\n{{"} {
		c := &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: "1.0.0"}}
		plain, err := Plain(c, map[string]string{"web/templates/NOTES.txt": text})
		if err != nil {
			t.Fatal(err)
		}
		if got := rendered(t, plain)["web/templates/NOTES.txt"]; got != text {
			t.Errorf("%q renders to %q", text, got)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	source := charts.Chart{Files: os.DirFS("../../e2e/bench/chart")}
	b.Run("in this process", func(b *testing.B) {
		for b.Loop() {
			c, err := source.Load()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := dryRun(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("in another process", func(b *testing.B) {
		for b.Loop() {
			templates, err := renderIn(b.Context(), boxes, source)
			if err != nil {
				b.Fatal(err)
			}
			c, err := source.Load()
			if err != nil {
				b.Fatal(err)
			}
			plain, err := Plain(c, templates)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := dryRun(plain); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestAMessageHasTheFilesOfItsChart, those that are empty too, and one that was cut off or goes on is none.
func TestAMessageHasTheFilesOfItsChart(t *testing.T) {
	want := &Input{
		Files:  []*loader.BufferedFile{{Name: "Chart.yaml", Data: []byte("name: web\n")}, {Name: "empty", Data: []byte{}}, {Name: "a", Data: []byte("b")}},
		Values: map[string]any{"a": int64(1)},
	}
	pieces, err := want.Message()
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Join(pieces, nil)
	got, err := evaluationIn(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Input{}, "Sent")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, text := range map[string][]byte{"cut off": whole[:len(whole)-1], "going on": append(whole, 'c'), "only begun": whole[:3], "empty": nil} {
		if _, err := evaluationIn(text); err == nil {
			t.Errorf("a message that is %s is read", name)
		}
	}
}

// TestValuesOfTheLastReleaseAreKeptUnderThoseOfTheApp, and a null of the app
// takes a value back to that of the chart, as with helm upgrade --reuse-values.
func TestValuesOfTheLastReleaseAreKeptUnderThoseOfTheApp(t *testing.T) {
	chart := []*loader.BufferedFile{
		{Name: "Chart.yaml", Data: []byte(sources.ChartYAML)},
		{Name: "values.yaml", Data: []byte("color: default\nsize: default\nshape: {side: 1}\n")},
		{Name: "templates/a.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\ndata: {{ toJson .Values }}\n")},
	}
	for name, c := range map[string]struct {
		values, previous map[string]any
		want             string
	}{
		"no release":          {map[string]any{"color": "red"}, nil, `{"color":"red","shape":{"side":1},"size":"default"}`},
		"kept":                {map[string]any{}, map[string]any{"color": "blue"}, `{"color":"blue","shape":{"side":1},"size":"default"}`},
		"set, another kept":   {map[string]any{"color": "red"}, map[string]any{"color": "blue", "size": "L"}, `{"color":"red","shape":{"side":1},"size":"L"}`},
		"kept within another": {map[string]any{"shape": map[string]any{"side": 2}}, map[string]any{"shape": map[string]any{"edge": 3}}, `{"color":"default","shape":{"edge":3,"side":2},"size":"default"}`},
		"taken back":          {map[string]any{"size": nil}, map[string]any{"size": "L"}, `{"color":"default","shape":{"side":1},"size":"default"}`},
	} {
		t.Run(name, func(t *testing.T) {
			in := &Input{Files: chart, Values: c.values, Previous: c.previous, Capabilities: chartutil.DefaultCapabilities, Release: chartutil.ReleaseOptions{Name: "web"}}
			out, err := in.run(nobodyAsked, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"web/templates/a.yaml": "---\n" + `{"apiVersion":"v1","data":` + c.want + `,"kind":"ConfigMap"}` + "\n"}, out.Templates); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzMessage: whatever the other process sends is read without harm, and what was read means the same when it is sent on.
func FuzzMessage(f *testing.F) {
	for _, seed := range []any{
		Output{Templates: map[string]string{"web/templates/a.yaml": "a: 1\n"}}, Output{Error: "no", Render: true},
		lookup{APIVersion: "v1", Kind: "Secret", Namespace: "team", Name: "web"}, map[string]any{"a": []any{1, 1.5, nil, "\xff", map[string]any{}}},
	} {
		text, err := message.Write(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var answer, again Output
		if reader.Read(text, &answer) != nil {
			return
		}
		sent, err := message.Write(answer)
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Read(sent, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(answer, again); diff != "" {
			t.Error(diff)
		}
	})
}

// BenchmarkWhatTheOperatorReads is what the operator does with what a process rendered, in JSON and as it was rendered, and what the
// process does to write JSON.
func BenchmarkWhatTheOperatorReads(b *testing.B) {
	c, err := charts.Chart{Files: os.DirFS("../../e2e/bench/chart")}.Load()
	if err != nil {
		b.Fatal(err)
	}
	first, err := dryRun(c)
	if err != nil {
		b.Fatal(err)
	}
	templates := map[string]string{"bench/templates/all.yaml": first.Manifest}
	written, err := manifest.InJSON(templates, func(string) {})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("written in JSON", func(b *testing.B) {
		for b.Loop() {
			if _, err := manifest.InJSON(templates, func(string) {}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, text := range map[string]string{"YAML": first.Manifest, "JSON": written["bench/templates/all.yaml"]} {
		b.Run("read as "+name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := releaseutil.SortManifests(map[string]string{"a.yaml": text}, nil, releaseutil.InstallOrder); err != nil {
					b.Fatal(err)
				}
				if _, err := manifest.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
