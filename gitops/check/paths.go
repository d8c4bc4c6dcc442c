package check

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Folder is everything in an app's folder, by path relative to it.
type Folder map[string]fs.DirEntry

// Find returns the regular file or folder at a path, or nil. reported: a part of the path is a symlink or submodule, which is reported
// elsewhere.
func (f Folder) Find(name string) (e fs.DirEntry, reported bool) {
	name = path.Clean(name)
	for i, c := range name + "/" {
		if e := f[name[:i]]; c == '/' && e != nil && layout.Unusable(e) != "" {
			return nil, true
		}
	}
	return f[name], false
}

// Paths checks every path in the spec that leads into the app's folder. It checks nothing if the document has no valid object.
func (d *Result) Paths(beside Folder) {
	app, ok := d.Object.(*v1alpha1.App)
	if !ok {
		return
	}
	if raw := app.Spec.Raw; raw != nil && raw.Path != "" {
		d.checkFolder("spec.raw.path", raw.Path, beside)
		if path.Clean(raw.Path) == "." {
			d.AddAt(code.WrongPath, "spec.raw.path", "spec.raw.path must be a folder of its own, such as \"manifests\": app.yaml is no manifest")
		}
	}
	if app.Spec.Helm == nil {
		return
	}
	if chart := app.Spec.Helm.Path; chart != "" && d.checkFolder("spec.helm.path", chart, beside) {
		if e, reported := beside.Find(path.Join(chart, "Chart.yaml")); e == nil && !reported {
			d.AddAt(code.MissingFile, "spec.helm.path", "spec.helm.path: the folder %s is no chart: it has no Chart.yaml", document.Quote(chart))
		}
	}
	for i, name := range app.Spec.Helm.ValuesFiles {
		e, reported := beside.Find(name)
		at := fmt.Sprintf("spec.helm.valuesFiles[%d]", i)
		switch {
		case reported:
		case e == nil:
			d.AddAt(code.MissingFile, at, "%s: there is no file %s beside app.yaml: add it, or correct the name", at, document.Quote(name))
		case e.IsDir():
			d.AddAt(code.WrongPath, at, "%s: %s is a folder", at, document.Quote(name))
		}
	}
}

func (d *Result) checkFolder(at, name string, beside Folder) bool {
	if path.Clean(name) == "." {
		return true
	}
	e, reported := beside.Find(name)
	switch {
	case reported:
	case e == nil:
		d.AddAt(code.MissingFile, at, "%s: there is no folder %s beside app.yaml: add it, or correct the path", at, document.Quote(name))
	case !e.IsDir():
		d.AddAt(code.WrongPath, at, "%s: %s is a file", at, document.Quote(name))
	}
	return e != nil && e.IsDir()
}
