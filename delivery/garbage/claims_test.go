package garbage

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// claimOf is a claim of the namespace "shop" that holds data.
func claimOf(name string, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: owners},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func ownedBy(apiVersion, kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid}
}

// TestClaimsGoWithEachOfTheirOwners lists the claims that would be deleted with an object: with each owner, and with what owns their
// StatefulSet. It reads each StatefulSet once.
func TestClaimsGoWithEachOfTheirOwners(t *testing.T) {
	database, set := ownedBy("example.com/v1", "Database", "db", "1"), ownedBy("apps/v1", "StatefulSet", "db", "2")
	empty, leaving, elsewhere := claimOf("empty", database), claimOf("leaving", database), claimOf("elsewhere", database)
	empty.Status.Phase = corev1.ClaimPending
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"kubernetes.io/pvc-protection"}, &metav1.Time{Time: metav1.Now().Time}
	elsewhere.Namespace = "other"
	reads := 0
	down := errors.New("down")
	var fails error
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "2", OwnerReferences: []metav1.OwnerReference{database}}},
		claimOf("of-two", ownedBy("v1", "ConfigMap", "a", "3"), ownedBy("v1", "ConfigMap", "b", "4")),
		claimOf("data-0", set), claimOf("data-1", set),
		claimOf("scratch", ownedBy("v1", "Pod", "web", "5")),
		claimOf("of-a-lost-set", ownedBy("apps/v1", "StatefulSet", "gone", "6")),
		claimOf("of-nobody"), empty, leaving, elsewhere,
	).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if reads++; fails != nil {
				return fails
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	got, err := ClaimsByOwner(t.Context(), api, "shop")
	if err != nil {
		t.Fatal(err)
	}
	want := map[types.UID][]string{"1": {"data-0", "data-1"}, "2": {"data-0", "data-1"}, "3": {"of-two"}, "4": {"of-two"}, "6": {"of-a-lost-set"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if reads != 2 {
		t.Errorf("StatefulSets were read %d times, want 2", reads)
	}
	fails = down
	if got, err := ClaimsByOwner(t.Context(), api, "shop"); !errors.Is(err, down) || got != nil {
		t.Errorf("got %v and %v, though a StatefulSet cannot be read", got, err)
	}
}
