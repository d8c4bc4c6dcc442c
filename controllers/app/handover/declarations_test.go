package handover

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/inventory"
)

func gitApp(generation int64) *v1alpha1.App {
	return &v1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "api", UID: "1", Generation: generation},
		Spec:       v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: "https://git.example.com/acme.git"}},
	}
}

// declaring is a pass in which an App declares ConfigMaps.
func declaring(app *v1alpha1.App, revision string, names ...string) Pass {
	p := Pass{App: app, SourceRevision: revision, Rendered: true}
	for _, name := range names {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("ConfigMap")
		o.SetName(name)
		p.Objects = append(p.Objects, o)
	}
	return p
}

// TestNoteRecordsTheDeclarationsOfAPass starts after a pass of generation 1 that declared one object.
func TestNoteRecordsTheDeclarationsOfAPass(t *testing.T) {
	blocked := []metav1.Condition{{Type: v1alpha1.DependenciesReadyCondition, Status: "Unknown"}, {Type: v1alpha1.SourceReadyCondition, Status: "Unknown"}}
	broken := []metav1.Condition{{Type: v1alpha1.DependenciesReadyCondition, Status: "True"}, {Type: v1alpha1.SourceReadyCondition, Status: "False"}}
	cases := map[string]struct {
		conditions []metav1.Condition
		declared   []string
		done       bool
		generation int64
		declares   bool
	}{
		"it declares it again":      {nil, []string{"moved", "a"}, true, 2, true},
		"it no longer does":         {nil, []string{"a"}, true, 2, false},
		"it declares nothing":       {nil, nil, true, 2, false},
		"it waits for a dependency": {blocked, nil, false, 1, true},
		"its source is broken":      {broken, nil, false, 2, true},
		"it was broken, and is not": {broken, []string{"a"}, true, 2, false},
		"the pass has no result":    {nil, nil, false, 1, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all declarations
			all.note(declaring(gitApp(1), "one", "moved"))
			p := declaring(gitApp(2), "two", c.declared...)
			p.Rendered, p.App.Status.Conditions = c.done, c.conditions
			all.note(p)
			got, ok := all.of(p.App.Namespace, p.App.Name)
			if !ok || got.input.generation != c.generation {
				t.Errorf("the declaration is of generation %d, want %d", got.input.generation, c.generation)
			}
			if declares := got.declares(inventory.ObjectID{Namespace: p.App.Namespace, Name: "moved", Kind: "ConfigMap"}); declares != c.declares {
				t.Errorf("the app declares the object: %t, want %t", declares, c.declares)
			}
			all.forget(p.App)
			if _, ok := all.of(p.App.Namespace, p.App.Name); ok || len(all.projects) != 0 {
				t.Error("the declaration of a deleted app is still remembered")
			}
		})
	}
}

// TestABrokenAppKeepsItsObjectsOverARestart: a sibling that also declares one of them may not take it in that time.
func TestABrokenAppKeepsItsObjectsOverARestart(t *testing.T) {
	var all declarations
	p := declaring(gitApp(2), "")
	p.Rendered, p.App.Status.Conditions = false, []metav1.Condition{{Type: v1alpha1.SourceReadyCondition, Status: "False"}}
	p.Recorded = []v1alpha1.InventoryEntry{{ID: "kubeop-acme-shop_own__ConfigMap", Version: "v1"}}
	all.note(p)
	got, ok := all.of(p.App.Namespace, p.App.Name)
	if !ok || !got.declares(inventory.ObjectID{Namespace: p.App.Namespace, Name: "own", Kind: "ConfigMap"}) {
		t.Errorf("the app declares %v", got.objects)
	}
}

func TestASiblingIsBehindUntilItReconciledTheCommit(t *testing.T) {
	now := time.Unix(10_000, 0)
	other := gitApp(1)
	other.Spec.Git.URL = "https://git.example.com/other.git"
	cases := map[string]struct {
		sibling  *v1alpha1.App
		said     *v1alpha1.App
		revision string
		stale    time.Duration
		inLine   bool
		want     bool
	}{
		"it has reconciled everything":      {gitApp(1), gitApp(1), "two", 0, false, false},
		"its spec is newer":                 {gitApp(2), gitApp(1), "two", 0, false, true},
		"it has not reconciled the commit":  {gitApp(1), gitApp(1), "one", 0, false, true},
		"the same, before the time limit":   {gitApp(1), gitApp(1), "one", 11 * time.Minute, false, true},
		"the same, after the time limit":    {gitApp(1), gitApp(1), "one", 13 * time.Minute, false, false},
		"it waits for its turn to fetch it": {gitApp(1), gitApp(1), "one", 13 * time.Minute, true, true},
		"it has another source":             {other, other, "one", 0, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			transfers, app := &Transfers{}, gitApp(1)
			app.UID = "2"
			transfers.waiting.Get(app).leftAt = now.Add(-c.stale)
			transfers.declarations.note(Pass{App: c.sibling, InLine: c.inLine})
			search := transfers.Search((&subject.Subjects{Clock: testclock.NewFakePassiveClock(now)}).New(app), "two")
			if got := search.behind(c.sibling, declaration{input: inputOf(c.said), revision: c.revision}); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

// TestSiblingsGetTheirTimeForEachRevision: a long wait for one revision takes no time from later revisions.
func TestSiblingsGetTheirTimeForEachRevision(t *testing.T) {
	m, app := &waiting{}, gitApp(1)
	at := func(minute int) time.Time { return time.Unix(int64(minute)*60, 0) }
	m.begin(inputOf(app), "one", at(1))
	m.begin(inputOf(app), "one", at(2))
	if m.leftAt != at(1) || m.declaredAt != at(1) {
		t.Errorf("the times are %s, %s", m.leftAt, m.declaredAt)
	}
	m.begin(inputOf(app), "two", at(3))
	if m.leftAt != at(3) || m.declaredAt != at(1) {
		t.Errorf("the times are %s, %s", m.leftAt, m.declaredAt)
	}
	m.begin(inputOf(gitApp(2)), "two", at(4))
	if m.leftAt != at(4) || m.declaredAt != at(4) {
		t.Errorf("the times are %s, %s", m.leftAt, m.declaredAt)
	}
}

// TestSiblingsAreWokenOncePerRevision: two apps that wait for each other do not keep each other busy.
func TestSiblingsAreWokenOncePerRevision(t *testing.T) {
	m, app, now := &waiting{}, gitApp(1), time.Unix(10_000, 0)
	m.begin(inputOf(app), "one", now)
	if !m.wakes(now) || m.wakes(now.Add(time.Second)) || !m.wakes(now.Add(step.LastLook)) {
		t.Error("a sibling is woken twice within one revision")
	}
	m.begin(inputOf(app), "two", now.Add(step.LastLook))
	if !m.wakes(now.Add(step.LastLook + time.Second)) {
		t.Error("a sibling is not woken for another revision")
	}
}

// TestADeclarationIsNewsIfAnyPartOfItChanged, because siblings are reconciled then.
func TestADeclarationIsNewsIfAnyPartOfItChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		next Pass
		want bool
	}{
		"the same":                        {declaring(gitApp(1), "one", "a", "b"), false},
		"the same in another order":       {declaring(gitApp(1), "one", "b", "a"), false},
		"another generation":              {declaring(gitApp(2), "one", "a", "b"), true},
		"another revision":                {declaring(gitApp(1), "two", "a", "b"), true},
		"other objects":                   {declaring(gitApp(1), "one", "a", "c"), true},
		"another revision, other objects": {declaring(gitApp(1), "two", "a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			var all declarations
			if !all.note(declaring(gitApp(1), "one", "a", "b")) {
				t.Error("the first declaration is no news")
			}
			if got := all.note(tc.next); got != tc.want {
				t.Errorf("the declaration is news: %t", got)
			}
		})
	}
}
