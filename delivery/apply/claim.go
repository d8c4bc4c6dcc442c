package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
)

var (
	// ErrForeign says that an object exists that kubeop did not create. Only a person can resolve this.
	ErrForeign = errors.New("is not kubeop's")
	// ErrContested says that an object belongs to another app, project or repository, which may give it up.
	ErrContested = errors.New("belongs to another")
)

// claimed is an error of claim: the reason why the object is not taken over, and ErrForeign or ErrContested.
type claimed struct {
	why  string
	kind error
}

func (e *claimed) Error() string { return e.why }
func (e *claimed) Unwrap() error { return e.kind }

// claim refuses an existing object that this owner did not apply, and a cluster-scoped object without this owner's labels. With
// TakeOwnership, an object in a namespace that has no owner is adopted.
//
// A Helm release decides by its own rules in delivery/release/cluster, because Helm knows its objects by annotations and keeps no inventory;
// the namespace that owner labels name, and why a cluster-scoped object is not adopted, are the same for both and in delivery/own.
func (t *target) claim() error {
	if t.live == nil {
		return nil
	}
	theirs, ours := t.live.GetLabels(), t.object.GetLabels()
	for _, label := range v1alpha1.OwnerLabels {
		if theirs[label] != "" && theirs[label] != ours[label] && (label != v1alpha1.AppLabel || !t.yielded(theirs[label])) {
			return &claimed{fmt.Sprintf("belongs to %s already; remove it there first, or give this one another name in Git", own.Describe(theirs, ours)), ErrContested}
		}
	}
	if t.ours && !t.shared() {
		return nil
	}
	if theirs[v1alpha1.TenantLabel] != "" {
		if own.SameApp(theirs, ours) || own.SameProject(theirs, ours) && t.yielded(theirs[v1alpha1.AppLabel]) {
			return nil
		}
		return &claimed{fmt.Sprintf("belongs to %s itself; give this one another name in Git", own.Describe(theirs, nil)), ErrContested}
	}
	if held := heldBy(t.live); held != "" {
		return &claimed{fmt.Sprintf("exists and belongs to %s, from which nothing takes it over; remove it there first, or give this one another name in Git", held), ErrForeign}
	}
	return t.takeOver()
}

// takeOver adopts an object without an owner if the set has TakeOwnership. Otherwise it refuses the object. Only apps of the platform itself
// adopt cluster-scoped objects.
func (t *target) takeOver() error {
	advice := "set spec.takeOwnership: true in app.yaml to take it over"
	ours, resource := t.object.GetLabels(), command.Resource(t.object.GroupVersionKind().GroupKind())
	others := t.shared() && ours[v1alpha1.TenantLabel] != v1alpha1.PlatformTenant
	switch {
	case t.set.TakeOwnership && !others:
		return nil
	case ours[v1alpha1.AppLabel] == "":
		advice = "if nobody needs it, " + command.Delete(command.Administrator, resource, t.object)
	case others:
		var labels []string
		for _, of := range []string{v1alpha1.TenantLabel, v1alpha1.ProjectLabel, v1alpha1.AppLabel} {
			labels = append(labels, of+"="+ours[of])
		}
		advice = own.NotAdopted + command.Label(resource, t.object, labels...)
	}
	return &claimed{fmt.Sprintf("exists already%s; %s, or give this one another name in Git", managers(t.live), advice), ErrForeign}
}

// shared reports whether this is a cluster-scoped object of an app. The app does not own it because it once applied an object of that name:
// administrators may have created their own in its place. Objects that kubeop creates for itself stay kubeop's.
func (t *target) shared() bool {
	return t.object.GetNamespace() == "" && t.object.GetLabels()[v1alpha1.AppLabel] != ""
}

// yielded reports whether the other app of the project that owns the object gives it up.
func (t *target) yielded(app string) bool {
	return app != "" && t.set.Yields != nil && t.set.Yields(inventory.IDOf(t.object), app)
}

// heldBy names the Helm release or the controller that a foreign object belongs to.
func heldBy(live metav1.Object) string {
	if release := live.GetAnnotations()[own.HelmReleaseAnnotation]; release != "" {
		return "Helm release " + release
	}
	if controller := metav1.GetControllerOf(live); controller != nil {
		return controller.Kind + "/" + controller.Name
	}
	return ""
}

// managers lists the field managers of a foreign object for a message, at most five.
func managers(live metav1.Object) string {
	var names []string
	for _, f := range live.GetManagedFields() {
		if f.Manager != "" && !slices.Contains(names, f.Manager) {
			names = append(names, f.Manager)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return ", made by " + strings.Join(few.Of(names, 5), ", ")
}
