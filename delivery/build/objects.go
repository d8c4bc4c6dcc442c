package build

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// maxNodes bounds the mappings, lists and values in the objects of a build: each takes a few hundred bytes in this process.
const maxNodes = 500_000

var errNodes = fmt.Errorf("what is built has more than %d mappings, lists and values: %w", maxNodes, yamlcheck.ErrTooLarge)

// encoded writes objects as JSON.
func encoded(objects []*unstructured.Unstructured) ([][]byte, error) {
	var all [][]byte
	nodes := 0
	for _, o := range objects {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(o.Object); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", o.GetKind(), o.GetName(), err)
		}
		if nodes += yamlcheck.JSONNodes(text.Bytes()); nodes > maxNodes {
			return nil, errNodes
		}
		all = append(all, text.Bytes())
	}
	return all, nil
}

// decoded decodes objects after it has counted the values of all of them.
func decoded(texts [][]byte) ([]*unstructured.Unstructured, error) {
	nodes := 0
	for _, text := range texts {
		if nodes += yamlcheck.JSONNodes(text); nodes > maxNodes {
			return nil, errNodes
		}
	}
	objects := make([]*unstructured.Unstructured, 0, len(texts))
	for _, text := range texts {
		object := map[string]any{}
		if err := utiljson.Unmarshal(text, &object); err != nil {
			return nil, fmt.Errorf("reading what was built: %w", err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return objects, nil
}
