package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// mount is where kustomize sees the root of the repository. It is not "/", so that one ".." too many leaves the
// repository, and is refused, instead of ending at its root.
const mount = "/repository"

var errReadOnly = errors.New("a repository cannot be written to")

// tree is a repository as kustomize's file system. Nothing is copied or written, and no path leads outside. Every
// kustomization file is checked before kustomize sees it, so whatever kustomize loads next was allowed here.
type tree struct {
	files   fs.FS
	reads   int
	bytes   int
	objects int
	refused error // the first refusal; kustomize itself reports such an error as a missing file, or not at all
}

var _ filesys.FileSystem = (*tree)(nil)

// ReadFile reads a file of the repository.
func (t *tree) ReadFile(name string) ([]byte, error) {
	if t.refused != nil {
		return nil, t.refused
	}
	inside, err := t.inside(name)
	if err != nil {
		return nil, err
	}
	data, err := readFile(t.files, inside)
	if errors.Is(err, fs.ErrNotExist) || t.IsDir(name) {
		return nil, err // kustomize tries names until one is there
	}
	if err != nil {
		return nil, t.refuse(err)
	}
	if err := t.check(inside, data); err != nil {
		return nil, t.refuse(err)
	}
	return data, nil
}

// check refuses a file that kustomize must not see. What is no YAML may be data of a generator; where kustomize wants
// YAML, it says itself what is wrong.
func (t *tree) check(name string, data []byte) error {
	t.reads, t.bytes = t.reads+1, t.bytes+len(data)
	if err := checkAliases(data); errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%s: %w", name, err)
	}
	if isKustomization(path.Base(name)) {
		generated, err := checkKustomization(t.files, name, data)
		if err != nil {
			return err
		}
		t.objects += generated
	} else if objects, err := resources.SliceFromBytes(data); err == nil {
		t.objects += len(objects)
	}
	return t.withinLimits(name)
}

// resources reads manifests the way kustomize does, so that its objects can be counted before it works on them.
var resources = provider.NewDefaultDepProvider().GetResourceFactory()

func (t *tree) withinLimits(name string) error {
	for _, count := range []struct {
		of        string
		is, limit int
	}{
		{"objects", t.objects, maxBuildObjects},
		{"files", t.reads, maxBuildReads},
		{"bytes", t.bytes, maxBuildBytes},
	} {
		if count.is > count.limit {
			return fmt.Errorf("%s: a kustomize build may read %d %s, counted each time a base is used: %w", name, count.limit, count.of, ErrTooLarge)
		}
	}
	return nil
}

func (t *tree) refuse(err error) error {
	t.refused = err
	return err
}

// inside turns a path of kustomize into one of the repository.
func (t *tree) inside(name string) (string, error) {
	clean := path.Clean(path.Join("/", filepath.ToSlash(name)))
	if clean == mount {
		return ".", nil
	}
	inside, ok := strings.CutPrefix(clean, mount+"/")
	if !ok {
		return "", t.refuse(fmt.Errorf("%s: outside the repository", name))
	}
	return inside, nil
}

// CleanedAbs splits a path into its folder and, if it is no folder, its file.
func (t *tree) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	inside, err := t.inside(name)
	if err != nil {
		return "", "", err
	}
	info, err := stat(t.files, inside)
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

// The rest is what kustomize's own commands need, not a build.

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
