package main

import (
	"fmt"
	"path"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// appID identifies an app. Its ConfigMap has its name.
type appID struct{ tenant, project, app int }

// appNumber returns the app with a number, in the order of the repository.
func appNumber(n int) appID {
	return appID{tenant: n / appsOfTenant, project: n % appsOfTenant / appsOfProject, app: n % appsOfProject}
}

func tenantName(n int) string { return fmt.Sprintf("t%04d", n) }

func (a appID) projectName() string { return fmt.Sprintf("p%d", a.project) }

func (a appID) name() string { return fmt.Sprintf("app%d", a.app) }

// key returns the namespace and name of its App and of its ConfigMap.
func (a appID) key() string {
	return v1alpha1.ProjectNamespace(tenantName(a.tenant), a.projectName()) + "/" + a.name()
}

// folder returns its folder, relative to its tenant.
func (a appID) folder() string { return path.Join("projects", a.projectName(), "apps", a.name()) }

// turnLabel marks the ConfigMaps that are watched.
const turnLabel = "bench-scale"

// turnKey is the key of a ConfigMap's data with the number of its commit.
const turnKey = "turn"

func (a appID) manifest(turn int) []byte {
	return document(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": a.name(), "labels": map[string]any{turnLabel: "true"}},
		"data":     map[string]any{turnKey: strconv.Itoa(turn)},
	})
}

const manifestFile = "manifests/configmap.yaml"

// declare returns an object of kubeop's API as a file of a repository.
func declare(kind, name string, spec map[string]any) []byte {
	return document(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	})
}

func document(content map[string]any) []byte {
	text, err := yaml.Marshal(content)
	if err != nil {
		panic(err) // A map of strings and numbers is always YAML.
	}
	return text
}

// commits is a stream for git fast-import.
type commits struct{ stage.Commits }

// layoutVersion is the kubeop.yaml of every repository.
var layoutVersion = []byte("layout: v1\n")

// projects adds the projects of a tenant. They are the same for every tenant, because a tenant's files do not name it.
func (c *commits) projects(below string) {
	for n := range appsOfTenant {
		a := appNumber(n)
		if a.app == 0 {
			c.File(path.Join(below, "projects", a.projectName(), "project.yaml"), declare("Project", a.projectName(), map[string]any{}))
		}
		c.File(path.Join(below, a.folder(), "app.yaml"),
			declare("App", a.name(), map[string]any{"type": string(v1alpha1.AppRaw), "raw": map[string]any{"path": path.Dir(manifestFile)}}))
		c.File(path.Join(below, a.folder(), manifestFile), a.manifest(0))
	}
}

// tenant adds a tenant. repository is the part of its file that names its own repository, or nil if its projects are in the platform repository.
func (c *commits) tenant(name string, repository map[string]any) {
	spec := map[string]any{"owners": []any{map[string]any{"kind": "User", "name": "dev-" + name, "role": "admin"}}}
	if repository != nil {
		spec["repository"] = repository
	}
	c.File(path.Join("tenants", name, "tenant.yaml"), declare("Tenant", name, spec))
}

// suspended adds a tenant with this many suspended apps, and limits that permit them.
func (c *commits) suspended(name string, apps int) {
	below := path.Join("tenants", name)
	c.File(path.Join(below, "tenant.yaml"), declare("Tenant", name, map[string]any{
		"limits": map[string]any{"projects": apps/suspendedOfProject + 1, "apps": apps, "treeBytes": "256Mi"},
	}))
	for n := range apps {
		project := fmt.Sprintf("p%03d", n/suspendedOfProject)
		if n%suspendedOfProject == 0 {
			c.File(path.Join(below, "projects", project, "project.yaml"), declare("Project", project, map[string]any{}))
		}
		app := fmt.Sprintf("app%02d", n%suspendedOfProject)
		c.File(path.Join(below, "projects", project, "apps", app, "app.yaml"), declare("App", app, map[string]any{
			"type": string(v1alpha1.AppRaw), "suspend": true, "raw": map[string]any{"manifests": []any{
				map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": app}},
			}},
		}))
	}
}
