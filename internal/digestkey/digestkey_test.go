package digestkey

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const namespace = "kubeop-system"

func held(key string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}, Data: map[string][]byte{"key": []byte(key)}}
}

// TestTheKeyIsMadeOnce: the next process has the same key.
func TestTheKeyIsMadeOnce(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	first, err := Ensure(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	next, err := Ensure(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if first.Seal("a") != next.Seal("a") || first.Seal("a") == first.Seal("b") || len(first.Seal("a")) != 64 {
		t.Errorf("a is sealed as %s and %s, b as %s", first.Seal("a"), next.Seal("a"), first.Seal("b"))
	}
	other, err := Ensure(t.Context(), fake.NewClientBuilder().Build(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	if other.Seal("a") == first.Seal("a") {
		t.Error("another installation has the same key")
	}
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: Name}, secret); err != nil || secret.Immutable == nil || !*secret.Immutable || secret.Labels["app.kubernetes.io/managed-by"] != "kubeop" {
		t.Errorf("the Secret can be changed, or does not name its owner: %v, %v", secret, err)
	}
}

// TestTwoReplicasHaveOneKey: a replica uses the key that another one created first.
func TestTwoReplicasHaveOneKey(t *testing.T) {
	theirs := held(strings.Repeat("k", 32))
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := c.Create(ctx, theirs); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
	}).Build()
	k, err := Ensure(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if string(k.secret) != strings.Repeat("k", 32) {
		t.Errorf("it has another key")
	}
}

// TestAnInvalidKeyIsAnError: it is not replaced by a new one.
func TestAnInvalidKeyIsAnError(t *testing.T) {
	for want, c := range map[string]client.Client{
		`secret kubeop-system/kubeop-digest-key has no "key" of 32 bytes: an administrator of the cluster restores it from a backup, or has another made, ` +
			"with which every app is applied and every hook runs once more, by: kubectl delete secret kubeop-digest-key -n kubeop-system": fake.NewClientBuilder().WithObjects(held(strings.Repeat("k", 31))).Build(),
		`reading the key of digests, Secret kubeop-system/kubeop-digest-key: secrets "kubeop-digest-key" is forbidden: <nil>`: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, Name, nil)
			},
		}).Build(),
	} {
		_, err := Ensure(t.Context(), c, namespace)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
