package handover

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// declarations remember which objects the Apps of each project declare, so that an object that moves from one App to another is handed over
// instead of deleted. They are of this process: after a restart every App declares its objects anew before anything is deleted.
type declarations struct {
	mu sync.Mutex
	// projects are by namespace, and in it by the App's name.
	projects map[string]map[string]declaration
	// inLine are the Apps that kubeop keeps from their source: their last pass waits for its turn.
	inLine map[types.NamespacedName]bool
	// waiting are, by namespace, the Apps that leave objects to others until these declare or write something.
	waiting map[string]map[string]bool
}

// declaration is what an App declared when its source could last be rendered.
type declaration struct {
	// input is what its last pass was about, and revision the revision of its source then.
	input    input
	revision string
	// objects are sorted. A hash of a name is enough: that two are the same keeps one object too many.
	objects []uint64
}

// input identifies what an App is made from, as far as its own object shows.
type input struct {
	uid        string
	generation int64
	revision   string
	tree       string
}

func inputOf(app metav1.Object) input {
	annotations := app.GetAnnotations()
	return input{string(app.GetUID()), app.GetGeneration(), annotations[v1alpha1.RevisionAnnotation], annotations[v1alpha1.TreeAnnotation]}
}

// sourceOf is where a Git App's objects come from, without the folder; "" for other Apps, which bring theirs along.
func sourceOf(app *v1alpha1.App) string {
	git := app.Spec.Git
	if git == nil {
		return ""
	}
	// A spec can be encoded: it was decoded.
	text, _ := json.Marshal([]any{git.URL, git.Ref, git.SourceRef, git.OCI})
	return string(text)
}

// Pass is what a Reconcile found an App to declare.
type Pass struct {
	App *v1alpha1.App
	// Objects are what the source declares: all of it where Rendered is set.
	Objects  []*unstructured.Unstructured
	Rendered bool
	// SourceRevision is the revision of a Git App's source.
	SourceRevision string
	// Recorded are the entries of the App's inventory.
	Recorded []v1alpha1.InventoryEntry
	// InLine: the App waits for its turn to fetch or to build.
	InLine bool
	// Wrote: objects were written.
	Wrote bool
}

// note records what a pass found the App to declare. A pass that did not read its source, because it waits for a dependency, declares
// nothing. If the source is broken, the earlier declaration stays. note reports whether the declaration changed.
func (d *declarations) note(p Pass) (news bool) {
	app := p.App
	broken := conditions.IsFalse(app, v1alpha1.DependenciesReadyCondition) || conditions.IsFalse(app, v1alpha1.SourceReadyCondition) ||
		conditions.IsFalse(app, v1alpha1.RenderedCondition)
	rendered := p.Objects != nil || p.Rendered
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait(app, p.InLine)
	if app.Spec.Helm != nil || app.Spec.Suspend || (!rendered && !broken) {
		return false
	}
	if d.projects == nil {
		d.projects = map[string]map[string]declaration{}
	}
	if d.projects[app.Namespace] == nil {
		d.projects[app.Namespace] = map[string]declaration{}
	}
	before, known := d.projects[app.Namespace][app.Name]
	now := declaration{input: inputOf(app), revision: p.SourceRevision, objects: before.objects}
	switch {
	case rendered:
		now.objects = hashesOfObjects(p.Objects)
	case !known: // After a restart only the inventory shows what it declared.
		now.objects = hashesOfEntries(p.Recorded)
	}
	d.projects[app.Namespace][app.Name] = now
	return !known || now.input != before.input || now.revision != before.revision || !slices.Equal(now.objects, before.objects)
}

// wait notes whether an App waits for its turn. It is called with the lock held.
func (d *declarations) wait(app *v1alpha1.App, inLine bool) {
	key := types.NamespacedName{Namespace: app.Namespace, Name: app.Name}
	if !inLine {
		delete(d.inLine, key)
		return
	}
	if d.inLine == nil {
		d.inLine = map[types.NamespacedName]bool{}
	}
	d.inLine[key] = true
}

// waitsForTurn reports whether it is kubeop that keeps an App from its source.
func (d *declarations) waitsForTurn(app *v1alpha1.App) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inLine[types.NamespacedName{Namespace: app.Namespace, Name: app.Name}]
}

func hashesOfObjects(objects []*unstructured.Unstructured) []uint64 {
	var hashes []uint64
	for _, o := range objects {
		hashes = append(hashes, hashOf(inventory.IDOf(o)))
	}
	slices.Sort(hashes)
	return hashes
}

func hashesOfEntries(entries []v1alpha1.InventoryEntry) []uint64 {
	var hashes []uint64
	for _, e := range entries {
		if id, err := inventory.ParseObjectID(e.ID); err == nil {
			hashes = append(hashes, hashOf(id))
		}
	}
	slices.Sort(hashes)
	return hashes
}

// of returns what an App declared, false when it has not done so yet.
func (d *declarations) of(namespace, app string) (declaration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.projects[namespace][app]
	return found, ok
}

func (d *declarations) forget(app *v1alpha1.App) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.projects[app.Namespace], app.Name)
	if len(d.projects[app.Namespace]) == 0 {
		delete(d.projects, app.Namespace)
	}
	delete(d.waiting[app.Namespace], app.Name)
	d.wait(app, false)
}

// await notes that an App waits for others of its namespace, or that it no longer does.
func (d *declarations) await(namespace, app string, waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !waits {
		delete(d.waiting[namespace], app)
		return
	}
	if d.waiting == nil {
		d.waiting = map[string]map[string]bool{}
	}
	if d.waiting[namespace] == nil {
		d.waiting[namespace] = map[string]bool{}
	}
	d.waiting[namespace][app] = true
}

// takeWaiting returns the Apps of a namespace that wait, but for one, and no longer has them wait.
func (d *declarations) takeWaiting(namespace, but string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.waiting[namespace] {
		if name != but {
			names = append(names, name)
			delete(d.waiting[namespace], name)
		}
	}
	if len(d.waiting[namespace]) == 0 {
		delete(d.waiting, namespace)
	}
	return names
}

// declares reports whether the App declared an object.
func (d declaration) declares(id inventory.ObjectID) bool {
	_, found := slices.BinarySearch(d.objects, hashOf(id))
	return found
}

// hashOf identifies an object within its project's namespace.
func hashOf(id inventory.ObjectID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.Group + "/" + id.Kind + "/" + id.Name)) // It never fails.
	return h.Sum64()
}
