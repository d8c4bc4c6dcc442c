package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

var (
	// ErrForeign says that an object exists that kubeop did not make. Only people can help.
	ErrForeign = errors.New("is not kubeop's")
	// ErrContested says that an object belongs to another app, project or repository, which may let go of it.
	ErrContested = errors.New("belongs to another")
)

// helmRelease names the release on every object that Helm installs, since Helm 3.2.
const helmRelease = "meta.helm.sh/release-name"

// claimed is an error of claim: why the object is not taken, and what kind of refusal it is.
type claimed struct {
	why  string
	kind error
}

func (e *claimed) Error() string { return e.why }
func (e *claimed) Unwrap() error { return e.kind }

// claim refuses an object that is there and that its owner did not apply; of what the whole cluster shares, one without its
// owner's marks. With TakeOwnership one that belongs to nobody is taken over, if it is in a namespace.
func (t *target) claim() error {
	if t.live == nil {
		return nil
	}
	theirs, ours := t.live.GetLabels(), t.object.GetLabels()
	for _, mark := range marks {
		if theirs[mark] != "" && theirs[mark] != ours[mark] && (mark != v1alpha1.AppLabel || !t.yielded(theirs[mark])) {
			return &claimed{fmt.Sprintf("belongs to %s already; remove it there first, or give this one another name", whose(theirs, ours)), ErrContested}
		}
	}
	if t.ours && !t.shared() {
		return nil
	}
	if theirs[v1alpha1.TenantLabel] != "" {
		if marked(theirs, ours) || inProject(theirs, ours) && t.yielded(theirs[v1alpha1.AppLabel]) {
			return nil
		}
		return &claimed{fmt.Sprintf("belongs to %s itself; give this one another name", whose(theirs, nil)), ErrContested}
	}
	if held := heldBy(t.live); held != "" {
		return &claimed{fmt.Sprintf("exists and belongs to %s, from which nothing takes it over; remove it there first, or give this one another name", held), ErrForeign}
	}
	return t.takeOver()
}

// takeOver refuses an object that belongs to nobody, unless the set takes it over. What the whole cluster shares is the
// administrators': they hand it over by its labels.
func (t *target) takeOver() error {
	advice := "set takeOwnership: true to take it over"
	switch {
	case t.set.TakeOwnership && !t.shared():
		return nil
	case t.object.GetLabels()[v1alpha1.AppLabel] == "":
		advice = "remove it first"
	case t.shared():
		advice = "it is cluster-scoped and so the administrators', and takeOwnership does not take it over: ask them to remove it or to label it as this app's"
	}
	return &claimed{fmt.Sprintf("exists already%s; %s, or give this one another name", managers(t.live), advice), ErrForeign}
}

// shared reports whether it is an app's object that is in no namespace. That one of its name was applied before does not make
// it the app's: administrators may have put their own in its place. What kubeop makes for itself stays kubeop's.
func (t *target) shared() bool {
	return t.object.GetNamespace() == "" && t.object.GetLabels()[v1alpha1.AppLabel] != ""
}

// marks are the labels that say whose an object is.
var marks = []string{v1alpha1.TenantLabel, v1alpha1.ProjectLabel, v1alpha1.AppLabel, v1alpha1.RepositoryLabel}

// marked reports whether labels name the same app, or what else made an object.
func marked(theirs, ours map[string]string) bool {
	return inProject(theirs, ours) && theirs[v1alpha1.AppLabel] == ours[v1alpha1.AppLabel]
}

func inProject(theirs, ours map[string]string) bool {
	return theirs[v1alpha1.TenantLabel] == ours[v1alpha1.TenantLabel] && theirs[v1alpha1.ProjectLabel] == ours[v1alpha1.ProjectLabel]
}

// yielded reports whether the other app of the project that has the object gives it up.
func (t *target) yielded(app string) bool {
	return app != "" && t.set.Yields != nil && t.set.Yields(inventory.IDOf(t.object), app)
}

// whose names the owner by its labels, the project and tenant where they are not ours too.
func whose(theirs, ours map[string]string) string {
	var owner []string
	for _, of := range []struct{ label, name string }{
		{v1alpha1.AppLabel, "app"}, {v1alpha1.ProjectLabel, "project"}, {v1alpha1.TenantLabel, "tenant"}, {v1alpha1.RepositoryLabel, "repository"},
	} {
		innermost := len(owner) == 0 && of.label == v1alpha1.AppLabel
		if theirs[of.label] != "" && (innermost || theirs[of.label] != ours[of.label]) {
			owner = append(owner, of.name+" "+theirs[of.label])
		}
	}
	return strings.Join(owner, " of ")
}

// heldBy names the Helm release or the object that a foreign object is a part of.
func heldBy(live metav1.Object) string {
	if release := live.GetAnnotations()[helmRelease]; release != "" {
		return "Helm release " + release
	}
	if controller := metav1.GetControllerOf(live); controller != nil {
		return controller.Kind + "/" + controller.Name
	}
	return ""
}

// managers tells who wrote a foreign object, as managedFields names them.
func managers(live metav1.Object) string {
	var names []string
	for _, f := range live.GetManagedFields() {
		if f.Manager != "" && !slices.Contains(names, f.Manager) {
			names = append(names, f.Manager)
		}
	}
	slices.Sort(names)
	if more := len(names) - 5; more > 0 {
		names = append(names[:5], fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		return ""
	}
	return ", made by " + strings.Join(names, ", ")
}
