package plan

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Action is what happens to an object.
type Action string

// Actions.
const (
	Create   Action = "create"
	Update   Action = "update"
	Recreate Action = "recreate"
	Delete   Action = "delete"
	// Move: another app of the project takes the object over.
	Move Action = "move"
	// Run: a hook runs.
	Run Action = "run"
	// Keep: the object left its source and stays. Hold: it waits for a confirmation.
	Keep Action = "keep"
	Hold Action = "hold"
	// Refuse: the object is not applied.
	Refuse Action = "refuse"
)

// Change is what happens to one object.
type Change struct {
	Action Action `json:"action"`
	// Object as "Kind/name", or "Kind namespace/name" outside of the app's namespace.
	Object string `json:"object"`
	// Fields are the fields that change, of an update.
	Fields []Field `json:"fields,omitempty"`
	// Why is why the object is refused, held or kept.
	Why string `json:"why,omitempty"`

	id inventory.ObjectID
	// to is the App that a moved object goes to.
	to string
}

// Field is a field that changes; a missing value is "". Path is a JSON pointer.
type Field struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// App is what happens to the objects of one app.
type App struct {
	// App as "tenant/project/app".
	App string `json:"app"`
	// Source is the revision of its source.
	Source  string   `json:"source,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	// Failed is why nothing is delivered: the source cannot be fetched, rendered or allowed.
	Failed string `json:"failed,omitempty"`
	// Unknown is why the person cannot see what happens: a right to read is missing.
	Unknown string `json:"unknown,omitempty"`
	// Note says what limits the comparison.
	Note string `json:"note,omitempty"`
}

// Plan is what a commit changes.
type Plan struct {
	Repository string `json:"repository"`
	Revision   string `json:"revision"`
	// Problems are the problems of the files, as kubeop validate shows them.
	Problems []string `json:"problems,omitempty"`
	// Changes are those of Tenants, Projects and Apps. Held says why deletions wait, and lists what they would delete.
	Changes []Change `json:"changes,omitempty"`
	Held    []string `json:"held,omitempty"`
	// Frozen says until when a freeze would hold the commit if it were pushed now, and by which window.
	Frozen string `json:"frozen,omitempty"`
	Apps   []App  `json:"apps,omitempty"`
	// Previews are the projects that a branch would have as a preview.
	Previews []Preview `json:"previews,omitempty"`
}

// Empty reports whether the commit changes nothing, and nothing is refused.
func (p *Plan) Empty() bool {
	return len(p.Problems) == 0 && len(p.Changes) == 0 && !slices.ContainsFunc(p.Apps, func(a App) bool { return a.Failed != "" || a.Unknown != "" || len(a.Changes) > 0 })
}

// counts counts the changes of all objects by their action.
func (p *Plan) counts() map[Action]int {
	n := map[Action]int{}
	for _, c := range p.Changes {
		n[c.Action]++
	}
	for _, a := range p.Apps {
		if a.Failed != "" {
			n[Refuse]++
		}
		for _, c := range a.Changes {
			n[c.Action]++
		}
	}
	return n
}

// fieldsOf returns the fields that differ. The content of Secrets is not shown, and mask hides other secrets.
func fieldsOf(before, after *unstructured.Unstructured, mask func(string) string) []Field {
	var fields []Field
	for _, c := range differ.Compare(after, before, mask) {
		fields = append(fields, Field{Path: c.Path, Before: c.Have, After: c.Want})
	}
	return fields
}

// nameOf names an object for people.
func nameOf(id inventory.ObjectID, namespace string) string {
	if id.Namespace == "" || id.Namespace == namespace {
		return id.Kind + "/" + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// sortChanges sorts changes by object.
func sortChanges(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), strings.Compare(string(a.Action), string(b.Action)))
	})
}

// pathOf names an App as "tenant/project/app".
func pathOf(a *v1alpha1.App) string {
	ref, _ := identity.Of(a)
	return ref.Path()
}
