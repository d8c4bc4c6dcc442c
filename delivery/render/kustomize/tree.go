package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// mount is the path at which kustomize sees the root of the repository. It is not "/": a path with one ".." too many then leaves the
// repository and is refused, instead of ending at its root.
const mount = "/repository"

var errReadOnly = errors.New("a repository cannot be written to")

// tree presents a repository as kustomize's file system. Nothing is copied or written, and no path leads outside. Every kustomization file
// is checked before kustomize reads it, so kustomize loads only what the check allowed.
type tree struct {
	files fs.FS
	// over is the kustomization above the repository; nil without one.
	over    []byte
	reads   int
	bytes   int
	values  int
	spread  spread
	refused error // The first refusal. Kustomize reports such an error as a missing file, or not at all.
}

var _ filesys.FileSystem = (*tree)(nil)

// ReadFile reads a file of the repository.
func (t *tree) ReadFile(name string) ([]byte, error) {
	if t.refused != nil {
		return nil, t.refused
	}
	if name == overlayFile && t.over != nil {
		return t.over, nil
	}
	inside, err := t.inside(name)
	if err != nil {
		return nil, err
	}
	data, err := render.ReadFile(t.files, inside)
	if errors.Is(err, fs.ErrNotExist) || t.IsDir(name) {
		return nil, err // Kustomize tries several names until one exists.
	}
	if err != nil {
		return nil, t.refuse(err)
	}
	if err := t.check(inside, data); err != nil {
		return nil, t.refuse(err)
	}
	return data, nil
}

// check refuses a file that kustomize must not read. A file that is not YAML may be the data of a generator; if kustomize needs YAML, it
// reports the error itself.
func (t *tree) check(name string, data []byte) error {
	t.reads, t.bytes = t.reads+1, t.bytes+len(data)
	if err := t.withinLimits(name); err != nil {
		return err
	}
	if err := (&inside{}).check(data, deepest); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if IsFile(path.Base(name)) {
		k, err := checkKustomization(t.files, name, data)
		if err != nil {
			return err
		}
		added, err := checkTransformers(t.files, name, k)
		if err != nil {
			return err
		}
		t.spread.kustomization(data, k, t.sizeOfPatches(name, k)+added)
		t.spread.replace(t.replacements(name, k))
	} else {
		if suspicious(data) > maxBuildValues {
			return tooMany(name, "values", maxBuildValues)
		}
		objects, err := resources.SliceFromBytes(data)
		if err != nil {
			objects = nil
		}
		t.spread.file(data, objects)
		for _, o := range objects { // Kustomize needs about a kilobyte for each key and value.
			t.values += yamlcheck.CountNodes(o.YNode())
		}
	}
	if err := t.spread.check(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return t.withinLimits(name)
}

// resources parses manifests as kustomize does, so that the objects can be counted before kustomize works on them.
var resources = provider.NewDefaultDepProvider().GetResourceFactory()

func (t *tree) withinLimits(name string) error {
	for _, count := range []struct {
		of        string
		is, limit int
	}{
		{"objects", t.spread.all.count, maxBuildObjects},
		{"files", t.reads, maxBuildReads},
		{"bytes", t.bytes, maxBuildBytes},
		{"values", t.values, maxBuildValues},
	} {
		if count.is > count.limit {
			return tooMany(name, count.of, count.limit)
		}
	}
	return nil
}

func tooMany(name, of string, limit int) error {
	return fmt.Errorf("%s: a kustomize build may read %d %s, counted each time a base is used: %w", name, limit, of, render.ErrTooLarge)
}

// suspicious returns the number of keys and values of a file that seems to have too many: kustomize needs a third of a gigabyte to read a
// file full of them. For any other file it returns 0.
func suspicious(data []byte) int {
	if yamlcheck.MaxEntries(data) < maxBuildValues/2 {
		return 0
	}
	count := 0
	for document, err := range yamlcheck.Documents(data) {
		if err != nil {
			break
		}
		count += yamlcheck.CountNodes(document)
	}
	return count
}

// sizeOfPatches returns the total size of a kustomization's patch files. Kustomize reports missing ones.
func (t *tree) sizeOfPatches(name string, k *types.Kustomization) int {
	size := 0
	for _, use := range uses(&types.Kustomization{Patches: k.Patches, PatchesJson6902: k.PatchesJson6902, PatchesStrategicMerge: k.PatchesStrategicMerge}) {
		file := path.Join(path.Dir(name), use.path)
		if !fs.ValidPath(file) {
			continue
		}
		if info, err := render.Stat(t.files, file); err == nil && !info.IsDir() {
			size += int(info.Size())
		}
	}
	return size
}

// replacements returns the replacements of a kustomization, including those in separate files.
func (t *tree) replacements(name string, k *types.Kustomization) []types.Replacement {
	var all []types.Replacement
	for _, r := range k.Replacements {
		all = append(all, r.Replacement)
		file := path.Join(path.Dir(name), r.Path)
		if r.Path == "" || !fs.ValidPath(file) {
			continue
		}
		data, err := render.ReadFile(t.files, file)
		if err != nil || yamlcheck.Aliases(data) != nil {
			continue // Kustomize reports the error.
		}
		var list []types.Replacement
		var one types.Replacement
		if yaml.Unmarshal(data, &list) == nil {
			all = append(all, list...)
		} else if yaml.Unmarshal(data, &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

func (t *tree) refuse(err error) error {
	t.refused = err
	return err
}

// inside converts a path of kustomize to one of the repository.
func (t *tree) inside(name string) (string, error) {
	clean := path.Clean(path.Join("/", filepath.ToSlash(name)))
	if clean == mount {
		return ".", nil
	}
	if t.over != nil && path.Dir(clean) == above {
		return "", fs.ErrNotExist // Kustomize tries several names until one exists.
	}
	inside, ok := strings.CutPrefix(clean, mount+"/")
	if !ok {
		return "", t.refuse(fmt.Errorf("%s: outside the repository", name))
	}
	return inside, nil
}

// CleanedAbs splits a path into its folder and, if it is no folder, its file.
func (t *tree) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	if t.over != nil && path.Clean(name) == above {
		return above, "", nil
	}
	inside, err := t.inside(name)
	if err != nil {
		return "", "", err
	}
	info, err := render.Stat(t.files, inside)
	if err != nil {
		return "", "", err
	}
	full := path.Join(mount, inside)
	if info.IsDir() {
		return filesys.ConfirmedDir(full), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(full)), path.Base(full), nil
}

// IsDir reports whether the path is a folder of the repository.
func (t *tree) IsDir(name string) bool {
	_, file, err := t.CleanedAbs(name)
	return err == nil && file == ""
}

// Exists reports whether the path is in the repository.
func (t *tree) Exists(name string) bool {
	_, _, err := t.CleanedAbs(name)
	return err == nil
}

// Only kustomize's own commands need the following methods, not a build.

// Open is refused.
func (t *tree) Open(string) (filesys.File, error) { return nil, errors.ErrUnsupported }

// ReadDir is refused.
func (t *tree) ReadDir(string) ([]string, error) { return nil, errors.ErrUnsupported }

// Glob is refused.
func (t *tree) Glob(string) ([]string, error) { return nil, errors.ErrUnsupported }

// Walk is refused.
func (t *tree) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }

// Create is refused.
func (t *tree) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir is refused.
func (t *tree) Mkdir(string) error { return errReadOnly }

// MkdirAll is refused.
func (t *tree) MkdirAll(string) error { return errReadOnly }

// RemoveAll is refused.
func (t *tree) RemoveAll(string) error { return errReadOnly }

// WriteFile is refused.
func (t *tree) WriteFile(string, []byte) error { return errReadOnly }
