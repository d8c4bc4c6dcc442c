// Package migrate reads what Flux and Argo CD deliver, from files or from a cluster, and writes it as projects and apps of kubeop. What has no
// counterpart goes into a report.
package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/cmd/kubeop/migrate/document"
)

// object is an object of Flux or Argo CD.
type object struct {
	*unstructured.Unstructured
	// parent is the Kustomization that applies the object; nil if none is known.
	parent *object
	// written are the documents that declare the object or patch it. Empty if it comes from a cluster.
	written []*document.Document
	// held are the other objects that a Kustomization applies, if they are known.
	held []*unstructured.Unstructured
	// children are the objects of Flux that a Kustomization applies.
	children []*object
	// opened: kubeop read which objects a Kustomization applies, from its folder or its inventory.
	opened bool
	// chart: the folder that an Application names contains a chart.
	chart bool
}

// name is how messages call the object.
func (o *object) name() string { return nameOf(o.GetKind(), o.GetNamespace(), o.GetName()) }

func nameOf(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return printable(kind) + " " + printable(name)
}

// printable quotes a text that is no name, such as one with line breaks.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// place returns the file and the line of a field, or those of the object if no file has the field. The nearest document to the Kustomization comes
// first.
func (o *object) place(field ...string) (string, int) {
	for _, w := range o.written {
		if line := w.Line(field...); line > 0 && len(field) > 0 {
			return w.File, line
		}
	}
	for _, w := range o.written {
		// A patch rarely says where the object comes from.
		for _, field := range []string{"chart", "chartRef", "sourceRef", "url", "source", "sources"} {
			if w.Line("spec", field) > 0 {
				return w.File, w.Line()
			}
		}
	}
	if len(o.written) > 0 {
		return o.written[0].File, o.written[0].Line()
	}
	return "", 0
}

// sameFile reports whether two objects were read from the same document.
func (o *object) sameFile(other *object) bool {
	return len(o.written) > 0 && slices.ContainsFunc(other.written, func(w *document.Document) bool { return w == o.written[0] }) &&
		o.GetName() == other.GetName() && o.GetKind() == other.GetKind()
}

// generated reports whether kustomize made a ConfigMap or Secret beside the object, with a digest of its content in its name.
func (o *object) generated(kind, name string) bool {
	return o.parent != nil && slices.ContainsFunc(o.parent.held, func(held *unstructured.Unstructured) bool {
		return held.GetKind() == kind && held.GetName() == name && digestAtEnd.MatchString(name)
	})
}

// digestAtEnd matches the digest that kustomize adds to names.
var digestAtEnd = regexp.MustCompile(`-[2456789bcdfghkmt]{10}$`)
