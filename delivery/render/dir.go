package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Dir reads the objects of a folder; files is its whole repository, so that a kustomization may use ../base.
//
// With a kustomization.yaml, kustomization.yml or Kustomization in the folder, the folder is built with kustomize, from
// what is in the repository alone: no remote bases or files, plugins, programs, charts or schemas, and at most 1,000
// objects. Else every .yaml, .yml and .json file at any depth is read in the order of its path, up to the limits of an app, see
// Renderer, which are counted before a file is parsed; files and folders whose names start with a dot are left out. No file may have more than 1 MiB.
//
// Links and submodules are refused. The same object may not come twice. Errors name the file and line as
// "file:line: why", all of them at once up to 20; of a kustomization they name the file. A path that does not exist is
// an fs.ErrNotExist, a limit that is passed an ErrTooLarge, which names the limit.
func Dir(files fs.FS, path string) ([]*unstructured.Unstructured, error) {
	return Build(files, path, &v1alpha1.Build{})
}

// Build is Renderer.Build with the default limits.
func Build(files fs.FS, path string, with *v1alpha1.Build) ([]*unstructured.Unstructured, error) {
	return usual().Build(files, path, with)
}

// Build is Dir with the components, patches and images of an App's spec on top, in kustomize's order, as if a
// kustomization named the folder as its resource. Components are folders relative to path, and must be in the repository.
// A failed patch is named as "patches[i]". Substitution is left to Substitute.
func (r Renderer) Build(files fs.FS, path string, with *v1alpha1.Build) ([]*unstructured.Unstructured, error) {
	folder, err := openFolder(files, path, "the repository")
	if err != nil {
		return nil, err
	}
	name, err := kustomizationIn(files, folder)
	if err != nil {
		return nil, err
	}
	switch {
	case adjusts(with):
		o := overlay{files: files, folder: folder, resources: []string{folder}, with: with}
		if name == "" {
			if o.resources, err = r.manifestFiles(files, folder); err != nil {
				return nil, err
			}
		}
		return o.build()
	case name != "":
		return build(files, folder)
	}
	return r.manifests(files, folder)
}

// openFolder returns the path of an existing folder in the form that fs.FS wants. whole is what files are, for people.
func openFolder(files fs.FS, name, whole string) (string, error) {
	clean := path.Clean(name)
	if !fs.ValidPath(clean) {
		return "", fmt.Errorf("path %q must be relative and stay inside the repository", name)
	}
	info, err := stat(files, clean)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &absent{fmt.Sprintf("%s has no folder %q", whole, clean), fs.ErrNotExist}
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s: not a folder", clean)
	}
	return clean, nil
}

// stat describes a file without following links anywhere on the way to it: a link may point out of the repository,
// and what a submodule holds is not in it.
func stat(files fs.FS, name string) (fs.FileInfo, error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if info, err := fs.Lstat(files, name[:i]); err == nil && !info.IsDir() {
			return nil, notPlain(name[:i], info.Mode())
		}
	}
	info, err := fs.Lstat(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &absent{name + ": not in the repository", fs.ErrNotExist}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, notPlain(name, info.Mode())
	}
	return info, nil
}

func notPlain(name string, mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return &absent{name + ": not a folder", fs.ErrNotExist}
	case mode&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: is a symbolic link; only files and folders of the repository are read", name)
	}
	return fmt.Errorf("%s: is a submodule; only files and folders of the repository are read", name)
}

// readFile reads a file of bounded size without following links.
func readFile(files fs.FS, name string) ([]byte, error) {
	info, err := stat(files, name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder, not a file", name)
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s: has %d bytes; a file may have %d: %w", name, info.Size(), maxFileBytes, ErrTooLarge)
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

func kustomizationIn(files fs.FS, folder string) (string, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", folder, err)
	}
	for _, entry := range entries {
		if isKustomization(entry.Name()) {
			return entry.Name(), nil
		}
	}
	return "", nil
}

func isKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), name)
}

// manifests reads every manifest below a folder.
func (r Renderer) manifests(files fs.FS, folder string) ([]*unstructured.Unstructured, error) {
	found := objectSet{limits: r.Limits}
	err := walk(files, folder, func(name string, entry fs.DirEntry) error { return found.file(files, name, entry) })
	if err != nil {
		return nil, err
	}
	return found.result()
}

// manifestFiles lists the manifests below a folder, as a kustomization names them.
func (r Renderer) manifestFiles(files fs.FS, folder string) ([]string, error) {
	if _, err := r.manifests(files, folder); err != nil {
		return nil, err
	}
	var names []string
	err := walk(files, folder, func(name string, entry fs.DirEntry) error {
		if isManifest(name) && !entry.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// walk calls each with every file and folder below a folder, in the order of their paths, but for those whose names start
// with a dot.
func walk(files fs.FS, folder string, each func(name string, entry fs.DirEntry) error) error {
	root, entries := true, 0
	return fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if root {
			root = false
			return nil
		}
		if entries++; entries > maxEntries {
			return fmt.Errorf("%s: holds more than %d files and folders: %w", folder, maxEntries, ErrTooLarge)
		}
		if err := checkName(name, entry.Name()); err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") {
			return skip(entry)
		}
		return each(name, entry)
	})
}

// maxPathBytes is the longest path of a manifest, as on Linux.
const maxPathBytes = 4096

// checkName refuses what no working tree could hold and Git does not rule out: an entry that is named like its own
// folder ("." or nothing) would be walked for ever.
func checkName(name, entry string) error {
	if path.Base(name) != entry || len(name) > maxPathBytes {
		return fmt.Errorf("%.100s: holds a file with a name that no file can have: %.100q", name, entry)
	}
	return nil
}

func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// file adds the objects of one file of a folder. It stops the walk where reading on would use up memory.
func (s *objectSet) file(files fs.FS, name string, entry fs.DirEntry) error {
	if s.full || int64(len(s.objects)) > s.bounds().Objects || len(s.problems) > maxProblems {
		return fs.SkipAll
	}
	if entry.IsDir() {
		return nil
	}
	if !entry.Type().IsRegular() {
		s.problems = append(s.problems, notPlain(name, entry.Type()))
		return nil
	}
	if !isManifest(name) {
		return nil
	}
	data, err := readFile(files, name)
	if err != nil {
		s.problems = append(s.problems, err)
		return nil
	}
	s.read(name, data)
	return nil
}

func (s *objectSet) read(name string, data []byte) {
	if !s.take(name, data) {
		return
	}
	if path.Ext(name) == ".json" {
		value, err := decodeJSON(data)
		if err != nil {
			s.refuse(name+":1", err)
			return
		}
		s.add(name+":1", value)
		return
	}
	for _, doc := range documents(data) {
		place := fmt.Sprintf("%s:%d", name, doc.line)
		value, err := decodeYAML(doc, yaml.YAMLToJSONStrict)
		if err != nil {
			s.refuse(place, err)
			continue
		}
		s.add(place, value)
	}
}
