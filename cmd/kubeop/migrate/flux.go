package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/migrate/address"
	"github.com/kubeop/kubeop/cmd/kubeop/migrate/document"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/kustomize"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/render/substitute"
)

// Groups of Flux. Objects of the other groups are left out, and some of them have a counterpart of another shape.
const (
	helmGroup      = "helm.toolkit.fluxcd.io"
	kustomizeGroup = "kustomize.toolkit.fluxcd.io"
	sourceGroup    = "source.toolkit.fluxcd.io"
	fluxDomain     = ".toolkit.fluxcd.io"
)

// folderTree reads what Flux, or Argo CD, would apply of the folder of a cluster.
type folderTree struct {
	*migration
	files fs.FS
	docs  document.Documents
	// entry is the folder that Flux begins with.
	entry string
	// loose are the other objects of the entry, and held those of the folders that objects of the tool name.
	loose, held []*object
	// errors are of folders that cannot be built.
	errors []error
	// ofTool reports whether objects of a group are those of the tool.
	ofTool func(group string) bool
	// follow opens the folder that an object of the tool names.
	follow func(*object)
	// applier is the kind that applies folders.
	applier string
}

// maxObjects bounds how many objects one import follows.
const maxObjects = 10_000

// readFlux reads the folder entry of a repository, and the folders of the Kustomizations in it.
func (m *migration) readFlux(files fs.FS, entry string) error {
	t := &folderTree{migration: m, files: files, entry: entry, applier: "Kustomization of Flux"}
	t.ofTool = func(group string) bool { return strings.HasSuffix(group, fluxDomain) }
	t.follow = func(o *object) {
		if o.GroupVersionKind().Group == kustomizeGroup {
			t.kustomization(o)
		}
	}
	return t.read()
}

// read reads the entry, and then the folders that its objects name.
func (t *folderTree) read() error {
	var err error
	if t.docs, err = document.Read(t.files); err != nil {
		return err
	}
	t.open(nil, t.entry, &v1alpha1.Build{}, "")
	for next := 0; next < len(t.objects); next++ {
		t.follow(t.objects[next])
		if len(t.objects) > maxObjects {
			return fmt.Errorf("%s has more than %d objects to import: name the folder of one cluster", t.entry, maxObjects)
		}
	}
	for _, o := range t.loose {
		if !slices.ContainsFunc(t.held, o.sameFile) {
			t.report.leaveOut(o, "", "no "+t.applier+" here applies it: write it into an app of type Raw")
		}
	}
	return errors.Join(t.errors...)
}

// kustomization opens the folder of a Kustomization if it is in these files.
func (t *folderTree) kustomization(o *object) {
	f := fieldsOf(o, &Report{})
	kind, name, namespace := f.text("sourceRef.kind"), f.text("sourceRef.name"), f.text("sourceRef.namespace")
	if namespace == "" {
		namespace = o.GetNamespace()
	}
	if !t.own(kind, namespace, name) {
		return
	}
	folder := address.Inside(f.text("path"))
	if folder == "" {
		folder = "."
	}
	if info, err := render.Stat(t.files, folder); err != nil || !info.IsDir() {
		if kind == "GitRepository" && name == "flux-system" {
			t.report.leaveOut(o, "spec.path", fmt.Sprintf("there is no folder %s here, so it is not known what it applies", printable(folder)))
		}
		return
	}
	if folder == t.entry {
		o.opened = true // The entry itself, which Flux' bootstrap names.
		return
	}
	build := &v1alpha1.Build{}
	part := values{}
	f.move(part, [2]string{"patches", "patches"}, [2]string{"images", "images"}, [2]string{"components", "components"}, [2]string{"postBuild.substitute", "substitute"})
	text, err := yaml.Marshal(part)
	if err == nil {
		err = yaml.UnmarshalStrict(text, build)
	}
	if err != nil {
		file, line := o.place("spec")
		t.errors = append(t.errors, fmt.Errorf("%s:%d: %s: %w", file, line, o.name(), err))
		return
	}
	t.variables(o, f, build)
	t.open(o, folder, build, f.text("targetNamespace"))
}

// variables adds the ConfigMaps among the files that a Kustomization takes variables from. Secrets are not read.
func (t *folderTree) variables(o *object, f *fields, build *v1alpha1.Build) {
	given := build.Substitute
	build.Substitute = map[string]string{}
	for _, reference := range f.maps("postBuild.substituteFrom") {
		kind, name := fmt.Sprint(reference["kind"]), fmt.Sprint(reference["name"])
		data, found := t.configMap(kind, name)
		maps.Copy(build.Substitute, data)
		if !found {
			t.report.ask(o, "spec.postBuild.substituteFrom", fmt.Sprintf("the variables of the %s %s are not known here", printable(kind), printable(name)))
		}
	}
	maps.Copy(build.Substitute, given)
}

// configMap returns the data of a ConfigMap in the files.
func (t *folderTree) configMap(kind, name string) (map[string]string, bool) {
	if kind != "ConfigMap" {
		return nil, false
	}
	for _, w := range t.docs[document.Key(kind, name)] {
		var data struct{ Data map[string]string }
		if w.Node.Decode(&data) == nil {
			return data.Data, true
		}
	}
	return nil, false
}

// own reports whether a source is the repository of these files.
func (t *folderTree) own(kind, namespace, name string) bool {
	found := t.find(kind, namespace, name)
	if found == nil {
		return true
	}
	url, _, _ := unstructured.NestedString(found.Object, "spec", "url")
	return name == "flux-system" || t.origin.url != "" && address.Same(url, t.origin.url)
}

// open builds a folder and adds the objects of Flux in it.
func (t *folderTree) open(parent *object, folder string, build *v1alpha1.Build, namespace string) {
	all, err := t.build(folder, build)
	if err != nil {
		if parent != nil {
			err = fmt.Errorf("%s: %w", parent.name(), err)
		}
		t.errors = append(t.errors, err)
		return
	}
	if parent != nil {
		parent.opened = true
	}
	for _, o := range all {
		if namespace != "" && o.GetKind() != "Namespace" {
			o.SetNamespace(namespace)
		}
		t.sort(parent, o, folder, build)
	}
}

// sort adds an object of Flux to the objects to import. It adds another object to those that its Kustomization applies, or to the loose ones if
// it has no Kustomization. It leaves out the objects that install Flux.
func (t *folderTree) sort(parent *object, o *unstructured.Unstructured, folder string, build *v1alpha1.Build) {
	group := o.GroupVersionKind().Group
	switch {
	case o.GetLabels()["app.kubernetes.io/part-of"] == "flux":
		return // Flux itself.
	case !t.ofTool(group):
		found := &object{Unstructured: o, written: t.docs.Of(o, folder)}
		if parent != nil {
			parent.held = append(parent.held, o)
			t.held = append(t.held, found)
		} else if o.GetKind() != "Namespace" {
			t.loose = append(t.loose, found)
		}
		return
	}
	if o.GetNamespace() == "" {
		o.SetNamespace("default")
		if parent != nil {
			o.SetNamespace(parent.GetNamespace())
		}
	}
	child := &object{Unstructured: o, parent: parent, written: t.docs.Of(o, folder)}
	if t.again(child) {
		return
	}
	if parent != nil {
		t.substituted(child, build)
		parent.children = append(parent.children, child)
	}
	t.objects = append(t.objects, child)
}

// again reports whether an object of the tool was read before.
func (t *folderTree) again(child *object) bool {
	switch known := t.find(child.GetKind(), child.GetNamespace(), child.GetName()); {
	case known == nil:
		return false
	case known.parent == child.parent || !known.sameFile(child):
		t.report.leaveOut(child, "", "it is declared twice, and the first one was imported")
	case known.parent == nil:
		// It was read with the entry, and the folder of its Kustomization is in the entry, or has the Kustomization itself.
		if known != child.parent {
			known.parent = child.parent
		}
		child.parent.children = append(child.parent.children, known)
	}
	return true
}

// build returns the objects of a folder as Flux would apply them.
func (t *folderTree) build(folder string, with *v1alpha1.Build) ([]*unstructured.Unstructured, error) {
	file, err := kustomize.FileIn(t.files, folder)
	switch {
	case err != nil:
		return nil, err
	case file != "":
		return kustomize.BuildWith(t.files, folder, []string{folder}, with)
	}
	return t.plain(folder, with)
}

// substituted sets variables in an object of Flux. If some are not known, it stays as it is.
func (t *folderTree) substituted(o *object, with *v1alpha1.Build) {
	done, err := substitute.Variables([]*unstructured.Unstructured{o.DeepCopy()}, with, nil)
	if err != nil || len(done) != 1 {
		t.report.ask(o, "", fmt.Sprintf("write the values of its variables into what was written of it: %v", err))
		return
	}
	done[0].SetNamespace(o.GetNamespace())
	o.Unstructured = done[0]
}

// plain reads a folder without a kustomization: its manifests, and the folders below it that have one.
func (t *folderTree) plain(folder string, with *v1alpha1.Build) ([]*unstructured.Unstructured, error) {
	var resources []string
	err := render.Walk(t.files, folder, func(name string, entry fs.DirEntry) error {
		if entry.IsDir() {
			if _, err := render.Stat(t.files, path.Join(name, "Chart.yaml")); err == nil {
				return fs.SkipDir // Templates are no manifests.
			}
			return t.kustomized(name, &resources)
		}
		if manifests.IsFile(name) && path.Base(name) != "gotk-components.yaml" && !kustomize.IsFile(path.Base(name)) {
			resources = append(resources, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if kustomize.Changes(with) {
		return kustomize.BuildWith(t.files, folder, resources, with)
	}
	var all []*unstructured.Unstructured
	var broken []error
	for _, name := range resources {
		read := t.objectsOf
		if !manifests.IsFile(name) {
			read = func(folder string) ([]*unstructured.Unstructured, error) { return kustomize.Build(t.files, folder) }
		}
		found, err := read(name)
		if err != nil {
			broken = append(broken, err)
		}
		all = append(all, found...)
	}
	return all, errors.Join(broken...)
}

// kustomized adds a folder below a plain one if it has a kustomization. The folder of Flux itself is read without its kustomization, because the
// definitions of Flux are large.
func (t *folderTree) kustomized(folder string, resources *[]string) error {
	file, err := kustomize.FileIn(t.files, folder)
	if err != nil || file == "" {
		return err
	}
	if _, err := render.Stat(t.files, path.Join(folder, "gotk-components.yaml")); err == nil {
		return nil
	}
	*resources = append(*resources, folder)
	return fs.SkipDir
}

// objectsOf reads the objects of a file.
func (t *folderTree) objectsOf(name string) ([]*unstructured.Unstructured, error) {
	nodes, err := document.Nodes(t.files, name)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, node := range nodes {
		if document.Scalar(node, "kind") == "" || document.Scalar(node, "apiVersion") == "" {
			continue
		}
		object, err := document.Decode(node)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, node.Line, err)
		}
		all = append(all, object)
	}
	return all, nil
}

// dependencies sets dependsOn of the apps, once all apps have names.
func (m *migration) dependencies() {
	for _, a := range m.apps {
		// What a Kustomization applies waits for what the Kustomization waits for.
		for o, depth := a.from, 0; o != nil && depth < maxDepth; o, depth = o.parent, depth+1 {
			m.dependsOn(a, o)
		}
	}
}

// dependsOn adds the dependencies of an object to an app.
func (m *migration) dependsOn(a *app, o *object) {
	f := fieldsOf(o, m.report)
	for _, dependency := range f.maps("dependsOn") {
		name, namespace := fmt.Sprint(dependency["name"]), o.GetNamespace()
		if given, ok := dependency["namespace"].(string); ok && given != "" {
			namespace = given
		}
		found := m.find(o.GetKind(), namespace, name)
		on := m.appsOf(found, 0)
		if len(on) == 0 && (found == nil || !found.opened || len(found.held) > 0) {
			m.report.leaveOut(o, "spec.dependsOn", fmt.Sprintf("no app was made of the %s: name what has to be ready in dependsOn", nameOf(o.GetKind(), namespace, name)))
		}
		for _, other := range on {
			a.depend(other)
		}
		if dependency["readyExpr"] != nil {
			m.report.leaveOut(o, "spec.dependsOn", "readyExpr was about an object of Flux: write one about the App if you need it")
		}
	}
}

// maxDepth bounds how deep Kustomizations contain each other.
const maxDepth = 16

// appsOf returns the apps that were made of an object and of everything it applies.
func (m *migration) appsOf(o *object, depth int) []*app {
	if o == nil || depth > maxDepth {
		return nil
	}
	all := append([]*app{}, m.made[o]...)
	for _, child := range o.children {
		all = append(all, m.appsOf(child, depth+1)...)
	}
	return all
}
