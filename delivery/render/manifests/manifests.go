// Package manifests reads objects that are written as plain manifests, in the files of a folder or in an App itself.
package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/objectset"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Folder reads the objects of every .yaml, .yml and .json file of a folder, at any depth, in the order of the paths. It skips files and
// folders with names that start with a dot. The limits are checked before a file is parsed. Links and submodules are refused, and so is an
// object that occurs twice. Errors name the file and line as "file:line: why", up to 20 of them at once. An exceeded limit is a
// *budget.Exceeded or a render.ErrTooLarge.
func Folder(files fs.FS, folder string, limits budget.App) ([]*unstructured.Unstructured, error) {
	found := newReader(limits)
	err := render.Walk(files, folder, func(name string, entry fs.DirEntry) error { return found.file(files, name, entry) })
	if err != nil {
		return nil, err
	}
	return found.Result()
}

// Files lists the manifests of a folder, in the order of their paths.
func Files(files fs.FS, folder string) ([]string, error) {
	var names []string
	err := render.Walk(files, folder, func(name string, entry fs.DirEntry) error {
		if IsFile(name) && !entry.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// IsFile reports whether a file of that name is a manifest.
func IsFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// reader reads manifests within the limits of an app.
type reader struct {
	objectset.Set
	limits budget.App
	taken  budget.Weight // of the text that was read
	full   bool          // A limit was exceeded: nothing more is read.
}

// newReader uses the default limits if none are set.
func newReader(limits budget.App) *reader {
	if limits == (budget.App{}) {
		limits = budget.Default().App
	}
	return &reader{limits: limits}
}

// Result returns the objects, or else all problems as one error.
func (r *reader) Result() ([]*unstructured.Unstructured, error) {
	if over := r.limits.TooMany(r.Len()); over != nil {
		r.Fail(over)
	}
	return r.Set.Result()
}

// file adds the objects of one file of a folder. It stops the render.Walk if reading on would use too much memory.
func (r *reader) file(files fs.FS, name string, entry fs.DirEntry) error {
	if r.full || r.limits.TooMany(r.Len()) != nil || r.Overfull() {
		return fs.SkipAll
	}
	if entry.IsDir() {
		return nil
	}
	if !entry.Type().IsRegular() {
		r.Fail(render.NotPlain(name, entry.Type()))
		return nil
	}
	if !IsFile(name) {
		return nil
	}
	data, err := render.ReadFile(files, name)
	if err != nil {
		r.Fail(err)
		return nil
	}
	r.read(name, data)
	return nil
}

func (r *reader) read(name string, data []byte) {
	if !r.take(name, data) {
		return
	}
	if path.Ext(name) == ".json" {
		value, err := decodeJSON(data)
		if err != nil {
			r.Refuse(name+":1", err)
			return
		}
		r.Add(name+":1", value)
		return
	}
	for _, doc := range yamlcheck.Split(data) {
		place := fmt.Sprintf("%s:%d", name, doc.Line)
		value, err := doc.Decode()
		if err != nil {
			r.refuse(name, place, err)
			continue
		}
		r.Add(place, value)
	}
}

// refuse reports a document that cannot be decoded, at the line that is wrong if it is known.
func (r *reader) refuse(name, place string, err error) {
	if broken := (*yamlcheck.Broken)(nil); errors.As(err, &broken) {
		place, err = broken.In(name), errors.New("broken YAML: "+broken.Why)
	}
	r.Refuse(place, err)
}

// take counts the text of a file before it is parsed, and refuses the file if a limit is exceeded. After that, nothing more is read.
func (r *reader) take(place string, data []byte) bool {
	r.taken.Bytes += int64(len(data))
	r.taken.Values += yamlcheck.MaxValues(data)
	over := r.limits.Over(r.taken, "the manifests of the app up to this file")
	if over == nil {
		return true
	}
	r.full = true
	r.Refuse(place, over)
	return false
}

// decodeJSON reads a JSON file, which holds one value.
func decodeJSON(data []byte) (any, error) {
	var value any
	repeated, err := kjson.UnmarshalStrict(data, &value)
	if err != nil {
		return nil, err
	}
	return value, errors.Join(repeated...)
}
