//go:build e2e

package property

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// tree is what a repository declares: projects by name, with their apps. An app has a ConfigMap with a turn, and a claim.
type tree map[string]*shop

// shop is a project.
type shop struct {
	// delete means that claims may be deleted when that is confirmed.
	delete bool
	apps   map[string]int
}

func (t tree) clone() tree {
	c := tree{}
	for name, p := range t {
		c[name] = &shop{delete: p.delete, apps: maps.Clone(p.apps)}
	}
	return c
}

// act is one action of a user.
type act struct {
	kind string
	// seed selects the object of the action among those that exist at that time. So an act is also possible when earlier ones are left out.
	seed uint64
}

// history is a list of acts on its own tree.
type history struct {
	number int
	acts   []act
}

// kinds are the kinds of acts, repeated by their frequency.
var kinds = strings.Fields(`add add add remove remove remove rename rename move change change
	add-project remove-project remove-project rename-project policy policy empty broken
	rewind foreign confirm confirm confirm
	delete-app delete-project delete-repository delete-objects restart restore wait wait`)

func newHistory(seed uint64, number int) history {
	r := random(seed)
	h := history{number: number}
	for range 3 + r.IntN(6) {
		h.acts = append(h.acts, act{kind: kinds[r.IntN(len(kinds))], seed: r.Uint64()})
	}
	return h
}

func (h history) words() []string {
	var all []string
	for _, a := range h.acts {
		all = append(all, fmt.Sprintf("%s (%d)", a.kind, a.seed))
	}
	return all
}

// beginning returns the tree with which a history starts. No other history has the same projects.
func (h history) beginning() tree {
	return tree{
		h.project("a"): {apps: map[string]int{"one": 1, "two": 1}},
		h.project("b"): {delete: true, apps: map[string]int{"one": 1, "two": 1, "three": 1}},
	}
}

func (h history) project(name string) string { return fmt.Sprintf("h%d-%s", h.number, name) }

// The names of apps and projects. They are few, so that removed ones return.
var (
	appNames     = []string{"one", "two", "three", "four"}
	projectNames = []string{"a", "b", "c"}
)

// changeTree carries out an act on the tree, and reports whether it changed anything.
func (h history) changeTree(t tree, a act) bool {
	r := random(a.seed)
	projects := slices.Sorted(maps.Keys(t))
	if a.kind == "add-project" {
		name := h.project(projectNames[r.IntN(len(projectNames))])
		if t[name] != nil {
			return false
		}
		t[name] = &shop{delete: r.IntN(2) == 0, apps: map[string]int{"one": 1}}
		return true
	}
	if len(projects) == 0 {
		return false
	}
	from := projects[r.IntN(len(projects))]
	switch a.kind {
	case "empty":
		clear(t)
	case "remove-project":
		delete(t, from)
	case "rename-project":
		to := h.project(projectNames[r.IntN(len(projectNames))])
		if t[to] != nil {
			return false
		}
		t[to] = t[from]
		delete(t, from)
	case "policy":
		t[from].delete = !t[from].delete
	default:
		return changeApp(t, from, projects[r.IntN(len(projects))], a.kind, r)
	}
	return true
}

func changeApp(t tree, from, to, kind string, r *rand.Rand) bool {
	name := appNames[r.IntN(len(appNames))]
	if kind == "add" {
		t[from].apps[name]++
		return true
	}
	apps := slices.Sorted(maps.Keys(t[from].apps))
	if len(apps) == 0 {
		return false
	}
	one := apps[r.IntN(len(apps))]
	turn := t[from].apps[one]
	switch kind {
	case "change":
		t[from].apps[one]++
	case "remove":
		delete(t[from].apps, one)
	case "rename":
		delete(t[from].apps, one)
		t[from].apps[name] = turn
	case "move":
		delete(t[from].apps, one)
		t[to].apps[one] = turn
	}
	return true
}

// files returns the files of a tree by path.
func (t tree) files() map[string]string {
	all := map[string]string{"kubeop.yaml": "layout: v1\n"}
	for project, p := range t {
		policy := "Retain"
		if p.delete {
			policy = "Delete"
		}
		all["projects/"+project+"/project.yaml"] = fmt.Sprintf(
			"apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: %s}\nspec: {claimDeletionPolicy: %s}\n", project, policy)
		for app, turn := range p.apps {
			all["projects/"+project+"/apps/"+app+"/app.yaml"] = fmt.Sprintf(appYAML, app, policy, turn)
		}
	}
	return all
}

const appYAML = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: %[1]s}
spec:
  type: Raw
  claimDeletionPolicy: %[2]s
  raw:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s}, data: {turn: "%[3]d"}}
    - apiVersion: v1
      kind: PersistentVolumeClaim
      metadata: {name: %[1]s-data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`
