package kustomize

import (
	"bytes"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// deepest is how many levels of texts within texts are checked: a patch in a kustomization, a text that the patch sets, and a text in that
// which a replacement changes.
const deepest = 3

// maxTexts and maxTextBytes bound the texts of one file that contain both characters of aliases, because checking each takes a parser.
const (
	maxTexts     = 10_000
	maxTextBytes = 16 << 20
)

// inside is the check of one file.
type inside struct{ texts, bytes int }

// check refuses a file with too many aliased values, including those of YAML in texts within it: patches are such texts, and replacements
// change any text that can be read as YAML. A file that is not YAML is no error here, because it may be data.
func (i *inside) check(data []byte, depth int) error {
	if bytes.IndexByte(data, '&') < 0 || bytes.IndexByte(data, '*') < 0 {
		return nil
	}
	i.texts, i.bytes = i.texts+1, i.bytes+len(data)
	if i.texts > maxTexts || i.bytes > maxTextBytes {
		return fmt.Errorf("more than %d texts within it, or %d bytes of them, look like YAML with aliases: %w", maxTexts, maxTextBytes, render.ErrTooLarge)
	}
	found, err := texts(data)
	if err != nil || depth == 0 {
		return err
	}
	for _, text := range found {
		if err := i.check([]byte(text), depth-1); err != nil {
			return err
		}
		// A generator's literal, or a line of its variables.
		if _, value, ok := strings.Cut(text, "="); ok {
			if err := i.check([]byte(value), depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// texts returns the scalars of YAML, or the lines of any other file, that may be YAML with aliases themselves. YAML with too many aliased
// values is a render.ErrTooLarge. Parsing is the cost of a check, so the file is parsed once.
func texts(data []byte) ([]string, error) {
	var found []string
	for document, err := range yamlcheck.Documents(data) {
		if err != nil {
			return append(found, strings.Split(string(data), "\n")...), nil
		}
		if err := yamlcheck.Document(document); err != nil {
			return nil, err
		}
		found = appendTexts(found, document)
	}
	return found, nil
}

func appendTexts(found []string, node *yamlv3.Node) []string {
	if node.Kind == yamlv3.ScalarNode && strings.Contains(node.Value, "&") && strings.Contains(node.Value, "*") {
		found = append(found, node.Value)
	}
	for _, child := range node.Content {
		found = appendTexts(found, child)
	}
	return found
}
