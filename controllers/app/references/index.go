// Package references indexes which Apps refer to which objects, so that a change of an object wakes the Apps that use it.
package references

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Object identifies an object that an App refers to. Namespace is empty for a cluster-scoped one.
type Object struct {
	Namespace, Kind, Name string
}

// Index has the objects that each App refers to. The zero value is empty.
type Index struct {
	mu      sync.Mutex
	users   map[Object]map[types.NamespacedName]bool
	objects map[types.NamespacedName][]Object
}

// Set replaces the objects to which an App refers, and returns those to which no App refers any more.
func (x *Index) Set(app types.NamespacedName, objects []Object) (unused []Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.users == nil {
		x.users, x.objects = map[Object]map[types.NamespacedName]bool{}, map[types.NamespacedName][]Object{}
	}
	before := x.objects[app]
	for _, o := range before {
		delete(x.users[o], app)
	}
	delete(x.objects, app)
	for _, o := range objects {
		if x.users[o] == nil {
			x.users[o] = map[types.NamespacedName]bool{}
		}
		x.users[o][app] = true
		x.objects[app] = append(x.objects[app], o)
	}
	for _, o := range before {
		if len(x.users[o]) == 0 {
			delete(x.users, o)
			unused = append(unused, o)
		}
	}
	return unused
}

// Users returns the Apps that refer to an object, sorted.
func (x *Index) Users(o Object) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	users := make([]types.NamespacedName, 0, len(x.users[o]))
	for app := range x.users[o] {
		users = append(users, app)
	}
	slices.SortFunc(users, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return users
}
