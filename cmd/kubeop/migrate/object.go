// Package migrate reads what Flux and Argo CD deliver, from files or from a cluster, and writes it as projects and apps of kubeop. What has no
// counterpart goes into a report.
package migrate

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// object is an object of Flux or Argo CD.
type object struct {
	*unstructured.Unstructured
	// parent is the Kustomization that applies the object; nil if none is known.
	parent *object
	// written are the documents that declare the object or patch it. Empty if it comes from a cluster.
	written []*written
	// held are the other objects that a Kustomization applies, if they are known.
	held []*unstructured.Unstructured
	// children are the objects of Flux that a Kustomization applies.
	children []*object
	// opened: what a Kustomization applies is known, from its folder or its inventory.
	opened bool
}

// written is one document of a file.
type written struct {
	file string
	node *yaml.Node
}

// name is how messages call the object.
func (o *object) name() string { return nameOf(o.GetKind(), o.GetNamespace(), o.GetName()) }

func nameOf(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + printable(name)
}

// printable quotes a text that is no name, such as one with line breaks.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// place returns the file and the line of a field, or those of the object if no file has the field. The nearest document to the Kustomization comes
// first.
func (o *object) place(field ...string) (string, int) {
	for _, w := range o.written {
		if line := lineOf(w.node, field); line > 0 && len(field) > 0 {
			return w.file, line
		}
	}
	for _, w := range o.written {
		// A patch rarely says where the object comes from.
		for _, field := range []string{"chart", "chartRef", "sourceRef", "url", "source", "sources"} {
			if lineOf(w.node, []string{"spec", field}) > 0 {
				return w.file, w.node.Line
			}
		}
	}
	if len(o.written) > 0 {
		return o.written[0].file, o.written[0].node.Line
	}
	return "", 0
}

// generated reports whether kustomize made a ConfigMap or Secret beside the object, with a digest of its content in its name.
func (o *object) generated(kind, name string) bool {
	return o.parent != nil && slices.ContainsFunc(o.parent.held, func(held *unstructured.Unstructured) bool {
		return held.GetKind() == kind && held.GetName() == name && digestAtEnd.MatchString(name)
	})
}

// digestAtEnd matches the digest that kustomize adds to names.
var digestAtEnd = regexp.MustCompile(`-[2456789bcdfghkmt]{10}$`)

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

// documents are the documents of all files of a folder, by kind and name of their objects.
type documents map[string][]*written

// key of a document.
func key(kind, name string) string { return kind + "/" + name }

// readDocuments reads the manifests of a folder. Files that are not YAML of Kubernetes, such as values of charts and templates, are left out:
// what kustomize or Flux uses is read again, and its errors are reported then.
func readDocuments(files fs.FS) (documents, error) {
	found := documents{}
	err := render.Walk(files, ".", func(name string, entry fs.DirEntry) error {
		if entry.IsDir() || !entry.Type().IsRegular() || !manifests.IsFile(name) {
			return nil
		}
		nodes, err := nodesOf(files, name)
		if err != nil {
			return nil
		}
		for _, node := range nodes {
			kind, named := scalar(node, "kind"), scalar(node, "metadata", "name")
			if kind != "" && named != "" {
				found[key(kind, named)] = append(found[key(kind, named)], &written{file: name, node: node})
			}
		}
		return nil
	})
	return found, err
}

// nodesOf parses a file within the limits of files of tenants.
func nodesOf(files fs.FS, name string) ([]*yaml.Node, error) {
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

// scalar returns a text in a document; "" if there is none.
func scalar(node *yaml.Node, field ...string) string {
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

// of returns the documents of an object, those in the folder that declares it first.
func (d documents) of(o *unstructured.Unstructured, folder string) []*written {
	var near, far []*written
	for _, w := range d[key(o.GetKind(), o.GetName())] {
		if folder == "." || strings.HasPrefix(w.file, folder+"/") || path.Dir(w.file) == folder {
			near = append(near, w)
		} else {
			far = append(far, w)
		}
	}
	return append(near, far...)
}

// decode returns the object that a document declares.
func decode(node *yaml.Node) (*unstructured.Unstructured, error) {
	text, err := yaml.Marshal(node)
	if err != nil {
		return nil, err
	}
	data, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	object := values{}
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: object}, nil
}
