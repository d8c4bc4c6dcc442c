package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Document is one YAML document of a manifest: an object, or the objects of a List.
type Document struct {
	// Source is the template it came from; empty when Helm did not say.
	Source  string
	Objects []*unstructured.Unstructured
}

// SourcePrefix is how Helm names the template above each document.
const SourcePrefix = "# Source: "

// Parse reads a manifest. Lists are flattened with the widest meaning that any reader has of them, so that none is left
// for the next: whatever has "items" is one, and whatever is of the kind List.
func Parse(manifest string) ([]Document, error) {
	var out []Document
	in := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		text, err := in.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		d := Document{Source: sourceOf(string(text))}
		if err := d.read(text); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name(), err)
		}
		if len(d.Objects) > 0 {
			out = append(out, d)
		}
	}
}

func (d *Document) name() string {
	if d.Source == "" {
		return "a manifest"
	}
	return d.Source
}

func sourceOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "-\r\n\t "), "\n")
	source, ok := strings.CutPrefix(line, SourcePrefix)
	if source = strings.TrimSpace(source); !ok || strings.ContainsFunc(source, endsComment) {
		return ""
	}
	return source
}

// endsComment reports characters that a comment must not contain: some YAML readers take them for the end of the line, and the rest for
// content.
func endsComment(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

func (d *Document) read(text []byte) error {
	content, ok := Written(text)
	if !ok {
		data, err := dataOf(text)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &content); err != nil {
			return err
		}
	}
	if content == nil {
		return nil
	}
	object, ok := content.(map[string]any)
	if !ok {
		return errors.New("it is not an object")
	}
	return d.add(object)
}

// dataOf is a document of YAML as JSON.
func dataOf(text []byte) ([]byte, error) {
	if err := yamlcheck.Aliases(text); err != nil {
		return nil, fault.OverLimit(err, yamlcheck.ErrTooLarge)
	}
	return yaml.YAMLToJSON(text)
}

// add takes an object, or each object of a List; items without a kind get theirs from the List, as the API server does it.
//
// objectset.Expand takes only what has a kind that ends in List. That is not enough here, because Helm reads the manifest again after it was
// checked and takes whatever has items for a List: what is checked has to be what Helm then sends.
func (d *Document) add(object map[string]any) error {
	u := &unstructured.Unstructured{Object: object}
	items, isList := object["items"]
	if !isList && u.GetKind() == "List" {
		return nil
	}
	if !isList {
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return errors.New("an object has no kind or no apiVersion")
		}
		d.Objects = append(d.Objects, u)
		return nil
	}
	list, ok := items.([]any)
	if !ok {
		return fmt.Errorf("the items of a %s are not a list", u.GetKind())
	}
	for _, item := range list {
		inner, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("an item of a %s is not an object", u.GetKind())
		}
		if inner["kind"] == nil && inner["apiVersion"] == nil {
			inner["kind"], inner["apiVersion"] = strings.TrimSuffix(u.GetKind(), "List"), u.GetAPIVersion()
		}
		if err := d.add(inner); err != nil {
			return err
		}
	}
	return nil
}

// Objects are those of all documents, in order.
func Objects(docs []Document) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, d := range docs {
		out = append(out, d.Objects...)
	}
	return out
}

// reread reads the documents from their text: a patch may have made a List of an object.
func reread(docs []Document) ([]Document, error) {
	text, err := Write(docs)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Sealed writes what was checked and makes sure that its readers find the same objects in the text.
func Sealed(docs []Document) (string, error) {
	text, err := Write(docs)
	if err != nil {
		return "", err
	}
	again, err := Parse(text)
	if err != nil {
		return "", err
	}
	same := func(a, b *unstructured.Unstructured) bool { return reflect.DeepEqual(a.Object, b.Object) }
	if !slices.EqualFunc(Objects(docs), Objects(again), same) {
		return "", fault.Render(errors.New("the manifests mean something else when they are read again"))
	}
	return text, nil
}

// Write is the manifest again, in the form Helm writes it.
func Write(docs []Document) (string, error) {
	var b strings.Builder
	for _, d := range docs {
		for _, o := range d.Objects {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				return "", fmt.Errorf("%s: %w", d.name(), err)
			}
			b.WriteString("---\n")
			if d.Source != "" {
				b.WriteString(SourcePrefix + d.Source + "\n")
			}
			b.Write(text)
		}
	}
	return b.String(), nil
}

// Identity distinguishes objects of a namespace, regardless of their version.
type Identity struct{ group, kind, namespace, name string }

// Identify returns the identity of an object of a manifest, which may leave its namespace out.
func Identify(u *unstructured.Unstructured, namespace string) Identity {
	return IdentityOf(u.GroupVersionKind().GroupKind(), cmp.Or(u.GetNamespace(), namespace), u.GetName())
}

// IdentityOf returns the identity of what is named so.
func IdentityOf(kind schema.GroupKind, namespace, name string) Identity {
	return Identity{kind.Group, kind.Kind, namespace, name}
}

// Written is what a document holds that is JSON in the one form in which this package writes it, below comments. Any other is for a reader
// of YAML.
func Written(text []byte) (content any, ok bool) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("---\n"))) // The reader of documents leaves the first line there.
	for bytes.HasPrefix(text, []byte("#")) {
		comment, below, _ := bytes.Cut(text, []byte("\n"))
		if bytes.ContainsFunc(comment, endsComment) {
			return nil, false
		}
		text = bytes.TrimSpace(below)
	}
	if !bytes.HasPrefix(text, []byte("{")) || json.Unmarshal(text, &content) != nil {
		return nil, false
	}
	again, err := json.Marshal(content)
	return content, err == nil && bytes.Equal(again, text)
}
