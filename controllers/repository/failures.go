package repository

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/gitops/tree"
)

// failures are the objects that could not be applied in a pass, and will be tried again.
type failures map[client.ObjectKey]bool

// add notes which of the objects an error is about; one that names none is about all.
func (f failures) add(objects []client.Object, err error) {
	for _, each := range apply.Split(err) {
		var oe *apply.ObjectError
		for _, o := range objects {
			if !errors.As(each, &oe) || apply.IDOf(o) == oe.ID {
				f[client.ObjectKeyFromObject(o)] = true
			}
		}
	}
}

// without leaves out the apps that depend on one that failed: they wait for the next try, so that none is declared before
// what it depends on is.
func (f failures) without(objects []client.Object) (left, held []client.Object) {
	for _, o := range objects {
		if app, ok := o.(*v1alpha1.App); ok && f.stop(app) {
			f[client.ObjectKeyFromObject(o)] = true
			held = append(held, o)
			continue
		}
		left = append(left, o)
	}
	return left, held
}

func (f failures) stop(app *v1alpha1.App) bool {
	for _, need := range tree.Needs(app) {
		if f[need] {
			return true
		}
	}
	return false
}
