package garbage

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/pvc"
)

// Dependents finds objects in a namespace whose deletion would also delete claims with data: Kubernetes' garbage collector deletes the
// dependents of a deleted object. StatefulSets own claims because of their retention policy, and operators make claims dependents of their
// own kinds.
type Dependents struct {
	Client    client.Client
	Namespace string

	once sync.Once
	of   map[types.UID][]string
	err  error
}

// harmless are API groups whose kinds own no claims, except StatefulSets.
var harmless = map[string]bool{
	"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true, "networking.k8s.io": true, "gateway.networking.k8s.io": true,
	"rbac.authorization.k8s.io": true, "coordination.k8s.io": true, "discovery.k8s.io": true, "scheduling.k8s.io": true,
	"storage.k8s.io": true, "admissionregistration.k8s.io": true, "apiextensions.k8s.io": true,
}

var statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}

// MayOwnClaims reports whether objects of the kind may own claims.
func MayOwnClaims(kind schema.GroupKind) bool { return kind == statefulSet || !harmless[kind.Group] }

// Claims returns the names of the claims with data that would be deleted with the object. The first call costs a request, and one more for
// each StatefulSet that owns claims.
func (d *Dependents) Claims(ctx context.Context, uid types.UID) ([]string, error) {
	d.once.Do(func() { d.of, d.err = ClaimsByOwner(ctx, d.Client, d.Namespace) })
	return d.of[uid], d.err
}

// ClaimsByOwner returns the names of the claims with data in a namespace by the UID of each object that owns them. It costs a request, and
// one more for each StatefulSet that owns claims.
func ClaimsByOwner(ctx context.Context, c client.Client, namespace string) (map[types.UID][]string, error) {
	all, err := pvc.List(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	owners := claimOwners{client: c, claims: map[types.UID][]string{}, above: map[types.UID][]metav1.OwnerReference{}}
	for i := range all {
		claim := &all[i]
		if claim.DeletionTimestamp != nil || !pvc.HoldsData(claim) {
			continue
		}
		for _, owner := range claim.OwnerReferences {
			if err := owners.add(ctx, claim, owner); err != nil {
				return nil, err
			}
		}
	}
	return owners.claims, nil
}

// claimOwners are the claims of each object that owns some, by UID, and the owners of StatefulSets among these objects.
type claimOwners struct {
	client client.Client
	claims map[types.UID][]string
	above  map[types.UID][]metav1.OwnerReference
}

// add adds a claim to its owner and, if that is a StatefulSet, to the owners of the StatefulSet.
func (o *claimOwners) add(ctx context.Context, claim *corev1.PersistentVolumeClaim, owner metav1.OwnerReference) (err error) {
	if owner.Kind == "Pod" {
		return nil // An ephemeral volume is deleted with its pod.
	}
	o.claims[owner.UID] = append(o.claims[owner.UID], claim.Name)
	if owner.Kind != statefulSet.Kind {
		return nil
	}
	higher, known := o.above[owner.UID]
	if !known {
		if higher, err = ownersOf(ctx, o.client, claim.Namespace, owner); err != nil {
			return err
		}
		o.above[owner.UID] = higher
	}
	for _, h := range higher {
		o.claims[h.UID] = append(o.claims[h.UID], claim.Name)
	}
	return nil
}

// ownersOf returns the owners of a StatefulSet: if an operator's object owns it, the claims are deleted with that object, too.
func ownersOf(ctx context.Context, c client.Client, namespace string, owner metav1.OwnerReference) ([]metav1.OwnerReference, error) {
	live, err := metadata.Read(ctx, c, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), types.NamespacedName{Namespace: namespace, Name: owner.Name})
	if live == nil {
		return nil, err
	}
	return slices.Clone(live.GetOwnerReferences()), nil
}

// takesData reports whether deleting an object needs a confirmation that is missing, because data would be deleted: the object is a claim
// that holds data, or owns such claims.
func (r *Removal) takesData(ctx context.Context, id inventory.ObjectID, live metav1.Object) (bool, error) {
	kind := id.GroupKind()
	switch {
	case !r.Guarded || (r.Confirmed && !r.Retain):
		return false, nil
	case kind == schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		claim := &corev1.PersistentVolumeClaim{}
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, claim); apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("looking whether the claim holds data: %w", err)
		}
		return pvc.HoldsData(claim), nil
	case r.Dependents == nil || !MayOwnClaims(kind):
		return false, nil
	}
	owned, err := r.Dependents.Claims(ctx, live.GetUID())
	if err != nil {
		return false, fmt.Errorf("looking for claims that would go with it: %w", err)
	}
	return len(owned) > 0, nil
}
