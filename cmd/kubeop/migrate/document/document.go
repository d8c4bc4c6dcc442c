// Package document reads the YAML documents of a folder with their lines.
package document

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Document is one document of a file.
type Document struct {
	File string
	Node *yaml.Node
}

// Line returns the line of a field; 0 if the document does not have it. Without a field it is that of the document.
func (d *Document) Line(field ...string) int { return lineOf(d.Node, field) }

// lineOf returns the line of a field; 0 if the document does not have it.
func lineOf(node *yaml.Node, field []string) int {
	if len(field) == 0 {
		return node.Line
	}
	if node.Kind != yaml.MappingNode {
		return 0
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != field[0] {
			continue
		}
		if len(field) == 1 {
			return node.Content[i].Line
		}
		return lineOf(node.Content[i+1], field[1:])
	}
	return 0
}

// Documents are the documents of all files of a folder, by kind and name of their objects.
type Documents map[string][]*Document

// Key of a document.
func Key(kind, name string) string { return kind + "/" + name }

// Read reads the manifests of a folder. Files that are not YAML of Kubernetes, such as values of charts and templates, are left out:
// what kustomize or Flux uses is read again, and its errors are reported then.
func Read(files fs.FS) (Documents, error) {
	found := Documents{}
	err := render.Walk(files, ".", func(name string, entry fs.DirEntry) error {
		if entry.IsDir() || !entry.Type().IsRegular() || !manifests.IsFile(name) {
			return nil
		}
		nodes, err := Nodes(files, name)
		if err != nil {
			return nil
		}
		for _, node := range nodes {
			kind, named := Scalar(node, "kind"), Scalar(node, "metadata", "name")
			if kind != "" && named != "" {
				found[Key(kind, named)] = append(found[Key(kind, named)], &Document{File: name, Node: node})
			}
		}
		return nil
	})
	return found, err
}

// Nodes parses a file within the limits of files of tenants.
func Nodes(files fs.FS, name string) ([]*yaml.Node, error) {
	data, err := render.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	if err := yamlcheck.Entries(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := yamlcheck.Aliases(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var nodes []*yaml.Node
	for document, err := range yamlcheck.Documents(data) {
		if err != nil {
			if at, why, ok := yamlcheck.Locate(data, err); ok {
				return nil, fmt.Errorf("%s: broken YAML: %s", at.In(name), why)
			}
			return nil, fmt.Errorf("%s: broken YAML: %w", name, err)
		}
		if len(document.Content) == 1 && document.Content[0].Kind == yaml.MappingNode {
			nodes = append(nodes, document.Content[0])
		}
	}
	return nodes, nil
}

// Scalar returns a text in a document; "" if there is none.
func Scalar(node *yaml.Node, field ...string) string {
	for _, name := range field {
		var next *yaml.Node
		for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
			if node.Content[i].Value == name {
				next = node.Content[i+1]
			}
		}
		if next == nil {
			return ""
		}
		node = next
	}
	if node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

// Of returns the documents of an object, those in the folder that declares it first.
func (d Documents) Of(o *unstructured.Unstructured, folder string) []*Document {
	var near, far []*Document
	for _, w := range d[Key(o.GetKind(), o.GetName())] {
		if folder == "." || strings.HasPrefix(w.File, folder+"/") || path.Dir(w.File) == folder {
			near = append(near, w)
		} else {
			far = append(far, w)
		}
	}
	return append(near, far...)
}

// Decode returns the object that a document declares.
func Decode(node *yaml.Node) (*unstructured.Unstructured, error) {
	text, err := yaml.Marshal(node)
	if err != nil {
		return nil, fmt.Errorf("writing the document as YAML: %w", err)
	}
	data, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("converting the document to JSON: %w", err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("decoding the document: %w", err)
	}
	return &unstructured.Unstructured{Object: object}, nil
}
