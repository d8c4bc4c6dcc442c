package document

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
)

// MaxSize is the most a file may hold, in bytes. An object beyond 1.5 MiB does not fit into etcd.
const MaxSize = 1 << 20

// Parse reads a file's text. The caller has checked that it is not larger than MaxSize.
func Parse(file string, data []byte) *Document {
	d := &Document{File: file, Size: len(data)}
	d.parse(data)
	return d
}

func (d *Document) parse(data []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			d.broken(err, data)
			return
		}
		if empty(&n) {
			continue
		}
		if d.root != nil {
			d.Add(code.SeveralDocuments, yamlcheck.PositionOf(n.Content[0]), "a second document begins here; each file holds exactly one")
			return
		}
		d.root = n.Content[0]
	}
	if d.root == nil {
		d.Add(code.EmptyFile, yamlcheck.Position{}, "the file is empty")
		return
	}
	if d.root.Kind != yaml.MappingNode {
		d.Add(code.NotAnObject, yamlcheck.PositionOf(d.root), "the file is not an object; it must hold fields such as \"kind: …\"")
		return
	}
	e := expansion{Document: d}
	d.Value, _ = e.expand(d.root, 0).(map[string]any)
}

// empty reports whether a document between two markers is empty, as after a trailing "---".
func empty(n *yaml.Node) bool {
	return len(n.Content) == 0 || (n.Content[0].Kind == yaml.ScalarNode && n.Content[0].ShortTag() == "!!null" &&
		n.Content[0].Value == "")
}
