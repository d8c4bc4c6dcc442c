package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/cmd/kubeop/migrate/address"
	"github.com/kubeop/kubeop/cmd/kubeop/migrate/secrecy"
	"github.com/kubeop/kubeop/gitops/slug"
)

// whyOfKustomizations explains fields of Kustomizations that have no counterpart.
var whyOfKustomizations = map[string]string{
	"serviceAccountName":            "kubeop uses the deployer of the project: administrators decide its rights",
	"namePrefix":                    "write it into a kustomization.yaml of the folder",
	"nameSuffix":                    "write it into a kustomization.yaml of the folder",
	"commonMetadata":                "write it into a kustomization.yaml of the folder, as labels and commonAnnotations",
	"ignoreMissingComponents":       "kubeop refuses components that do not exist",
	"decryption.serviceAccountName": "kubeop decrypts with the keys and credentials in the Secret of decryption.secretRef only",
	"postBuild.substituteStrategy":  "kubeop replaces variables if any are given",
	"patchesStrategicMerge":         "write it as patches",
	"patchesJson6902":               "write it as patches",
}

// kustomization converts a Kustomization to one app for each namespace that its objects are in.
func (m *migration) kustomization(o *object) {
	if o.opened && len(o.held) == 0 {
		return // It applies only objects of Flux, which become apps themselves.
	}
	f := fieldsOf(o, m.report)
	if f.has("kubeConfig") {
		f.leaveOut("kubeConfig", "kubeop delivers to its own cluster only, so the Kustomization is left out")
		return
	}
	kind, name, namespace := f.text("sourceRef.kind"), f.text("sourceRef.name"), f.text("sourceRef.namespace")
	if namespace == "" {
		namespace = o.GetNamespace()
	}
	git, src := m.folder(f, kind, namespace, name)
	if git == nil {
		return
	}
	put(git, "path", address.Inside(f.text("path")))
	target := f.text("targetNamespace")
	whole := &folderApp{from: o, spec: m.common(f, git, src), git: git, source: src, sourceNamespace: namespace, forced: target != "", places: m.places(o, target)}
	f.drop("dependsOn")
	m.shared(o, f, git)
	f.rest(whyOfKustomizations)
	for _, place := range whole.places {
		m.ofNamespace(whole, place)
	}
}

// folderApp is what the apps of a Kustomization have in common.
type folderApp struct {
	from      *object
	spec, git values
	source    *source
	// sourceNamespace has the Secret of the source.
	sourceNamespace string
	// forced: a field says which namespace all objects are in.
	forced bool
	// places are the namespaces of the objects.
	places []string
}

// folder returns the fields that say which repository or artifact; nil if kubeop cannot have it.
func (m *migration) folder(f *fields, kind, namespace, name string) (values, *source) {
	found := m.find(kind, namespace, name)
	switch {
	case found == nil && f.of.opened && m.origin.url != "":
		git := values{"url": m.origin.url}
		put(git, "ref.branch", m.origin.branch)
		return git, &source{}
	case found == nil:
		m.lost(f, "sourceRef", kind, namespace, name)
		return nil, nil
	case kind != "GitRepository" && kind != "OCIRepository":
		f.leaveOut("sourceRef", fmt.Sprintf("kubeop fetches no %s itself, so the Kustomization is left out: git.sourceRef can name it if it is in the namespace of the app", printable(kind)))
		return nil, nil
	}
	s := m.convert(found, false)
	if s.ignore != "" {
		m.report.leaveOut(found, "spec.ignore", "its patterns are of the whole repository, and git.ignore has those of the folder of the app")
	}
	return copied(s.fields), s
}

// common takes what all apps of a Kustomization have.
func (m *migration) common(f *fields, git values, src *source) values {
	spec := values{"type": "Git", "takeOwnership": true}
	f.move(git, [2]string{"patches", "patches"}, [2]string{"images", "images"}, [2]string{"components", "components"},
		[2]string{"decryption.provider", "decryption.provider"}, [2]string{"decryption.secretRef", "decryption.secretRef"})
	if git["decryption"] != nil && git["decryption"].(values)["secretRef"] == nil {
		delete(git, "decryption")
		m.report.leaveOut(f.of, "spec.decryption", "kubeop needs the Secret with the keys: write decryption.secretRef")
	}
	f.move(spec, [2]string{"healthCheckExprs", "healthCheckExprs"}, [2]string{"force", "force"}, [2]string{"retryInterval", "retryInterval"}, [2]string{"ignore", "drift.ignore"})
	f.moveTimeouts(spec, [2]string{"timeout", "timeout"})
	put(spec, "interval", shorter(f.text("interval"), src.interval))
	prune, _ := take[bool](f, "prune")
	policy := f.text("deletionPolicy")
	if !prune {
		spec["prune"] = false
	}
	switch {
	case policy == "Orphan" || policy != "Delete" && policy != "WaitForTermination" && !prune:
		spec["deletionPolicy"] = "Orphan"
	case policy == "WaitForTermination":
		spec["deletionPolicy"] = policy
	}
	// kubeop checks the health of all objects of an app.
	f.drop("wait")
	for _, check := range f.maps("healthChecks") {
		if kind := fmt.Sprint(check["kind"]); kind == "HelmRelease" || kind == "Kustomization" {
			m.report.leaveOut(f.of, "spec.healthChecks", fmt.Sprintf("the %s %s is an app of its own: name it in dependsOn of what waits for it", kind, printable(fmt.Sprint(check["name"]))))
		}
	}
	return spec
}

// shared takes variables. Those that look secret are left to a Secret.
func (m *migration) shared(o *object, f *fields, git values) {
	given, _ := take[values](f, "postBuild.substitute")
	secrets := secrecy.Withhold(given, "")
	put(git, "substitute", given)
	var from []any
	for _, reference := range f.maps("postBuild.substituteFrom") {
		from = append(from, reference)
	}
	if len(secrets) > 0 {
		name := slug.Name(o.GetName(), "app", longest) + "-variables"
		from = append([]any{values{"kind": "Secret", "name": name}}, from...)
		m.report.ask(o, "spec.postBuild.substitute", fmt.Sprintf("what may be secret is not written: create the Secret %s with %s in the namespace of the app",
			name, strings.Join(secrets, ", ")))
	}
	put(git, "substituteFrom", from)
}

// places are the namespaces of the objects that a Kustomization applies.
func (m *migration) places(o *object, target string) []string {
	if target != "" {
		return []string{target}
	}
	found := map[string]bool{}
	for _, held := range o.held {
		if held.GetNamespace() != "" {
			found[held.GetNamespace()] = true
		}
	}
	if len(found) == 0 {
		if !o.opened {
			m.report.ask(o, "spec.sourceRef", "its folder is not here, so its objects are taken to be in the namespace "+o.GetNamespace()+": an object that names another one is refused")
		}
		return []string{o.GetNamespace()}
	}
	return slices.Sorted(maps.Keys(found))
}

// ofNamespace adds the app for one namespace. The objects of Flux, and those of the other namespaces, are deleted by patches.
func (m *migration) ofNamespace(whole *folderApp, place string) {
	o, src := whole.from, whole.source
	a := m.add(o, o.GetName(), place)
	if a == nil {
		return
	}
	a.spec = copied(whole.spec)
	own := copied(whole.git)
	if patches := without(o, place, whole.places); len(patches) > 0 {
		given, _ := own["patches"].([]any)
		own["patches"] = append(given, patches...)
	}
	a.spec["git"] = own
	if whole.forced || a.target != place {
		a.spec["targetNamespace"] = a.target
	}
	m.suspended(a, fieldsOf(o, m.report), src.suspend)
	if src.secret != "" {
		m.needs(a, "spec.sourceRef", "Secret", src.secret, whole.sourceNamespace)
	}
	for _, reference := range [][]string{{"postBuild.substituteFrom", ""}, {"decryption", "Secret"}} {
		m.readsOf(a, reference[0], reference[1])
	}
}

// readsOf asks for the ConfigMaps and Secrets that a Kustomization reads.
func (m *migration) readsOf(a *app, field, kind string) {
	f := fieldsOf(a.from, m.report)
	if name := f.text(field + ".secretRef.name"); name != "" {
		m.needs(a, "spec."+field, kind, name, a.from.GetNamespace())
	}
	for _, reference := range f.maps(field) {
		m.needs(a, "spec."+field, fmt.Sprint(reference["kind"]), fmt.Sprint(reference["name"]), a.from.GetNamespace())
	}
}

// without returns patches that delete what is no part of an app: objects of Flux, namespaces, and the objects of other namespaces. Objects
// without a namespace belong to the first app.
func without(o *object, place string, places []string) []any {
	gone := map[schema.GroupKind]string{}
	others := map[schema.GroupKind]string{}
	for _, child := range o.children {
		gone[child.GroupVersionKind().GroupKind()] = child.GetAPIVersion()
	}
	for _, held := range o.held {
		kind := held.GroupVersionKind().GroupKind()
		switch {
		case kind.Kind == "Namespace" && kind.Group == "":
			gone[kind] = held.GetAPIVersion()
		case held.GetNamespace() != "" && held.GetNamespace() != place && len(places) > 1:
			others[kind] = held.GetAPIVersion()
		case held.GetNamespace() == "" && place != places[0]:
			gone[kind] = held.GetAPIVersion()
		}
	}
	var patches []any
	for _, kind := range sortedKinds(gone) {
		patches = append(patches, deletion(kind, gone[kind], ""))
	}
	elsewhere := slices.DeleteFunc(slices.Clone(places), func(name string) bool { return name == place })
	for _, kind := range sortedKinds(others) {
		if _, all := gone[kind]; !all {
			patches = append(patches, deletion(kind, others[kind], strings.Join(elsewhere, "|")))
		}
	}
	return patches
}

func sortedKinds(of map[schema.GroupKind]string) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(of), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

// deletion returns a patch that deletes all objects of a kind in namespaces.
func deletion(kind schema.GroupKind, version, namespaces string) values {
	target := values{"kind": kind.Kind}
	put(target, "group", kind.Group)
	put(target, "namespace", namespaces)
	return values{"target": target, "patch": fmt.Sprintf("$patch: delete\napiVersion: %s\nkind: %s\nmetadata:\n  name: any\n", version, kind.Kind)}
}
