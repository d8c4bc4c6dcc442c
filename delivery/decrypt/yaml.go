package decrypt

import (
	"bytes"
	"errors"
	"io"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
)

// indent is how far SOPS indents YAML.
const indent = 4

func loadYAML(data []byte) ([]mapping, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var documents []mapping
	for {
		var node yamlv3.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) && len(documents) > 0 {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		value, err := readYAML(node.Content[0], 0)
		if err != nil {
			return nil, err
		}
		document, ok := value.(mapping)
		if !ok && value != nil {
			return nil, errForm
		}
		documents = append(documents, document)
	}
}

// readYAML turns a node into a value. SOPS writes out aliases when it encrypts, so there are none.
func readYAML(node *yamlv3.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errForm
	}
	switch node.Kind {
	case yamlv3.MappingNode:
		object := make(mapping, 0, len(node.Content)/2)
		for i := 0; i < len(node.Content); i += 2 {
			value, err := readYAML(node.Content[i+1], depth+1)
			if err != nil || node.Content[i].ShortTag() != "!!str" {
				return nil, errors.Join(errForm, err)
			}
			object = append(object, field{node.Content[i].Value, value})
		}
		return object, nil
	case yamlv3.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			value, err := readYAML(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yamlv3.ScalarNode:
		return readScalar(node)
	}
	return nil, errForm
}

func readScalar(node *yamlv3.Node) (any, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, err
	}
	switch value.(type) {
	case nil, string, int, float64, bool, time.Time:
		return value, nil
	}
	return nil, errForm // Numbers beyond 64 bits, which SOPS refuses too.
}

func emitYAML(documents []mapping) ([]byte, error) {
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(indent)
	for _, document := range documents {
		node, err := nodeOf(document)
		if err != nil {
			return nil, err
		}
		if err := encoder.Encode(node); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), encoder.Close()
}

func nodeOf(value any) (*yamlv3.Node, error) {
	node := &yamlv3.Node{}
	switch v := value.(type) {
	case mapping:
		node.Kind = yamlv3.MappingNode
		for _, f := range v {
			name, inner := &yamlv3.Node{}, (*yamlv3.Node)(nil)
			err := name.Encode(f.name)
			if err == nil {
				inner, err = nodeOf(f.value)
			}
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, name, inner)
		}
	case []any:
		node.Kind = yamlv3.SequenceNode
		for _, item := range v {
			inner, err := nodeOf(item)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, inner)
		}
	default:
		return node, node.Encode(value)
	}
	return node, nil
}
