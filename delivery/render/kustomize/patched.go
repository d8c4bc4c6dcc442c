package kustomize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resmap"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Patched applies patches to objects, as BuildWith does to a folder. A patch whose target matches no object is an error, too: the author of
// the patches did not write the objects, so it is a mistake. An error names the patch as "patches[i]".
func Patched(objects []*unstructured.Unstructured, patches []kustomize.Patch) ([]*unstructured.Unstructured, error) {
	files, names := memory{}, make([]string, 0, len(objects))
	all := resmap.NewFactory(resources)
	matched := resmap.New()
	for n, object := range objects {
		data, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s/%s: %w", object.GetKind(), object.GetName(), err)
		}
		name := fmt.Sprintf("%03d.json", n)
		files[name], names = data, append(names, name)
		one, err := all.NewResMapFromBytes(data)
		if err == nil {
			err = matched.AppendAll(one)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s/%s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for i, patch := range patches {
		if err := checkTarget(matched, patch.Target); err != nil {
			return nil, fmt.Errorf("patches[%d]: %w", i, err)
		}
	}
	return BuildWith(files, ".", names, &v1alpha1.Build{Patches: patches})
}

// checkTarget refuses a target that matches no object. A patch without a target names its object itself.
func checkTarget(objects resmap.ResMap, target *kustomize.Selector) error {
	if target == nil {
		return nil
	}
	found, err := objects.Select(*selector(target))
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if len(found) > 0 {
		return nil
	}
	var names []string
	for _, object := range objects.Resources() {
		names = append(names, object.GetKind()+"/"+object.GetName())
	}
	return fmt.Errorf("its target matches none of the objects: %q", names)
}

// memory is a file system of files without folders.
type memory map[string][]byte

// Open opens a file, or the root.
func (m memory) Open(name string) (fs.File, error) {
	data, found := m[name]
	if !found && name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memoryFile{bytes.NewReader(data), name}, nil
}

// memoryFile is an open file, and describes itself.
type memoryFile struct {
	*bytes.Reader
	name string
}

// Stat describes the file.
func (f *memoryFile) Stat() (fs.FileInfo, error) { return f, nil }

// Close does nothing.
func (f *memoryFile) Close() error { return nil }

// Name is the path of the file, or ".".
func (f *memoryFile) Name() string { return f.name }

// IsDir reports whether this is the root.
func (f *memoryFile) IsDir() bool { return f.name == "." }

// ModTime is unknown.
func (f *memoryFile) ModTime() time.Time { return time.Time{} }

// Sys returns nil.
func (f *memoryFile) Sys() any { return nil }

// Mode is that of a file that cannot be written.
func (f *memoryFile) Mode() fs.FileMode {
	if f.IsDir() {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
