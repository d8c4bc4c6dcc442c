package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	// longestRing is how many apps of a ring are named.
	longestRing = 20
	// maxRings is how many rings are looked for among apps that are known to lie on one; each costs a walk.
	maxRings = 100
)

// needs returns the Apps that an app depends on, in the order of its dependsOn.
func needs(app *v1alpha1.App, at Ref) []Ref {
	var refs []Ref
	for i := range app.Spec.DependsOn {
		refs = append(refs, need(app, at, i))
	}
	return slices.DeleteFunc(refs, func(r Ref) bool { return r == Ref{} })
}

// need returns the App that a dependency names; the zero Ref for another kind. No dependency leads out of the tenant.
func need(app *v1alpha1.App, at Ref, i int) Ref {
	d := &app.Spec.DependsOn[i]
	if d.GroupVersionKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind) {
		return Ref{}
	}
	return Ref{Tenant: at.Tenant, Project: cmp.Or(d.Project, at.Project), App: d.Name}
}

// markRings refuses each app that depends on itself, directly or over others: none of them could ever be delivered. An app
// is not to blame alone: it is put back once the others let it.
func (p *pass) markRings(t, before *Tenant) {
	apps := map[Ref]*App{}
	for _, project := range t.Projects {
		for _, app := range project.Apps {
			if len(app.plainly().Needs) > 0 {
				apps[app.ref] = app.plainly()
			}
		}
	}
	k := knots{apps: apps, at: map[Ref]int{}, low: map[Ref]int{}, of: map[Ref]int{}, size: map[int]int{}}
	rings := 0
	for i, project := range t.Projects {
		marked := slices.Clone(project.Apps)
		for j, app := range project.Apps {
			marked[j] = p.marked(app, &k, &rings)
		}
		if !slices.Equal(marked, project.Apps) {
			t.Projects[i] = project.with(marked)
		}
	}
	if before != nil {
		t.keep(before)
	}
}

// plainly is the app as its folder alone says.
func (a *App) plainly() *App {
	if a.plain != nil {
		return a.plain
	}
	return a
}

// marked returns the app with or without a ring, as it is now.
func (p *pass) marked(app *App, k *knots, rings *int) *App {
	plain := app.plainly()
	if len(plain.Needs) == 0 {
		return plain
	}
	if k.visit(plain.ref); !k.tied(plain.ref) {
		return plain
	}
	found := finding{file: join(plain.dir, appFile), why: "dependsOn makes a ring"}
	if *rings++; *rings <= maxRings {
		found = p.ringOf(plain, k.ring(plain.ref))
	}
	problems := p.problems(plain.ref, found)
	if app.plain != nil && slices.Equal(app.problems, problems) {
		return app
	}
	ringed := *plain
	ringed.plain, ringed.object, ringed.problems = plain, nil, problems
	return &ringed
}

// with returns the project with other apps in the place of its own.
func (p *Project) with(apps []*App) *Project {
	now := *p
	now.Apps = apps
	now.count()
	return &now
}

// keep puts the projects of before in the place of equal ones, so that what did not change is the same node.
func (t *Tenant) keep(before *Tenant) {
	for i, project := range t.Projects {
		was := find(before.Projects, project.ref.Project)
		if was != nil && was != project && was.digest == project.digest && slices.Equal(was.Apps, project.Apps) && !was.unread() {
			t.Projects[i] = was
		}
	}
}

func (p *pass) ringOf(app *App, ring []Ref) finding {
	file := join(app.dir, appFile)
	var names []string
	for _, ref := range ring {
		name := ref.App
		if ref.Project != app.ref.Project {
			name = ref.Project + "/" + name
		}
		names = append(names, name)
	}
	if len(names) > longestRing {
		names = append(names[:longestRing:longestRing], fmt.Sprintf("(%d more)", len(ring)-1-longestRing), names[0])
	}
	typed, i := decode(&app.node, &v1alpha1.App{}), 0
	for need(typed, app.ref, i) != ring[1] {
		i++
	}
	line := p.read(file).line(fmt.Sprintf("spec.dependsOn[%d].name", i))
	return finding{file: file, line: line, why: "dependsOn makes a ring: " + strings.Join(names, " → ")}
}

// knots finds the apps that lie on rings, as strongly connected components (Tarjan, 1972).
type knots struct {
	apps  map[Ref]*App
	at    map[Ref]int // the order of the visit, from 1
	low   map[Ref]int // the earliest app that can be reached
	of    map[Ref]int // the knot an app is in, once that is complete
	size  map[int]int // how many apps a knot has
	stack []Ref
}

func (k *knots) visit(app Ref) {
	if k.at[app] != 0 {
		return
	}
	k.at[app] = len(k.at) + 1
	k.low[app] = k.at[app]
	k.stack = append(k.stack, app)
	for _, next := range k.next(app) {
		k.visit(next)
		if k.of[next] == 0 {
			k.low[app] = min(k.low[app], k.low[next])
		}
	}
	if k.low[app] != k.at[app] {
		return
	}
	from := slices.Index(k.stack, app)
	for _, member := range k.stack[from:] {
		k.of[member] = k.at[app]
		k.size[k.at[app]]++
	}
	k.stack = k.stack[:from]
}

// next returns the declared apps that an app depends on.
func (k *knots) next(app Ref) []Ref {
	if k.apps[app] == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(k.apps[app].Needs), func(need Ref) bool { return k.apps[need] == nil })
}

// tied reports whether an app lies on a ring.
func (k *knots) tied(app Ref) bool {
	return k.size[k.of[app]] > 1 || slices.Contains(k.next(app), app)
}

// ring returns a shortest way from a tied app back to itself, both ends named.
func (k *knots) ring(app Ref) []Ref {
	cameFrom := map[Ref]Ref{}
	for queue := []Ref{app}; len(queue) > 0; queue = queue[1:] {
		for _, next := range k.next(queue[0]) {
			if next == app {
				return way(cameFrom, app, queue[0])
			}
			if _, seen := cameFrom[next]; !seen && k.of[next] == k.of[app] {
				cameFrom[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func way(cameFrom map[Ref]Ref, app, last Ref) []Ref {
	ring := []Ref{app}
	for at := last; at != app; at = cameFrom[at] {
		ring = append(ring, at)
	}
	ring = append(ring, app)
	slices.Reverse(ring)
	return ring
}
