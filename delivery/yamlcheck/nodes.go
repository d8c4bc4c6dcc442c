package yamlcheck

import "fmt"

// MaxNodes limits the mappings, lists and scalars of a chart's own YAML files, of its values with those of its subcharts, and of what it
// renders: each takes a few hundred bytes when it is parsed. Charts that fit into a release record have far fewer.
const MaxNodes = 500_000

// ErrNodes is the ErrTooLarge for more than MaxNodes nodes.
var ErrNodes error = tooManyNodes{}

type tooManyNodes struct{}

func (tooManyNodes) Error() string {
	return fmt.Sprintf("there are more than %d mappings, lists and values in it", MaxNodes)
}
func (tooManyNodes) Unwrap() error { return ErrTooLarge }

// NodeCount counts nodes of YAML.
type NodeCount struct {
	// Note is called before a text is parsed, with a description of that step.
	Note func(string)
	Sum  int
}

// Tree counts parsed values, and reports whether there are at most MaxNodes.
func (n *NodeCount) Tree(value any) bool {
	if n.Sum++; n.Sum > MaxNodes {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if !n.Tree(inner) {
				return false
			}
		}
	case []any:
		for _, inner := range v {
			if !n.Tree(inner) {
				return false
			}
		}
	}
	return true
}

// Text counts the nodes of YAML text, quickly if there cannot be many. It does not report invalid YAML, but refuses a text that may have
// many nodes and cannot be parsed.
func (n *NodeCount) Text(name string, text []byte) error {
	atMost := mostNodes(text)
	if n.Sum+atMost <= MaxNodes {
		n.Sum += atMost
		return nil
	}
	n.Note("reading " + name)
	for document, err := range Documents(text) {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if n.Sum += CountNodes(document); n.Sum > MaxNodes {
			return fmt.Errorf("%s: %w", name, ErrNodes)
		}
	}
	return nil
}

// mostNodes returns an upper bound of the number of nodes in a text: each node but the first of a document follows one of these characters.
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
