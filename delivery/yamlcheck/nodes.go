package yamlcheck

import "fmt"

// MaxNodes bounds the mappings, lists and scalars of a chart's own YAML files, of its values with those of its subcharts, and of what
// it renders: each takes a few hundred bytes where it is read. What fits into a release's record has far fewer.
const MaxNodes = 500_000

// ErrNodes is an ErrTooLarge for what has more than MaxNodes.
var ErrNodes error = tooManyNodes{}

type tooManyNodes struct{}

func (tooManyNodes) Error() string {
	return fmt.Sprintf("there are more than %d mappings, lists and values in it", MaxNodes)
}
func (tooManyNodes) Unwrap() error { return ErrTooLarge }

// NodeCount adds up nodes of YAML.
type NodeCount struct {
	// Note is called before a text is read for its nodes, with what is done.
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

// Text counts the nodes of YAML text, at little cost where there cannot be many. Whether such text is YAML at all is for its reader
// to say; what may have many nodes and cannot be counted is refused here.
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
