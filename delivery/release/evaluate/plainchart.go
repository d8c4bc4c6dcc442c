package evaluate

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// Plain returns a chart that renders to exactly these templates, without evaluating anything. Helm's actions get it instead of the real
// chart, and sort hooks, order objects and find the notes as usual.
func Plain(c *chart.Chart, templates map[string]string) (*chart.Chart, error) {
	out := &chart.Chart{Metadata: charts.CopyMetadata(c.Metadata)}
	out.Metadata.Dependencies, out.Metadata.KubeVersion = nil, ""
	for _, key := range slices.Sorted(maps.Keys(templates)) {
		name := strings.TrimPrefix(key, c.Name()+"/")
		if path.Join(out.ChartFullPath(), name) != key {
			return nil, fault.Render(fmt.Errorf("template %s is in no folder of chart %s", key, c.Name()))
		}
		out.Templates = append(out.Templates, &chart.File{Name: name, Data: verbatim(templates[key])})
	}
	return out, nil
}

// verbatim returns a template that renders to exactly this text.
func verbatim(text string) []byte {
	return bytes.ReplaceAll([]byte(text), []byte("{{"), []byte(`{{"{{"}}`))
}
