package evaluate

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// fewNodes limits the nodes of a chart after the values have chosen its subcharts.
func fewNodes(c *chart.Chart, note func(string)) error {
	n := &yamlcheck.NodeCount{Note: note}
	for _, crd := range c.CRDObjects() {
		if err := n.Text(crd.Filename, crd.File.Data); err != nil {
			return err
		}
	}
	n.Sum = 0
	return valuesOf(n, c)
}

func valuesOf(n *yamlcheck.NodeCount, c *chart.Chart) error {
	if !n.Tree(c.Values) {
		return fmt.Errorf("the values of chart %s: %w", c.Name(), yamlcheck.ErrNodes)
	}
	for _, sub := range c.Dependencies() {
		if err := valuesOf(n, sub); err != nil {
			return err
		}
	}
	return nil
}

// fewNodesIn limits the nodes of the rendered templates.
func fewNodesIn(templates map[string]string, note func(string)) error {
	n := &yamlcheck.NodeCount{Note: note}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if manifest.NotesFile(name) {
			continue
		}
		text, what := []byte(templates[name]), "what template "+name+" renders to"
		if err := n.Text(what, text); err != nil {
			return fault.Render(err)
		}
		if err := yamlcheck.Aliases(text); errors.Is(err, yamlcheck.ErrTooLarge) {
			return fault.Render(fmt.Errorf("%s: %w", what, err))
		}
	}
	return nil
}
