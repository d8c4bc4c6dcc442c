package evaluate

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestAChartIsReadAndRenderedInThisOrder has one error for each step, in a chart that has nothing else wrong.
func TestAChartIsReadAndRenderedInThisOrder(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		files  map[string]string
		change func(*Input)
		says   string
		render bool
		kinds  bool
	}{
		"nothing is wrong":         {},
		"no chart":                 {files: map[string]string{"Chart.yaml": "name: 7\n"}, says: "chart.metadata.version is required", render: true},
		"no values file":           {change: func(in *Input) { in.ValuesFiles = []string{"more.yaml"} }, says: "more.yaml", render: true},
		"values against a schema":  {files: map[string]string{"values.schema.json": `{"required": ["color"]}`}, says: "values don't meet the specifications of the schema(s)"},
		"a schema that is skipped": {files: map[string]string{"values.schema.json": `{"required": ["color"]}`}, change: func(in *Input) { in.SkipSchema = true }},
		"another Kubernetes":       {files: map[string]string{"Chart.yaml": sources.ChartYAML + "kubeVersion: '>=9.0.0'\n"}, says: "chart requires kubeVersion: >=9.0.0 which is incompatible with Kubernetes v1."},
		"a Kubernetes that it has": {files: map[string]string{"Chart.yaml": sources.ChartYAML + "kubeVersion: '>=1.0.0-0'\n"}},
		"a template":               {files: map[string]string{"templates/a.yaml": "{{ fail \"no\" }}"}, says: "no"},
		"no object":                {files: map[string]string{"templates/a.yaml": "- 1\n"}, says: "YAML parse error on web/templates/a.yaml"},
		"definitions come first":   {files: map[string]string{"crds/a.yaml": object, "templates/a.yaml": "{{ fail \"no\" }}"}, kinds: true},
		"of a subchart, too":       {files: map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/crds/a.yaml": object}, kinds: true},
		"definitions are there":    {files: map[string]string{"crds/a.yaml": object}, change: func(in *Input) { in.KindsThere = true }},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"Chart.yaml": sources.ChartYAML, "templates/a.yaml": object}
			for file, text := range c.files {
				files[file] = text
			}
			in := &Input{Capabilities: chartutil.DefaultCapabilities, Release: chartutil.ReleaseOptions{Name: "web"}}
			for file, text := range files {
				in.Files = append(in.Files, &loader.BufferedFile{Name: file, Data: []byte(text)})
			}
			slices.SortFunc(in.Files, func(a, b *loader.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
			if c.change != nil {
				c.change(in)
			}
			pieces, err := in.Message()
			if err != nil {
				t.Fatal(err)
			}
			answer, err := Chart(bytes.Join(pieces, nil), nobodyAsked, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			var out Output
			if err := Unpack(answer, &out); err != nil {
				t.Fatal(err)
			}
			failed := out.Failure()
			if (failed != nil) != (c.says != "") || failed != nil && !strings.Contains(failed.Error(), c.says) || errors.Is(failed, fault.ErrRender) != c.render {
				t.Errorf("got %v, want %q", failed, c.says)
			}
			if out.Kinds != c.kinds || (len(out.Templates) > 0) != (c.says == "" && !c.kinds) {
				t.Errorf("definitions first: %t, %d templates", out.Kinds, len(out.Templates))
			}
		})
	}
	if _, err := Chart([]byte("no message"), nobodyAsked, func(string) {}); err == nil {
		t.Error("what is no question is answered")
	}
}
