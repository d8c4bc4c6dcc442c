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

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Document is one YAML document of a manifest: an object, or the objects of a List.
type Document struct {
	// Source is the template from which the document came; empty if Helm does not say.
	Source  string
	Objects []*unstructured.Unstructured
}

// SourcePrefix begins the comment with which Helm names the template above each document.
const SourcePrefix = "# Source: "

// Parse parses a manifest. It flattens Lists, and counts everything as a List that any other reader might: everything with "items", and
// everything whose kind is a List. So no List is left for a later reader.
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

// endsComment reports characters that a comment must not contain: some YAML parsers take them for the end of the line, and the rest for
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

// dataOf converts a YAML document to JSON.
func dataOf(text []byte) ([]byte, error) {
	if err := yamlcheck.Aliases(text); err != nil {
		return nil, fault.OverLimit(err, yamlcheck.ErrTooLarge)
	}
	return yaml.YAMLToJSON(text)
}

// add adds an object, or each object of a List. Items without a kind get it from the List, as in the API server.
//
// objectset.Expand flattens only kinds that end in List. That is not enough here: Helm parses the manifest again after the check, and takes
// everything with items for a List. What is checked must be what Helm then sends.
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

// Objects returns the objects of all documents, in order.
func Objects(docs []Document) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, d := range docs {
		out = append(out, d.Objects...)
	}
	return out
}

// Size returns budget.Size of the objects of a manifest, without parsing those that cannot be large.
func Size(text string) (int64, error) {
	if len(text) <= budget.PlainTemplate {
		return int64(len(text)), nil
	}
	docs, err := Parse(text)
	if err != nil {
		return 0, fmt.Errorf("reading what was rendered: %w", err)
	}
	return budget.Size(Objects(docs)), nil
}

// reread parses the documents again from their text, because a patch may have turned an object into a List.
func reread(docs []Document) ([]Document, error) {
	text, err := Write(docs)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Sealed writes the checked documents, and makes sure that parsing the text results in the same objects.
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

// Write writes the documents in the format of Helm's manifests.
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

// IdentityOf returns the identity of an object by its kind and name.
func IdentityOf(kind schema.GroupKind, namespace, name string) Identity {
	return Identity{kind.Group, kind.Kind, namespace, name}
}

// Written returns the content of a document that is JSON in the format of this package, after comments. It returns false for any other
// document, which needs a YAML parser.
func Written(text []byte) (content any, ok bool) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("---\n"))) // The splitter leaves that line in the text.
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
