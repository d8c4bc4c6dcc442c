package plan

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/tree"
)

// Waves splits what is applied so that each App comes after the Apps it depends on. Whoever sees an App as a commit
// declares it then sees its dependencies as that commit declares them too, and cannot take one that was ready with what an
// older commit said for one that is ready with this. The tree has no rings.
func Waves(objects []client.Object) [][]client.Object {
	w := waves{apps: map[client.ObjectKey]*v1alpha1.App{}, at: map[client.ObjectKey]int{}}
	for _, o := range objects {
		if app, ok := o.(*v1alpha1.App); ok {
			w.apps[client.ObjectKeyFromObject(app)] = app
		}
	}
	var all [][]client.Object
	for _, o := range objects {
		at := 0
		if app, ok := o.(*v1alpha1.App); ok {
			at = w.of(client.ObjectKeyFromObject(app))
		}
		for len(all) <= at {
			all = append(all, nil)
		}
		all[at] = append(all[at], o)
	}
	return all
}

type waves struct {
	apps map[client.ObjectKey]*v1alpha1.App
	at   map[client.ObjectKey]int
}

// of returns the wave of a declared app: the one after the last of what it depends on.
func (w waves) of(key client.ObjectKey) int {
	if at, known := w.at[key]; known {
		return at
	}
	at := 0
	for _, need := range tree.Needs(w.apps[key]) {
		if w.apps[need] != nil {
			at = max(at, w.of(need)+1)
		}
	}
	w.at[key] = at
	return at
}
