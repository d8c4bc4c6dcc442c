package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/layout"
)

// file is a file that is written.
type file struct {
	path string
	text []byte
	// stays: the file only says that something exists, so one that is there is as good.
	stays bool
}

// files returns the files of a repository with the apps.
func (m *migration) files() ([]file, error) {
	all := []file{{path: layout.VersionFile, text: []byte("layout: " + layout.Version + "\n"), stays: true}}
	top := layout.ProjectsFolder
	if m.ofPlatform() {
		top = layout.PlatformFolder
	}
	done := map[string]bool{}
	for _, a := range m.apps {
		folder := path.Join(top, a.project)
		if !done[a.project] {
			done[a.project] = true
			project, err := m.projectFile(folder, a)
			if err != nil {
				return nil, err
			}
			all = append(all, project)
		}
		text, err := manifest(v1alpha1.AppKind, a.name, a.spec)
		if err != nil {
			return nil, fmt.Errorf("writing the app of %s: %w", a.from.name(), err)
		}
		comment := fmt.Sprintf("# From %s.\n", a.origin())
		all = append(all, file{path: path.Join(folder, layout.AppsFolder, a.name, layout.AppFile), text: append([]byte(comment), text...)})
	}
	slices.SortFunc(all, func(a, b file) int { return bytes.Compare([]byte(a.path), []byte(b.path)) })
	return all, nil
}

func (m *migration) projectFile(folder string, a *app) (file, error) {
	spec, comment := values{}, fmt.Sprintf("# From the namespace %s.\n", a.namespace)
	if m.ofPlatform() {
		put(spec, "namespace.adopt", true)
	}
	text, err := manifest(v1alpha1.ProjectKind, a.project, spec)
	return file{path: path.Join(folder, layout.ProjectFile), text: append([]byte(comment), text...), stays: true}, err
}

func manifest(kind, name string, spec values) ([]byte, error) {
	object := values{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": values{"name": name}}
	if len(spec) > 0 {
		object["spec"] = spec
	}
	return yaml.Marshal(object)
}

// write writes files below a folder. Nothing is written if one of them exists with another content.
func write(folder string, files []file, report *Report) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	// Nothing was written through the folder itself, so closing it cannot lose anything.
	defer func() { _ = root.Close() }()
	var missing []file
	var taken []error
	for _, f := range files {
		text, err := root.ReadFile(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
		case err != nil:
			return err
		case bytes.Equal(text, f.text), f.stays:
			report.Kept = append(report.Kept, f.path)
		default:
			taken = append(taken, fmt.Errorf("%s exists with another content: nothing is overwritten", f.path))
		}
	}
	if len(taken) > 0 {
		return errors.Join(taken...)
	}
	for _, f := range missing {
		if err := root.MkdirAll(path.Dir(f.path), 0o755); err != nil {
			return err
		}
		created, err := root.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = created.Write(f.text)
		if err = errors.Join(err, created.Close()); err != nil {
			return fmt.Errorf("writing %s: %w", f.path, err)
		}
		report.Written = append(report.Written, f.path)
	}
	return nil
}
