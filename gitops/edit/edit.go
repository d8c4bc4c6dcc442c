// Package edit changes one field in the text of a YAML file. It keeps all other bytes: comments, order, indentation, quotes, line breaks.
//
// Each edit replaces one range of the text. The result is parsed again and compared with the value that was wanted, so that an edit that this
// package does not understand is refused and never changes another field.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/gitops/document"
)

// ErrNoField is in the chain of errors of fields that the file does not have.
var ErrNoField = errors.New("the file has no such field")

// Get returns the value of a field, as JSON has it, and whether the file has the field.
func Get(data []byte, field Path) (value any, has bool, err error) {
	object, err := parse(data)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", field, err)
	}
	value, has = field.get(object)
	return value, has, nil
}

// Same reports whether a value that Get returned is the value that Set would write.
func Same(got, wanted any) bool {
	wanted, err := normal(wanted)
	return err == nil && reflect.DeepEqual(got, wanted)
}

// Set returns the text with a field set to a value of JSON: nil, bool, a number, string, []any or map[string]any. It creates the objects around
// the field that are not there. A float without a fraction is written as an integer. An index that equals the length of a list appends to it.
func Set(data []byte, field Path, value any) ([]byte, error) {
	value, err := normal(value)
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", field, err)
	}
	got, err := change(data, func(root *yaml.Node, t text) (splice, error) { return set(root, t, field, value) },
		func(before any) (any, error) { return field.set(before, value) })
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", field, err)
	}
	return got, nil
}

// Replace is Set for any value that is there: an object or list of several lines is written anew, without the comments within it.
func Replace(data []byte, field Path, value any) ([]byte, error) {
	got, err := Set(data, field, value)
	if err == nil {
		return got, nil
	}
	wanted, unusable := normal(value)
	if unusable != nil {
		return nil, err
	}
	got, again := change(data, func(root *yaml.Node, t text) (splice, error) {
		at, err := find(root, field)
		if err == nil && (at.index < 0 || len(at.rest) > 1) {
			err = ErrNoField
		}
		if err != nil {
			return splice{}, err
		}
		return rewrite(t, at, wanted)
	}, func(before any) (any, error) { return field.set(before, wanted) })
	if again != nil {
		return nil, err
	}
	return got, nil
}

// Delete returns the text without a field. Comments above the field stay. A field that is not there is ErrNoField.
func Delete(data []byte, field Path) ([]byte, error) {
	got, err := change(data, func(root *yaml.Node, t text) (splice, error) { return remove(root, t, field) }, field.remove)
	if err != nil {
		return nil, fmt.Errorf("deleting %s: %w", field, err)
	}
	return got, nil
}

// splice is the one range of the text that an edit replaces.
type splice struct {
	start, end int
	text       string
}

// change edits the text, and compares the result with the wanted value.
func change(data []byte, edit func(*yaml.Node, text) (splice, error), wanted func(any) (any, error)) ([]byte, error) {
	before, err := parse(data)
	if err != nil {
		return nil, err
	}
	want, err := wanted(before)
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(before, want) {
		return bytes.Clone(data), nil
	}
	t, err := newText(data)
	if err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("parsing the file: %w", err)
	}
	if n.Kind != yaml.DocumentNode || n.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the file begins with an empty document; remove it")
	}
	s, err := edit(n.Content[0], t)
	if err != nil {
		return nil, err
	}
	result := append(append(bytes.Clone(data[:s.start]), s.text...), data[s.end:]...)
	after, err := parse(result)
	if err != nil || !reflect.DeepEqual(after, want) {
		return nil, errors.New("the field is written in a way that cannot be edited without changing others, such as by an anchor; edit the file by hand")
	}
	return result, nil
}

// parse returns the value of a file, which must hold one document without errors.
func parse(data []byte) (any, error) {
	if len(data) > document.MaxSize {
		return nil, fmt.Errorf("the file is larger than %d KiB", document.MaxSize>>10)
	}
	d := document.Parse("", data)
	if len(d.Findings) > 0 {
		f := d.Findings[0]
		if f.Line == 0 { // The finding is about the file as a whole.
			return nil, errors.New(f.Why)
		}
		return nil, fmt.Errorf("line %d: %s", f.Line, f.Why)
	}
	return d.Value, nil
}

// normal returns the value as document.Parse reads it.
func normal(value any) (any, error) {
	data, err := yaml.Marshal(map[string]any{"value": value})
	if err != nil {
		return nil, fmt.Errorf("writing the value: %w", err)
	}
	object, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("the value: %w", err)
	}
	return object.(map[string]any)["value"], nil
}
