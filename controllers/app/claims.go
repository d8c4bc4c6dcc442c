package app

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// claims remember what the apps of each project declare, so that an object that moves from one app to another is handed over
// instead of deleted. They are of this process: after a restart every app says anew what it declares before anything is
// deleted.
type claims struct {
	mu sync.Mutex
	// projects are by namespace, and in it by the app's name.
	projects map[string]map[string]claim
	// waiting are, by namespace, the apps that leave objects for others until these say or do something.
	waiting map[string]map[string]bool
}

// claim is what an app declared when its source could last be rendered.
type claim struct {
	// about is what its last pass was about, and revision the revision of its source then.
	about    about
	revision string
	// objects are sorted. A hash of a name is enough: that two are the same keeps one object that nobody wants.
	objects []uint64
}

// about is what an app is made from, as far as the app itself says.
type about struct {
	uid        string
	generation int64
	revision   string
	tree       string
}

func aboutOf(app metav1.Object) about {
	annotations := app.GetAnnotations()
	return about{string(app.GetUID()), app.GetGeneration(), annotations[v1alpha1.RevisionAnnotation], annotations[v1alpha1.TreeAnnotation]}
}

// sourceOf is where a Git app's objects come from, without the folder; "" for other apps, which bring theirs along.
func sourceOf(app *v1alpha1.App) string {
	git := app.Spec.Git
	if git == nil {
		return ""
	}
	// A spec can be encoded: it was decoded.
	text, _ := json.Marshal([]any{git.URL, git.Ref, git.SourceRef, git.OCI})
	return string(text)
}

// note takes down what a pass found the app to declare. A pass that did not get to its source, because it waits for a
// dependency, says nothing; one whose source is broken says that it stays as it was. It reports whether that is news.
func (c *claims) note(s *scope) (news bool) {
	app := s.app
	broken := conditions.IsFalse(app, v1alpha1.DependenciesReadyCondition) || conditions.IsFalse(app, v1alpha1.SourceReadyCondition) ||
		conditions.IsFalse(app, v1alpha1.RenderedCondition)
	rendered := s.objects != nil || s.declared
	if app.Spec.Helm != nil || app.Spec.Suspend || (!rendered && !broken) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.projects == nil {
		c.projects = map[string]map[string]claim{}
	}
	if c.projects[app.Namespace] == nil {
		c.projects[app.Namespace] = map[string]claim{}
	}
	was, known := c.projects[app.Namespace][app.Name]
	now := claim{about: aboutOf(app), revision: s.source.revision, objects: was.objects}
	if rendered || !known {
		now.objects = hashesOf(s, rendered)
	}
	c.projects[app.Namespace][app.Name] = now
	return !known || now.about != was.about || now.revision != was.revision || !slices.Equal(now.objects, was.objects)
}

// hashesOf returns what a pass found the app to declare or, where it found nothing out, what is recorded: after a restart
// nothing else tells how it was.
func hashesOf(s *scope, rendered bool) []uint64 {
	var hashes []uint64
	for _, o := range s.objects {
		hashes = append(hashes, hashOf(inventory.IDOf(o)))
	}
	for _, e := range s.inventory.Entries {
		if id, err := inventory.ParseObjectID(e.ID); err == nil && !rendered {
			hashes = append(hashes, hashOf(id))
		}
	}
	slices.Sort(hashes)
	return hashes
}

// of returns what an app declared, false when it has not said so yet.
func (c *claims) of(namespace, app string) (claim, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.projects[namespace][app]
	return found, ok
}

func (c *claims) forget(app metav1.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.projects[app.GetNamespace()], app.GetName())
	if len(c.projects[app.GetNamespace()]) == 0 {
		delete(c.projects, app.GetNamespace())
	}
	delete(c.waiting[app.GetNamespace()], app.GetName())
}

// await notes that an app waits for others of its namespace, or that it no longer does.
func (c *claims) await(namespace, app string, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !waits {
		delete(c.waiting[namespace], app)
		return
	}
	if c.waiting == nil {
		c.waiting = map[string]map[string]bool{}
	}
	if c.waiting[namespace] == nil {
		c.waiting[namespace] = map[string]bool{}
	}
	c.waiting[namespace][app] = true
}

// awaiting returns the apps of a namespace that wait, but for one, and takes them down as told.
func (c *claims) awaiting(namespace, but string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.waiting[namespace] {
		if name != but {
			names = append(names, name)
			delete(c.waiting[namespace], name)
		}
	}
	if len(c.waiting[namespace]) == 0 {
		delete(c.waiting, namespace)
	}
	return names
}

// declares reports whether the app declared an object.
func (c claim) declares(id inventory.ObjectID) bool {
	_, found := slices.BinarySearch(c.objects, hashOf(id))
	return found
}

// hashOf stands for an object of a project. Its namespace is the project's.
func hashOf(id inventory.ObjectID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.Group + "/" + id.Kind + "/" + id.Name)) // It never fails.
	return h.Sum64()
}
