package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

// maxNodes bounds the mappings, lists and scalars of a chart's own YAML files, of its values with those of its subcharts, and of what
// it renders: each takes a few hundred bytes where it is read. What fits into a release's record has far fewer.
const maxNodes = 500_000

var errNodes = fault.TooLarge(fmt.Sprintf("there are more than %d mappings, lists and values in it", maxNodes))

// nodeCount adds up nodes of YAML.
type nodeCount struct {
	note func(string)
	sum  int
}

// fewNodes bounds what is left of a chart when the values have chosen its subcharts.
func fewNodes(c *chart.Chart, note func(string)) error {
	n := &nodeCount{note: note}
	for _, crd := range c.CRDObjects() {
		if err := n.text(crd.Filename, crd.File.Data); err != nil {
			return err
		}
	}
	n.sum = 0
	return n.values(c)
}

func (n *nodeCount) values(c *chart.Chart) error {
	if !n.tree(c.Values) {
		return fmt.Errorf("the values of chart %s: %w", c.Name(), errNodes)
	}
	for _, sub := range c.Dependencies() {
		if err := n.values(sub); err != nil {
			return err
		}
	}
	return nil
}

// tree counts parsed values.
func (n *nodeCount) tree(value any) bool {
	if n.sum++; n.sum > maxNodes {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if !n.tree(inner) {
				return false
			}
		}
	case []any:
		for _, inner := range v {
			if !n.tree(inner) {
				return false
			}
		}
	}
	return true
}

// fewNodesIn bounds what was rendered.
func fewNodesIn(templates map[string]string, note func(string)) error {
	n := &nodeCount{note: note}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if notesFile(name) {
			continue
		}
		text, what := []byte(templates[name]), "what template "+name+" renders to"
		if err := n.text(what, text); err != nil {
			return fault.Render(err)
		}
		if err := notBlownUp(text); errors.Is(err, fault.ErrTooLarge) {
			return fault.Render(fmt.Errorf("%s: %w", what, err))
		}
	}
	return nil
}

// text counts the nodes of YAML text, at little cost where there cannot be many. Whether such text is YAML at all is for its reader
// to say; what may have many nodes and cannot be counted is refused here.
func (n *nodeCount) text(name string, text []byte) error {
	atMost := mostNodes(text)
	if n.sum+atMost <= maxNodes {
		n.sum += atMost
		return nil
	}
	n.note("reading " + name)
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for n.sum <= maxNodes {
		var node yamlv3.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n.sum += countNodes(&node)
	}
	return fmt.Errorf("%s: %w", name, errNodes)
}

// mostNodes is how many nodes text can be: each but the first of a document follows one of these.
func mostNodes(text []byte) int {
	most := 1
	for _, b := range text {
		switch b {
		case '\n', ',', ':', '[', '{', '-', '?':
			most++
		}
	}
	return most
}

func countNodes(node *yamlv3.Node) int {
	sum := 1
	for _, inner := range node.Content {
		sum += countNodes(inner)
	}
	return sum
}
