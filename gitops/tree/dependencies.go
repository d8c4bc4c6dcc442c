package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/cycle"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

const (
	// maxNamed is how many apps of a cycle a message names.
	maxNamed = 20
	// maxCycles is for how many apps of a tenant the message names the cycle. Each one costs a search of the graph.
	maxCycles = 100
)

// dependenciesOf returns the Apps that an app depends on, in the order of its dependsOn.
func dependenciesOf(app *v1alpha1.App, at identity.Ref) []identity.Ref {
	var refs []identity.Ref
	for i := range app.Spec.DependsOn {
		refs = append(refs, dependency(app, at, i))
	}
	return slices.DeleteFunc(refs, func(r identity.Ref) bool { return r == identity.Ref{} })
}

// dependency returns the App that a dependency names; the zero Ref for another kind. The App belongs to the same tenant or to the platform
// itself.
func dependency(app *v1alpha1.App, at identity.Ref, i int) identity.Ref {
	d := &app.Spec.DependsOn[i]
	if d.GroupVersionKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind) {
		return identity.Ref{}
	}
	tenant := at.Tenant
	if d.Platform {
		tenant = v1alpha1.PlatformTenant
	}
	return identity.Ref{Tenant: tenant, Project: cmp.Or(d.Project, at.Project), App: d.Name}
}

// refuseCycles refuses each app on a dependency cycle, because none of them could ever be delivered. All apps of a cycle are refused, not
// only the one whose change closed it. They are accepted again when the cycle is gone.
func (p *pass) refuseCycles(t *Tenant) {
	apps := map[identity.Ref]*App{}
	for _, project := range t.Projects {
		for _, app := range project.Apps {
			if app = app.fromFolder(); len(app.DependsOn) > 0 {
				apps[app.ref] = app
			}
		}
	}
	// An app that is not declared, or that depends on nothing, lies on no cycle.
	graph := cycle.New(func(app identity.Ref) []identity.Ref {
		if apps[app] == nil {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(apps[app].DependsOn), func(on identity.Ref) bool { return apps[on] == nil })
	})
	found := 0
	for i, project := range t.Projects {
		now := slices.Clone(project.Apps)
		for j, app := range project.Apps {
			if plain := app.fromFolder(); len(plain.DependsOn) == 0 || !graph.Has(plain.ref) {
				now[j] = plain
				continue
			}
			found++
			now[j] = p.onCycle(app, graph, found)
		}
		if !slices.Equal(now, project.Apps) {
			t.Projects[i] = project.with(now)
		}
	}
}

// fromFolder returns the app as it was read from its folder, before any refusal because of a cycle.
func (a *App) fromFolder() *App {
	if a.asRead != nil {
		return a.asRead
	}
	return a
}

// onCycle returns a copy of the app that is refused because of a cycle. nth counts the refused apps of the tenant.
func (p *pass) onCycle(app *App, graph *cycle.Graph[identity.Ref], nth int) *App {
	plain := app.fromFolder()
	finding := document.Finding{File: layout.Join(plain.dir, layout.AppFile), Code: code.DependencyCycle, Why: "dependsOn makes a ring"}
	if nth <= maxCycles {
		finding = p.cycleOf(plain, graph.Shortest(plain.ref))
	}
	problems := p.problems(plain.ref, finding)
	if app.asRead != nil && slices.Equal(app.problems, problems) {
		return app
	}
	refused := *plain
	refused.asRead, refused.object, refused.problems = plain, nil, problems
	return &refused
}

// with returns a copy of the project with the given apps instead of its own.
func (p *Project) with(apps []*App) *Project {
	now := *p
	now.Apps = apps
	now.count()
	return &now
}

func (p *pass) cycleOf(app *App, way []identity.Ref) document.Finding {
	file := layout.Join(app.dir, layout.AppFile)
	var names []string
	for _, ref := range way {
		name := ref.App
		if ref.Project != app.ref.Project {
			name = ref.Project + "/" + name
		}
		names = append(names, name)
	}
	if len(names) > maxNamed {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("(%d more)", len(way)-1-maxNamed), names[0])
	}
	typed, i := decode(&app.node, &v1alpha1.App{}), 0
	for dependency(typed, app.ref, i) != way[1] {
		i++
	}
	at := p.read(file).Position(fmt.Sprintf("spec.dependsOn[%d].name", i))
	return document.Finding{File: file, Position: at, Code: code.DependencyCycle, Why: "dependsOn makes a ring: " + strings.Join(names, " → ") + "; take one of these dependencies out"}
}
