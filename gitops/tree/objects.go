package tree

import (
	"encoding/json"
	"fmt"
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

// readLayout reads kubeop.yaml. Without a known layout nothing else can be understood, so nothing else is read.
func (p *pass) readLayout(root listing, before *node) node {
	n := node{dir: "."}
	e, there := root.file(layoutFile)
	if !there {
		n.problems = p.problems(Ref{}, finding{file: layoutFile,
			why: fmt.Sprintf("there is no %s; create it with the line \"layout: %s\"", layoutFile, layoutVersion)})
		return n
	}
	var err error
	if n.file, err = p.digest(layoutFile, e); err == nil && n.file == before.file && !anyUnread(before.problems) {
		return *before
	}
	n.problems = p.problems(Ref{}, p.judgeLayout()...)
	return n
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

// readFile judges a Tenant or a Project, which is one file in the folder named like it, or takes the verdict over from
// before where the file is the same. It returns the file's name; "" for none. One that is only nearly named so is not read.
func (p *pass) readFile(n *node, l listing, want string, before *node) string {
	name := l.nearest(want)
	if name == "" {
		return ""
	}
	file := join(n.dir, name)
	if name != want {
		n.problems = p.problems(n.ref, p.misplaced(file))
		return name
	}
	e, _ := l.file(name)
	digest, err := p.digest(file, e)
	if err != nil {
		n.problems = p.problems(n.ref, unread(file, err))
		return name
	}
	n.file = digest
	if over := p.tooLarge(n, file, e, before); over != nil {
		n.problems = p.problems(n.ref, over...)
		return name
	}
	if before.file == digest && !anyUnread(before.problems) && (before.object != nil || !before.over) {
		n.object, n.problems, n.needs = before.object, before.problems, before.needs
		p.room.take(n.takes())
		return name
	}
	n.take(p, p.judge(file, n))
	return name
}

// take takes over what was found of the node's object.
func (n *node) take(p *pass, d judged) {
	if n.problems = p.problems(n.ref, d.findings...); len(n.problems) > 0 {
		return
	}
	text, err := json.Marshal(d.object)
	if err != nil {
		n.problems = p.problems(n.ref, finding{file: d.file, why: err.Error()})
		return
	}
	if p.keep(n, d, text) {
		n.object = text
	}
}

// bindOnce refuses a tenant whose projects are in two places.
func (p *pass) bindOnce(t *Tenant, l listing) {
	if !l.folder(projectsFolder) || t.object == nil {
		return
	}
	tenant := decode(&t.node, &v1alpha1.Tenant{})
	if tenant.Spec.Repository == nil {
		return
	}
	file := join(t.dir, tenantFile)
	t.problems = p.problems(t.ref, finding{file: file, line: p.read(file).line("spec.repository"), why: "spec.repository binds the " +
		"tenant's own repository, but its projects are here, in " + join(t.dir, projectsFolder) + "; keep one of the two"})
	t.object, t.file = nil, ""
	t.Projects, t.Strays, t.Unknown = nil, nil, true
}

// readApp judges an app's folder as a whole: the digest of the folder covers app.yaml and all it uses.
func (p *pass) readApp(n node, before *App) *App {
	app := &App{node: n}
	if wrong := p.wrongName(&n); len(wrong) > 0 {
		app.problems = p.problems(n.ref, wrong...)
		return app
	}
	within, err := p.in(n.dir) // Each app has limits of its own.
	if err != nil {
		app.problems = p.problems(n.ref, unread(n.dir, err))
		return app
	}
	app.file = n.digest
	d := within.judgeApp(&app.node, nodeOf(before))
	app.take(p, d)
	if typed, ok := d.object.(*v1alpha1.App); ok && app.object != nil {
		app.Needs = needs(typed, n.ref)
	}
	sortProblems(app.problems)
	return app
}

// judged is a document with the object it became.
type judged struct {
	*document
	object client.Object
}

// wrongName finds that the folder can be no object's. Until it is renamed, nothing else needs to be said about it: the
// name in the file must change too.
func (p *pass) wrongName(n *node) []finding {
	why := p.kinds[n.ref.Kind()].wrongName(n.ref.Key().Name)
	if why == "" {
		return nil
	}
	if rule, ok := strings.CutPrefix(why, "name "); ok {
		return []finding{{file: n.dir, why: "the folder's name " + rule}}
	}
	return []finding{{file: n.dir, why: "the folder's name: " + why}}
}

// judge reads the file and makes the typed object of it.
func (p *pass) judge(file string, n *node) judged {
	at, d := n.ref, judged{document: p.read(file)}
	if len(d.findings) > 0 || !d.isKind(at) {
		return d
	}
	k := p.kinds[at.Kind()]
	for _, key := range slices.Sorted(maps.Keys(d.value)) {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			d.unknownField(key, key, d.value[key], k.schema)
		}
	}
	d.identify(at)
	if n.file == "" || p.accepted[at] != n.file {
		d.validate(k, at.Key().Name)
	}
	if at.App != "" {
		d.checkImage()
	}
	if len(d.findings) > 0 {
		return d
	}
	object := k.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.value, object); err != nil {
		d.addAt("spec", "reading the %s: %s", at.Kind(), err)
		return d
	}
	if app, ok := object.(*v1alpha1.App); ok {
		d.checkOrder(app)
	}
	d.object = object
	return d
}

// decode fills an object with what is remembered.
func decode[T client.Object](n *node, object T) T {
	if err := json.Unmarshal(n.object, object); err != nil {
		panic(err) // node.take wrote it from such an object.
	}
	return object
}

// Object makes the object that a folder declares, with what only the path and the repository decide written on it:
// its kind, namespace, labels and annotations. It holds nothing else that the file does not say: defaults are left to the
// API server. The revision is that of the commit being read, as "branch@sha1:<commit>".
func (t *Tree) Object(n Node, revision string) client.Object {
	self := n.self()
	ref := self.ref
	labels := map[string]string{v1alpha1.TenantLabel: ref.Tenant, v1alpha1.RepositoryLabel: t.Scope.Repository}
	annotations := map[string]string{v1alpha1.FolderAnnotation: path.Join(t.Scope.Path, self.dir), v1alpha1.TreeAnnotation: self.file}
	var object client.Object
	switch {
	case ref.App != "":
		object = decode(self, &v1alpha1.App{})
		labels[v1alpha1.ProjectLabel], labels[v1alpha1.AppLabel] = ref.Project, ref.App
		annotations[v1alpha1.RevisionAnnotation] = revision
	case ref.Project != "":
		object = decode(self, &v1alpha1.Project{})
		labels[v1alpha1.ProjectLabel] = ref.Project
	default:
		object = decode(self, &v1alpha1.Tenant{})
	}
	object.SetNamespace(ref.Key().Namespace)
	object.SetLabels(merged(object.GetLabels(), labels))
	object.SetAnnotations(merged(object.GetAnnotations(), annotations))
	return object
}

// File is the file that declares the object of a folder, from the root of the repository.
func (t *Tree) File(n Node) string {
	name := map[string]string{v1alpha1.AppKind: appFile, v1alpha1.ProjectKind: projectFile, v1alpha1.TenantKind: tenantFile}[n.Ref().Kind()]
	return path.Join(t.Scope.Path, n.self().dir, name)
}

func merged(written, stamped map[string]string) map[string]string {
	all := make(map[string]string, len(written)+len(stamped))
	maps.Copy(all, written)
	maps.Copy(all, stamped)
	return all
}
