package tree

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// layoutVersion is the only layout there is.
const layoutVersion = "v1"

// checkLayoutVersion reads kubeop.yaml. Without a known layout nothing else can be understood, so nothing else is read.
func (p *pass) checkLayoutVersion(root []fs.DirEntry) bool {
	if len(p.tree.Problems) > 0 && len(root) == 0 {
		return false // the root itself could not be read
	}
	if !slices.ContainsFunc(root, func(e fs.DirEntry) bool { return e.Name() == layoutFile && !e.IsDir() }) {
		p.report(unit{}, finding{file: layoutFile,
			why: fmt.Sprintf("there is no %s; create it with the line \"layout: %s\"", layoutFile, layoutVersion)})
		return false
	}
	v, _ := p.recall(layoutFile, func() verdict { return verdict{findings: p.judgeLayout()} })
	p.report(unit{}, v.findings...)
	return len(v.findings) == 0
}

func (p *pass) judgeLayout() []finding {
	d := p.read(layoutFile)
	if len(d.findings) > 0 {
		return d.findings
	}
	for _, key := range slices.Sorted(maps.Keys(d.value)) {
		if key != "layout" {
			d.addUnknown(key, key, []string{"layout"})
		}
	}
	if v := d.value["layout"]; v != layoutVersion {
		d.addAt("layout", "layout is %s; this operator reads %q", orMissing(v), layoutVersion)
	}
	return d.findings
}

func (p *pass) addTenant(dir, tenant string, withProjects bool) {
	u := unit{tenant: tenant}
	file := join(dir, tenantFile)
	v, _ := p.recall(file, func() verdict { return p.judgeFile(file, place{v1alpha1.TenantKind, tenant, u}) })
	p.report(u, v.findings...)
	if v.object == nil {
		return
	}
	object := stamp(p, v, &v1alpha1.Tenant{}, u, dir)
	if withProjects && object.Spec.Repository != nil {
		p.report(u, finding{file: file, line: p.read(file).line("spec.repository"), why: "spec.repository binds the " +
			"tenant's own repository, but its projects are here, in " + join(dir, projectsFolder) + "; keep one of the two"})
	}
	p.tree.Tenants = append(p.tree.Tenants, object)
}

func (p *pass) addProject(dir string, u unit) {
	file := join(dir, projectFile)
	v, _ := p.recall(file, func() verdict { return p.judgeFile(file, place{v1alpha1.ProjectKind, u.project, u}) })
	p.report(u, v.findings...)
	if v.object != nil {
		p.tree.Projects = append(p.tree.Projects, stamp(p, v, &v1alpha1.Project{}, u, dir))
	}
}

// addApp judges an app's folder as a whole: the digest of the folder covers app.yaml and all it uses.
func (p *pass) addApp(dir string, u unit, name string) {
	v, digest := p.recall(dir, func() verdict { return p.judgeApp(dir, place{v1alpha1.AppKind, name, u}) })
	p.report(u, v.findings...)
	if v.object == nil {
		return
	}
	app := stamp(p, v, &v1alpha1.App{}, u, dir)
	app.Annotations[v1alpha1.TreeAnnotation] = digest
	app.Annotations[v1alpha1.RevisionAnnotation] = p.scope.Revision
	p.tree.Apps = append(p.tree.Apps, app)
}

// judged is a document with the object it became.
type judged struct {
	*document
	object client.Object
}

// judgeFile judges a Tenant or a Project, which is one file in the folder named like it.
func (p *pass) judgeFile(file string, at place) verdict {
	if wrong := p.wrongName(path.Dir(file), at); len(wrong) > 0 {
		return verdict{findings: wrong}
	}
	return p.judge(file, at).verdict()
}

// wrongName finds that the folder can be no object's. Until it is renamed, nothing else needs to be said about it: the
// name in the file must change too.
func (p *pass) wrongName(dir string, at place) []finding {
	why := p.kinds[at.kind].wrongName(at.name)
	if why == "" {
		return nil
	}
	if rule, ok := strings.CutPrefix(why, "name "); ok {
		return []finding{{file: dir, why: "the folder's name " + rule}}
	}
	return []finding{{file: dir, why: "the folder's name: " + why}}
}

// judge reads the file and makes the typed object of it.
func (p *pass) judge(file string, at place) judged {
	d := judged{document: p.read(file)}
	if len(d.findings) > 0 || !d.isKind(at) {
		return d
	}
	k := p.kinds[at.kind]
	for _, key := range slices.Sorted(maps.Keys(d.value)) {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			d.unknownField(key, key, d.value[key], k.schema)
		}
	}
	d.identify(at)
	d.validate(k, at.name)
	if at.kind == v1alpha1.AppKind {
		d.checkImage()
	}
	if len(d.findings) > 0 {
		return d
	}
	object := k.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.value, object); err != nil {
		d.addAt("spec", "reading the %s: %s", at.kind, err)
		return d
	}
	if app, ok := object.(*v1alpha1.App); ok {
		d.checkOrder(app)
	}
	d.object = object
	return d
}

func (d judged) verdict() verdict {
	if len(d.findings) > 0 {
		return verdict{findings: d.findings}
	}
	text, err := json.Marshal(d.object)
	if err != nil {
		return verdict{findings: []finding{{file: d.file, why: err.Error()}}}
	}
	return verdict{object: text}
}

// stamp fills object with what is remembered and writes on it what only the path and the repository decide.
func stamp[T client.Object](p *pass, v verdict, object T, u unit, dir string) T {
	if err := json.Unmarshal(v.object, object); err != nil {
		panic(err) // judged.verdict wrote it from such an object.
	}
	kind := object.GetObjectKind().GroupVersionKind().Kind
	object.SetNamespace(namespaceOf(kind, u))

	labels := map[string]string{v1alpha1.TenantLabel: u.tenant, v1alpha1.RepositoryLabel: p.scope.Repository}
	if kind != v1alpha1.TenantKind {
		labels[v1alpha1.ProjectLabel] = u.project
	}
	if kind == v1alpha1.AppKind {
		labels[v1alpha1.AppLabel] = object.GetName()
	}
	object.SetLabels(merged(object.GetLabels(), labels))
	folder := map[string]string{v1alpha1.FolderAnnotation: path.Join(p.scope.Path, dir)}
	object.SetAnnotations(merged(object.GetAnnotations(), folder))
	return object
}

func merged(written, stamped map[string]string) map[string]string {
	all := make(map[string]string, len(written)+len(stamped))
	maps.Copy(all, written)
	maps.Copy(all, stamped)
	return all
}
