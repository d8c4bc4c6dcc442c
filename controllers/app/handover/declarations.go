package handover

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// declarations records which objects the Apps of each project declare, so that an object that moves from one App to another is handed over
// instead of deleted. The record is in memory only: after a restart, every App declares its objects again before anything is deleted.
type declarations struct {
	mu sync.Mutex
	// projects is keyed by namespace, then by the App's name.
	projects map[string]map[string]declaration
	// inLine are the Apps that have not reached their source yet because they wait for their turn.
	inLine map[types.NamespacedName]bool
	// waiting are, by namespace, the Apps that leave objects to other Apps and wait until these declare or write objects.
	waiting map[string]map[string]bool
	// news counts by namespace how often waiting Apps were woken.
	news map[string]int
}

// declaration has the objects of an App's last successful rendering.
type declaration struct {
	// input is the input of the App's last pass, and revision its source's revision then.
	input    input
	revision string
	// objects are sorted hashes of names. If two hashes collide, an object is kept that could be deleted, which is harmless.
	objects []uint64
}

// input identifies the inputs of an App that are in the App object itself.
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

// sourceOf identifies the source of a Git App, without the folder; "" for other Apps, whose source is part of their input.
func sourceOf(app *v1alpha1.App) string {
	git := app.Spec.Git
	if git == nil {
		return ""
	}
	// A decoded spec can always be encoded.
	text, _ := json.Marshal([]any{git.URL, git.Ref, git.SourceRef, git.OCI})
	return string(text)
}

// Pass is the result of one Reconcile of an App that this package needs.
type Pass struct {
	App *v1alpha1.App
	// Objects are the objects in the source; the list is complete if Rendered is set.
	Objects  []*unstructured.Unstructured
	Rendered bool
	// SourceRevision is the revision of a Git App's source.
	SourceRevision string
	// Recorded are the entries of the App's inventory.
	Recorded []v1alpha1.InventoryEntry
	// Broken: what the App depends on, its source or its rendering failed.
	Broken bool
	// InLine: the App waits for its turn to fetch or to build.
	InLine bool
	// Wrote: objects were written.
	Wrote bool
}

// note records the objects that a pass found. If the pass did not read the source, because it waits for a dependency, the App declares
// nothing. If the source is broken, the earlier declaration stays. note reports whether the declaration changed.
func (d *declarations) note(p Pass) (news bool) {
	app := p.App
	rendered := p.Objects != nil || p.Rendered
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait(app, p.InLine)
	if app.Spec.Helm != nil || app.Spec.Suspend || (!rendered && !p.Broken) {
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
	case !known: // After a restart, only the inventory shows the App's objects.
		now.objects = hashesOfEntries(p.Recorded)
	}
	d.projects[app.Namespace][app.Name] = now
	return now.input != before.input || now.revision != before.revision || !slices.Equal(now.objects, before.objects)
}

// wait records whether an App waits for its turn. The caller holds the lock.
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

// waitsForTurn reports whether an App has not reached its source because it waits for its turn.
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

// of returns the declaration of an App, and false if there is none yet.
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

// await records whether an App waits for other Apps of its namespace.
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

// newsOf returns a number that changes when waiting Apps of a namespace are woken.
func (d *declarations) newsOf(namespace string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.news[namespace]
}

// takeWaiting returns the waiting Apps of a namespace, except one, and removes them from the record.
func (d *declarations) takeWaiting(namespace, but string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.news == nil {
		d.news = map[string]int{}
	}
	d.news[namespace]++
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
	_, _ = h.Write([]byte(id.Group + "/" + id.Kind + "/" + id.Name)) // Write never fails.
	return h.Sum64()
}
