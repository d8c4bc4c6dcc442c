package app

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

func gitApp(generation int64) *v1alpha1.App {
	return &v1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "api", UID: "1", Generation: generation},
		Spec:       v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: "https://git.example.com/acme.git"}},
	}
}

func declaring(app *v1alpha1.App, revision string, names ...string) *scope {
	s := &scope{app: app, revision: revision, source: fetched{revision: revision}, declared: true, memory: &remembered{}}
	for _, name := range names {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("ConfigMap")
		o.SetName(name)
		s.objects = append(s.objects, o)
	}
	return s
}

// TestNote goes on from a pass of generation 1 that declared one object.
func TestNote(t *testing.T) {
	blocked := []metav1.Condition{{Type: v1alpha1.DependenciesReadyCondition, Status: "Unknown"}, {Type: v1alpha1.SourceReadyCondition, Status: "Unknown"}}
	broken := []metav1.Condition{{Type: v1alpha1.DependenciesReadyCondition, Status: "True"}, {Type: v1alpha1.SourceReadyCondition, Status: "False"}}
	cases := map[string]struct {
		conditions []metav1.Condition
		declared   []string
		done       bool
		generation int64
		declares   bool
	}{
		"it declares it again":         {nil, []string{"moved", "a"}, true, 2, true},
		"it no longer does":            {nil, []string{"a"}, true, 2, false},
		"it declares nothing":          {nil, nil, true, 2, false},
		"it waits for a dependency":    {blocked, nil, false, 1, true},
		"its source is broken":         {broken, nil, false, 2, true},
		"it was broken, and is not":    {broken, []string{"a"}, true, 2, false},
		"nothing is known of the pass": {nil, nil, false, 1, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all claims
			all.note(declaring(gitApp(1), "one", "moved"))
			s := declaring(gitApp(2), "two", c.declared...)
			s.declared, s.app.Status.Conditions = c.done, c.conditions
			all.note(s)
			got, ok := all.of(s.app.Namespace, s.app.Name)
			if !ok || got.about.generation != c.generation {
				t.Errorf("it said so at generation %d, want %d", got.about.generation, c.generation)
			}
			if declares := got.declares(inventory.ObjectID{Namespace: s.app.Namespace, Name: "moved", Kind: "ConfigMap"}); declares != c.declares {
				t.Errorf("it declares the object: %t", declares)
			}
			all.forget(s.app)
			if _, ok := all.of(s.app.Namespace, s.app.Name); ok || len(all.projects) != 0 {
				t.Error("it is not forgotten")
			}
		})
	}
}

// TestABrokenAppKeepsItsObjectsOverARestart: a sibling that declares one of them, too, may not take it meanwhile.
func TestABrokenAppKeepsItsObjectsOverARestart(t *testing.T) {
	var all claims
	s := declaring(gitApp(2), "")
	s.declared, s.app.Status.Conditions = false, []metav1.Condition{{Type: v1alpha1.SourceReadyCondition, Status: "False"}}
	s.inventory.Entries = []v1alpha1.InventoryEntry{{ID: "kubeop-acme-shop_own__ConfigMap", Version: "v1"}}
	all.note(s)
	got, ok := all.of(s.app.Namespace, s.app.Name)
	if !ok || !got.declares(inventory.ObjectID{Namespace: s.app.Namespace, Name: "own", Kind: "ConfigMap"}) {
		t.Errorf("it declares %v", got.objects)
	}
}

// kept is an app that waits for its turn.
func kept(condition string) *v1alpha1.App {
	app := gitApp(1)
	conditions.MarkUnknown(app, condition, v1alpha1.WaitingForTurnReason, "too many at once")
	return app
}

func TestASiblingIsBehind(t *testing.T) {
	now := time.Unix(10_000, 0)
	other := gitApp(1)
	other.Spec.Git.URL = "https://git.example.com/other.git"
	cases := map[string]struct {
		sibling  *v1alpha1.App
		said     *v1alpha1.App
		revision string
		stale    time.Duration
		want     bool
	}{
		"it has seen all":                       {gitApp(1), gitApp(1), "two", 0, false},
		"its spec is newer":                     {gitApp(2), gitApp(1), "two", 0, true},
		"it has yet to look at the commit":      {gitApp(1), gitApp(1), "one", 0, true},
		"it has yet to, and the time is not up": {gitApp(1), gitApp(1), "one", 11 * time.Minute, true},
		"it had the time to":                    {gitApp(1), gitApp(1), "one", 13 * time.Minute, false},
		"it waits for its turn to fetch it":     {kept(v1alpha1.SourceReadyCondition), gitApp(1), "one", 13 * time.Minute, true},
		"it is made from something else":        {other, other, "one", 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Clock: testclock.NewFakePassiveClock(now)}
			s := declaring(gitApp(1), "two")
			s.memory.staleSince = now.Add(-c.stale)
			if got := r.behind(s, c.sibling, claim{about: aboutOf(c.said), revision: c.revision}); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestSiblingsGetTheirTimeForEachRevision: what is held for long takes no time from the apps that may want what leaves later.
func TestSiblingsGetTheirTimeForEachRevision(t *testing.T) {
	m, app := &remembered{}, gitApp(1)
	at := func(minute int) time.Time { return time.Unix(int64(minute)*60, 0) }
	m.delivers(aboutOf(app), "one", at(1))
	m.delivers(aboutOf(app), "one", at(2))
	if m.staleSince != at(1) || m.declaredAt != at(1) {
		t.Errorf("since %s, %s", m.staleSince, m.declaredAt)
	}
	m.delivers(aboutOf(app), "two", at(3))
	if m.staleSince != at(3) || m.declaredAt != at(1) {
		t.Errorf("since %s, %s", m.staleSince, m.declaredAt)
	}
	m.delivers(aboutOf(gitApp(2)), "two", at(4))
	if m.staleSince != at(4) || m.declaredAt != at(4) {
		t.Errorf("since %s, %s", m.staleSince, m.declaredAt)
	}
}

// TestSiblingsAreWokenSeldom: two apps that each wait for the other's word do not keep each other busy.
func TestSiblingsAreWokenSeldom(t *testing.T) {
	m, app, now := &remembered{}, gitApp(1), time.Unix(10_000, 0)
	m.delivers(aboutOf(app), "one", now)
	if !m.wakes(now) || m.wakes(now.Add(time.Second)) || !m.wakes(now.Add(lastLook)) {
		t.Error("within one revision")
	}
	m.delivers(aboutOf(app), "two", now.Add(lastLook))
	if !m.wakes(now.Add(lastLook + time.Second)) {
		t.Error("for another revision")
	}
}
