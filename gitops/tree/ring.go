package tree

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	// longestRing is how many apps of a ring are named.
	longestRing = 20
	// maxRings is how many rings are looked for among apps that are known to lie on one; each costs a walk.
	maxRings = 100
)

// Needs returns the Apps that an app depends on, in the order of its dependsOn.
func Needs(app *v1alpha1.App) []client.ObjectKey {
	var keys []client.ObjectKey
	for i := range app.Spec.DependsOn {
		keys = append(keys, need(app, i))
	}
	return slices.DeleteFunc(keys, func(k client.ObjectKey) bool { return k.Name == "" })
}

// need returns the App that a dependency names; an empty key for another kind.
func need(app *v1alpha1.App, i int) client.ObjectKey {
	d := &app.Spec.DependsOn[i]
	if d.GroupVersionKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind) {
		return client.ObjectKey{}
	}
	namespace := d.Namespace(app.Labels[v1alpha1.TenantLabel], app.Labels[v1alpha1.ProjectLabel])
	return client.ObjectKey{Namespace: namespace, Name: d.Name}
}

// reportRings reports each app that depends on itself, directly or over others: none of them could ever be delivered.
func (p *pass) reportRings() {
	apps := map[client.ObjectKey]*v1alpha1.App{}
	for _, app := range p.tree.Apps {
		apps[client.ObjectKeyFromObject(app)] = app
	}
	knots := knots{apps: apps, at: map[client.ObjectKey]int{}, low: map[client.ObjectKey]int{}, of: map[client.ObjectKey]int{}, size: map[int]int{}}
	for _, app := range p.tree.Apps {
		knots.visit(client.ObjectKeyFromObject(app))
	}
	rings := 0
	for _, app := range p.tree.Apps {
		key := client.ObjectKeyFromObject(app)
		if !knots.tied(key) {
			continue
		}
		if rings++; rings > maxRings {
			p.report(unitOf(app), finding{file: p.fileOf(app), why: "dependsOn makes a ring"})
			continue
		}
		p.reportRing(app, knots.ring(key), apps)
	}
}

func unitOf(app *v1alpha1.App) unit {
	return unit{app.Labels[v1alpha1.TenantLabel], app.Labels[v1alpha1.ProjectLabel]}
}

// fileOf returns the file that declares an app, as the pass names it.
func (p *pass) fileOf(app *v1alpha1.App) string {
	folder := strings.TrimPrefix(app.Annotations[v1alpha1.FolderAnnotation], path.Clean(p.scope.Path))
	return join(strings.TrimPrefix(folder, "/"), appFile)
}

func (p *pass) reportRing(app *v1alpha1.App, ring []client.ObjectKey, apps map[client.ObjectKey]*v1alpha1.App) {
	u, file := unitOf(app), p.fileOf(app)
	var names []string
	for _, key := range ring {
		name, project := key.Name, apps[key].Labels[v1alpha1.ProjectLabel]
		if project != u.project {
			name = project + "/" + name
		}
		names = append(names, name)
	}
	if len(names) > longestRing {
		names = append(names[:longestRing:longestRing], fmt.Sprintf("(%d more)", len(ring)-1-longestRing), names[0])
	}
	i := 0
	for need(app, i) != ring[1] {
		i++
	}
	line := p.read(file).line(fmt.Sprintf("spec.dependsOn[%d].name", i))
	p.report(u, finding{file: file, line: line, why: "dependsOn makes a ring: " + strings.Join(names, " → ")})
}

// knots finds the apps that lie on rings, as strongly connected components (Tarjan, 1972).
type knots struct {
	apps  map[client.ObjectKey]*v1alpha1.App
	at    map[client.ObjectKey]int // the turn at which an app was first visited, from 1
	low   map[client.ObjectKey]int
	of    map[client.ObjectKey]int // the knot an app is in, once that is complete
	size  map[int]int              // how many apps a knot has
	stack []client.ObjectKey
}

func (k *knots) visit(app client.ObjectKey) {
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
func (k *knots) next(app client.ObjectKey) []client.ObjectKey {
	return slices.DeleteFunc(Needs(k.apps[app]), func(key client.ObjectKey) bool { return k.apps[key] == nil })
}

// tied reports whether an app lies on a ring.
func (k *knots) tied(app client.ObjectKey) bool {
	return k.size[k.of[app]] > 1 || slices.Contains(k.next(app), app)
}

// ring returns a shortest way from a tied app back to itself, both ends named.
func (k *knots) ring(app client.ObjectKey) []client.ObjectKey {
	cameFrom := map[client.ObjectKey]client.ObjectKey{}
	for queue := []client.ObjectKey{app}; len(queue) > 0; queue = queue[1:] {
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

func way(cameFrom map[client.ObjectKey]client.ObjectKey, app, last client.ObjectKey) []client.ObjectKey {
	ring := []client.ObjectKey{app}
	for at := last; at != app; at = cameFrom[at] {
		ring = append(ring, at)
	}
	ring = append(ring, app)
	slices.Reverse(ring)
	return ring
}
