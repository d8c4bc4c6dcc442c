package repository

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// state compares an object in the cluster with the declared one.
type state int

const (
	// other must be applied.
	other state = iota
	// same equals the declared object.
	same
	// blocked cannot be applied yet, see applicable.
	blocked
)

// compare builds the object that a folder declares and compares it with the one in the cache.
func (r *Reconciler) compare(ctx context.Context, s *scope, n tree.Node) (client.Object, state, error) {
	o := s.progress.tree.Object(n, s.commit.Revision)
	declared.NameAuthor(o, s.origin(n.Ref()).Author)
	live := o.DeepCopyObject().(client.Object)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), live)
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return nil, other, fmt.Errorf("reading %s: %w", n.Ref(), err)
	default:
		declared.KeepRevision(o, live)
	}
	equal, err := declared.Same(o, live)
	if equal || err != nil {
		return o, same, err
	}
	applicable, err := r.applicable(ctx, n.Ref(), live)
	if !applicable {
		return o, blocked, err
	}
	return o, other, err
}

// applicable reports whether an object can be applied: its namespace exists, and neither the namespace nor its project or tenant, nor an object
// of its own name, is being deleted. While one is, the object waits and is created again afterwards.
func (r *Reconciler) applicable(ctx context.Context, ref identity.Ref, live client.Object) (bool, error) {
	if live != nil && live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	var home client.Object = &v1alpha1.Tenant{}
	switch {
	case ref.App != "":
		home = &v1alpha1.Project{}
	case ref.Project == "":
		return true, nil
	}
	if err := r.Client.Get(ctx, ref.Parent().Key(), home); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s: %w", ref.Parent(), err)
	}
	if home.GetDeletionTimestamp() != nil {
		return false, nil
	}
	namespace, err := r.Watch.Namespace(ctx, ref.Key().Namespace)
	return err == nil && namespace != nil && namespace.GetDeletionTimestamp() == nil, err
}

// recorded returns the inventory entry of an existing object that kubeop applied, none for any other. The managed fields decide who applied
// it, because labels may have been changed.
func (r *Reconciler) recorded(ctx context.Context, o client.Object) ([]v1alpha1.InventoryEntry, error) {
	live, _, err := r.Watch.Live(ctx, o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o))
	if err != nil || live == nil || !fieldmanager.Applied(live) {
		return nil, err
	}
	return []v1alpha1.InventoryEntry{{ID: inventory.IDOf(o).String(), Version: v1alpha1.GroupVersion.Version, Digest: "applied"}}, nil
}
