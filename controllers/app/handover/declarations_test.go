package handover

import (
	"slices"
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
	as, broken := func(*Pass) {}, func(p *Pass) { p.Broken = true }
	failed := []metav1.Condition{{Type: v1alpha1.SourceReadyCondition, Status: "False"}}
	cases := map[string]struct {
		change     func(*Pass)
		declared   []string
		done       bool
		generation int64
		declares   bool
	}{
		"it declares it again":      {as, []string{"moved", "a"}, true, 2, true},
		"it no longer does":         {as, []string{"a"}, true, 2, false},
		"it declares nothing":       {as, nil, true, 2, false},
		"it was only rendered":      {as, []string{"a"}, false, 2, false},
		"it waits for a dependency": {as, nil, false, 1, true},
		"its source is broken":      {broken, nil, false, 2, true},
		"it is suspended":           {func(p *Pass) { p.App.Spec.Suspend = true }, []string{"a"}, true, 1, true},
		"it became a Helm app":      {func(p *Pass) { p.App.Spec.Helm = &v1alpha1.HelmSource{} }, []string{"a"}, true, 1, true},
		"it was broken, and is not": {func(p *Pass) { p.App.Status.Conditions = failed }, []string{"a"}, true, 2, false},
		"it waits after a failure":  {func(p *Pass) { p.App.Status.Conditions = failed }, nil, false, 1, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all declarations
			all.note(declaring(gitApp(1), "one", "moved"))
			p := declaring(gitApp(2), "two", c.declared...)
			p.Rendered = c.done
			c.change(&p)
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
	p.Rendered, p.Broken = false, true
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, name := range names {
		p.Recorded = append(p.Recorded, v1alpha1.InventoryEntry{ID: "kubeop-acme-shop_" + name + "__ConfigMap", Version: "v1"})
	}
	all.note(p)
	got, _ := all.of(p.App.Namespace, p.App.Name)
	for _, name := range names {
		if !got.declares(inventory.ObjectID{Namespace: p.App.Namespace, Name: name, Kind: "ConfigMap"}) {
			t.Errorf("the app does not declare %s", name)
		}
	}
}

// TestForgettingAnAppKeepsTheRecordsOfOthers, and drops its own.
func TestForgettingAnAppKeepsTheRecordsOfOthers(t *testing.T) {
	var all declarations
	api, web := gitApp(1), gitApp(1)
	web.Name = "web"
	for _, app := range []*v1alpha1.App{web, api} {
		p := declaring(app, "one", "a")
		p.InLine = true
		all.note(p)
		all.await(app.Namespace, app.Name, true)
	}
	all.await("kubeop-acme-other", "web", true)
	all.forget(api)
	_, apiDeclared := all.of(api.Namespace, api.Name)
	_, webDeclared := all.of(web.Namespace, web.Name)
	if apiDeclared || !webDeclared {
		t.Errorf("the forgotten app has a declaration: %t, the other one: %t", apiDeclared, webDeclared)
	}
	if all.waitsForTurn(api) || !all.waitsForTurn(web) {
		t.Errorf("the forgotten app waits for its turn: %t, the other one: %t", all.waitsForTurn(api), all.waitsForTurn(web))
	}
	if woken := all.takeWaiting(web.Namespace, web.Name); woken != nil {
		t.Errorf("%v are woken by web itself", woken)
	}
	for _, namespace := range []string{web.Namespace, "kubeop-acme-other"} {
		if woken := all.takeWaiting(namespace, "other"); !slices.Equal(woken, []string{"web"}) {
			t.Errorf("in %s, woken are %v", namespace, woken)
		}
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
		"the same, before the time limit":   {gitApp(1), gitApp(1), "one", 12*time.Minute - time.Second, false, true},
		"the same, after the time limit":    {gitApp(1), gitApp(1), "one", 12 * time.Minute, false, false},
		"it waits for its turn to fetch it": {gitApp(1), gitApp(1), "one", 12 * time.Minute, true, true},
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
			if search.revision = ""; search.behind(c.sibling, declaration{input: inputOf(c.said), revision: c.revision}) != (c.sibling.Generation != c.said.Generation) {
				t.Error("it is behind a revision that is not known")
			}
			search.revision, app.Spec.Git = "two", nil
			inline := gitApp(1)
			inline.Spec.Git = nil
			if search.behind(inline, declaration{input: inputOf(inline), revision: c.revision}) {
				t.Error("it is behind an app that has another source")
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
	m.undeclaredFor("web", input{}, at(5))
	if got := m.undeclaredFor("web", input{}, at(9)); got != 4*time.Minute {
		t.Errorf("the sibling has not declared for %s, want 4m", got)
	}
	m.begin(inputOf(gitApp(2)), "three", at(10))
	if got := m.undeclaredFor("web", input{}, at(11)); got != 0 {
		t.Errorf("since the last revision, the sibling has not declared for %s, want 0", got)
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
