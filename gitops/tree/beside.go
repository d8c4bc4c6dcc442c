package tree

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// folder is everything in an app's folder, by path relative to it.
type folder map[string]fs.DirEntry

// find returns the regular file or folder at a path, or nil. told: there is none because something on the way to it is
// neither, which is a finding already.
func (f folder) find(name string) (e fs.DirEntry, told bool) {
	name = path.Clean(name)
	for i, c := range name + "/" {
		if e := f[name[:i]]; c == '/' && e != nil && unusable(e) != "" {
			return nil, true
		}
	}
	return f[name], false
}

// judgeApp judges app.yaml and that what it uses is beside it.
func (p *pass) judgeApp(n, before *node) judged {
	beside, findings := p.look(n.dir)
	for name, e := range beside {
		if unusable(e) == "" && !strings.Contains(name, "/") && !e.IsDir() && name != appFile && nearly(name, appFile) {
			findings = append(findings, finding{file: join(n.dir, name), why: "nothing is read from here; name it app.yaml"})
		}
	}
	e, _ := beside.find(appFile)
	if e == nil || e.IsDir() {
		if len(findings) == 0 {
			findings = []finding{{file: n.dir, why: "the folder has no app.yaml; add it, or remove the folder"}}
		}
		return judged{document: &document{findings: findings}}
	}
	if over := p.tooLarge(n, join(n.dir, appFile), e, before); over != nil {
		return judged{document: &document{findings: over}}
	}
	d := p.judge(join(n.dir, appFile), n)
	if app, ok := d.object.(*v1alpha1.App); ok {
		d.checkUses(app, beside)
	}
	d.findings = append(d.findings, findings...)
	return d
}

// look lists an app's folder to its depths. Symlinks and submodules are findings wherever they are: what a chart or a
// kustomization would read through them is not in this commit.
func (p *pass) look(dir string) (folder, []finding) {
	all := folder{}
	var findings []finding
	inside := false
	err := fs.WalkDir(p.files, dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !inside { // The folder itself comes first. A hostile tree may hold an entry "." as well.
			inside = true
			return nil
		}
		if name != dir {
			all[strings.TrimPrefix(name, dir+"/")] = e
		}
		if why := unusable(e); why != "" {
			findings = append(findings, finding{file: name, why: why})
			return passBy(e)
		}
		return nil
	})
	if err != nil {
		findings = append(findings, unread(dir, err))
	}
	return all, findings
}

// passBy ends the walk below an entry that cannot be used: a folder named "." or ".." would never end.
func passBy(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// checkUses checks every path in the spec that leads into the app's folder.
func (d judged) checkUses(app *v1alpha1.App, beside folder) {
	if raw := app.Spec.Raw; raw != nil && raw.Path != "" {
		d.checkFolder("spec.raw.path", raw.Path, beside)
		if path.Clean(raw.Path) == "." {
			d.addAt("spec.raw.path", "spec.raw.path must be a folder of its own, such as \"manifests\": app.yaml is no manifest")
		}
	}
	if app.Spec.Helm == nil {
		return
	}
	if chart := app.Spec.Helm.Path; chart != "" && d.checkFolder("spec.helm.path", chart, beside) {
		if e, told := beside.find(path.Join(chart, "Chart.yaml")); e == nil && !told {
			d.addAt("spec.helm.path", "spec.helm.path: the folder %s is no chart: it has no Chart.yaml", abbreviated(chart))
		}
	}
	for i, name := range app.Spec.Helm.ValuesFiles {
		e, told := beside.find(name)
		at := fmt.Sprintf("spec.helm.valuesFiles[%d]", i)
		switch {
		case told:
		case e == nil:
			d.addAt(at, "%s: there is no file %s beside app.yaml", at, abbreviated(name))
		case e.IsDir():
			d.addAt(at, "%s: %s is a folder", at, abbreviated(name))
		}
	}
}

func (d judged) checkFolder(at, name string, beside folder) bool {
	if path.Clean(name) == "." {
		return true
	}
	e, told := beside.find(name)
	switch {
	case told:
	case e == nil:
		d.addAt(at, "%s: there is no folder %s beside app.yaml", at, abbreviated(name))
	case !e.IsDir():
		d.addAt(at, "%s: %s is a file", at, abbreviated(name))
	}
	return e != nil && e.IsDir()
}
