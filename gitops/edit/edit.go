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

// File is the text of a YAML file with what it holds, so that several edits parse it once each.
type File struct {
	text   []byte
	object any
}

// Read parses the text of a file.
func Read(text []byte) (*File, error) {
	object, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &File{text, object}, nil
}

// Text returns the text of the file. It may not be changed.
func (f *File) Text() []byte { return f.text }

// Get returns the value of a field, as JSON has it, and whether the file has the field. Without a field it is the whole object.
func (f *File) Get(field Path) (value any, has bool) { return field.get(f.object) }

// Get returns the value of a field of a text as File.Get does.
func Get(data []byte, field Path) (value any, has bool, err error) {
	f, err := Read(data)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", field, err)
	}
	value, has = f.Get(field)
	return value, has, nil
}

// Same reports whether a value that Get returned is the value that Set would write.
func Same(got, wanted any) bool {
	wanted, err := Normal(wanted)
	return err == nil && reflect.DeepEqual(got, wanted)
}

// Set returns the file with a field set to a value of JSON: nil, bool, a number, string, []any or map[string]any. It creates the objects around
// the field that are not there. A float without a fraction is written as an integer. An index that equals the length of a list appends to it.
func (f *File) Set(field Path, value any) (*File, error) {
	value, err := Normal(value)
	if err == nil {
		f, err = f.set(field, value)
	}
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", field, err)
	}
	return f, nil
}

func (f *File) set(field Path, value any) (*File, error) {
	return f.change(func(root *yaml.Node, t text) (splice, error) { return set(root, t, field, value) },
		func(before any) (any, error) { return field.set(before, value) })
}

// Set returns the text with a field set as File.Set does.
func Set(data []byte, field Path, value any) ([]byte, error) {
	f, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", field, err)
	}
	return textOf(f.Set(field, value))
}

// Replace is Set for any value that is there: an object or list of several lines is written anew, without the comments within it.
func (f *File) Replace(field Path, value any) (*File, error) {
	wanted, err := Normal(value)
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", field, err)
	}
	got, err := f.set(field, wanted)
	if err == nil {
		return got, nil
	}
	got, again := f.change(func(root *yaml.Node, t text) (splice, error) {
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
		return nil, fmt.Errorf("setting %s: %w", field, err)
	}
	return got, nil
}

// Replace returns the text with a field replaced as File.Replace does.
func Replace(data []byte, field Path, value any) ([]byte, error) {
	f, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", field, err)
	}
	return textOf(f.Replace(field, value))
}

// Delete returns the file without a field. Comments above the field stay, those among the fields that it holds do not. A field that is not there is ErrNoField.
func (f *File) Delete(field Path) (*File, error) {
	got, err := f.change(func(root *yaml.Node, t text) (splice, error) { return remove(root, t, field) }, field.remove)
	if err != nil {
		return nil, fmt.Errorf("deleting %s: %w", field, err)
	}
	return got, nil
}

// Delete returns the text without a field as File.Delete does.
func Delete(data []byte, field Path) ([]byte, error) {
	f, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("deleting %s: %w", field, err)
	}
	return textOf(f.Delete(field))
}

func textOf(f *File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return bytes.Clone(f.text), nil
}

// splice is the one range of the text that an edit replaces.
type splice struct {
	start, end int
	text       string
}

// change edits the text, and compares the result with the wanted value.
func (f *File) change(edit func(*yaml.Node, text) (splice, error), wanted func(any) (any, error)) (*File, error) {
	want, err := wanted(f.object)
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(f.object, want) {
		return f, nil
	}
	t, err := newText(f.text)
	if err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(f.text, &n); err != nil {
		return nil, fmt.Errorf("parsing the file: %w", err)
	}
	if n.Kind != yaml.DocumentNode || n.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the file begins with an empty document; remove it")
	}
	s, err := edit(n.Content[0], t)
	if err != nil {
		return nil, err
	}
	after, err := f.spliced(s, want)
	if err != nil && s.end == len(f.text) { // A text of lines at the end of a file needs the line break behind it.
		s.text += t.eol
		after, err = f.spliced(s, want)
	}
	return after, err
}

// spliced returns the file with one range replaced, if it holds what is wanted.
func (f *File) spliced(s splice, want any) (*File, error) {
	result := append(append(bytes.Clone(f.text[:s.start]), s.text...), f.text[s.end:]...)
	if len(result) > document.MaxSize {
		return nil, fmt.Errorf("the file would be larger than %d KiB", document.MaxSize>>10)
	}
	after, err := Read(result)
	if err != nil || !reflect.DeepEqual(after.object, want) {
		return nil, errors.New("the field is written in a way that cannot be edited without changing others, such as by an anchor; edit the file by hand")
	}
	return after, nil
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

// Normal returns a value as Get returns it once it is written. It costs as much as writing and reading the value, so compare normal values with reflect.DeepEqual.
func Normal(value any) (any, error) {
	data, err := yaml.Marshal(map[string]any{"value": quoted(value, false)})
	if err != nil {
		return nil, fmt.Errorf("writing the value: %w", err)
	}
	if len(data) > document.MaxSize {
		return nil, fmt.Errorf("the value is larger than %d KiB", document.MaxSize>>10)
	}
	object, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("the value: %w", err)
	}
	return object.(map[string]any)["value"], nil
}
