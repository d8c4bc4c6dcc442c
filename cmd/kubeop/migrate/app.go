package migrate

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/slug"
)

// longest is how long the name of an App may be.
const longest = 53

// app is an App that is written.
type app struct {
	project, name string
	// namespace is where its objects are now, and target where kubeop delivers it.
	namespace, target string
	spec              values
	from              *object
}

// migration is one import.
type migration struct {
	// tenant and project that everything belongs to. Without a project, each namespace has one.
	tenant, project string
	report          *Report
	objects         []*object
	apps            []*app
	// made are the apps that were made of an object.
	made map[*object][]*app
	// sources are the sources that were converted.
	sources map[*object]*source
	// moved are the namespaces whose apps kubeop delivers elsewhere.
	moved map[string]bool
	// origin is where the files come from; empty if they are in no clone.
	origin origin
}

// origin is the repository of a clone.
type origin struct{ url, branch string }

// find returns an object of Flux by its kind; nil if it is not known.
func (m *migration) find(kind, namespace, name string) *object {
	for _, o := range m.objects {
		if o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name {
			return o
		}
	}
	return nil
}

var (
	// projectName is what kubeop accepts.
	projectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,33}[a-z0-9])?$`)
	objectName  = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)
)

// add begins an App for an object whose own objects are in a namespace. It is nil if kubeop could not have it.
func (m *migration) add(o *object, name, namespace string) *app {
	if !objectName.MatchString(o.GetName()) || !objectName.MatchString(namespace) {
		m.report.leaveOut(o, "metadata.name", fmt.Sprintf("this is no name of an object with a namespace (%s): correct it", printable(namespace)))
		return nil
	}
	a := &app{namespace: namespace, project: m.projectOf(namespace), spec: values{}, from: o}
	if !projectName.MatchString(a.project) {
		m.report.leaveOut(o, "", fmt.Sprintf("%q cannot be the name of a project of kubeop: choose one with --project", a.project))
		return nil
	}
	if a.target = "kubeop-" + m.tenant + "-" + a.project; m.ofPlatform() {
		a.target = namespace
	}
	a.name = m.free(a.project, slug.Name(name, "app", longest))
	m.apps = append(m.apps, a)
	m.made[o] = append(m.made[o], a)
	if a.target != namespace && !m.moved[namespace] {
		m.moved[namespace] = true
		m.report.LeftOut = append(m.report.LeftOut, Entry{Object: "Namespace " + namespace, Do: fmt.Sprintf(
			"kubeop delivers its apps to %s, with new pods; what runs in %s stays until you delete it. To keep the running pods, import it with --tenant platform", a.target, namespace)})
	}
	return a
}

// ofPlatform reports whether the apps are those of the platform itself, which can adopt namespaces.
func (m *migration) ofPlatform() bool { return m.tenant == v1alpha1.PlatformTenant }

// projectOf returns the project for a namespace. Two namespaces may have objects of the same name, so each has a project of its own.
func (m *migration) projectOf(namespace string) string {
	if m.ofPlatform() {
		return namespace
	}
	if m.project != "" {
		return m.project
	}
	delivered := "kubeop-" + m.tenant + "-"
	if rest, ok := strings.CutPrefix(namespace, delivered); ok {
		return rest
	}
	short, ok := strings.CutPrefix(namespace, m.tenant+"-")
	if !ok {
		short = slug.Name(namespace, "p", longest)
	}
	return slug.Free(short, 35, func(name string) bool {
		return slices.ContainsFunc(m.apps, func(a *app) bool { return a.project == name && a.namespace != namespace }) ||
			slices.ContainsFunc(m.objects, func(o *object) bool {
				target, _, _ := unstructured.NestedString(o.Object, "spec", "targetNamespace")
				return cmp.Or(target, o.GetNamespace()) == delivered+name
			})
	})
}

// free returns a name that no other app of the project has.
func (m *migration) free(project, name string) string {
	return slug.Free(name, longest, func(name string) bool {
		return slices.ContainsFunc(m.apps, func(a *app) bool { return a.project == project && a.name == name })
	})
}

// needs asks for an object that the app reads, unless it is there already because the namespace stays the same.
func (m *migration) needs(a *app, field, kind, name, namespace string) {
	if namespace != a.target {
		m.report.ask(a.from, field, fmt.Sprintf("the %s %s has to be in the namespace %s: copy it from %s", kind, printable(name), a.target, namespace))
	}
}

// depend adds what an app waits for.
func (a *app) depend(on *app) {
	dependency := values{"name": on.name}
	if on.project != a.project {
		dependency["project"] = on.project
	}
	list, _ := a.spec["dependsOn"].([]any)
	if on != a && !slices.ContainsFunc(list, func(known any) bool { return reflect.DeepEqual(known, dependency) }) {
		a.spec["dependsOn"] = append(list, dependency)
	}
}

// origin names the object and its file, for the comment of a written file.
func (a *app) origin() string {
	text := a.from.name()
	if file, line := a.from.place(); file != "" {
		text += fmt.Sprintf(" (%s:%d)", printable(file), line)
	}
	return text
}
