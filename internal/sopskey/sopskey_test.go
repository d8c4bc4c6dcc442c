package sopskey

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const namespace = "kubeop-system"

func tenant(uid, annotation string) *v1alpha1.Tenant {
	t := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: types.UID(uid), Annotations: map[string]string{"identity": annotation}}}
	t.Spec.Sops = "Generated"
	return t
}

func keysOf(c client.Client) *Keys {
	return &Keys{Client: c, Namespace: namespace, Identity: func(t *v1alpha1.Tenant) string { return t.Annotations["identity"] }}
}

func held(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "kubeop-sops-acme"}, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestAKeyIsMadeOnce: the key stays, and its Secret has the private key of the public one.
func TestAKeyIsMadeOnce(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	acme := tenant("1", "a")
	first, err := keysOf(c).Ensure(t.Context(), acme)
	if err != nil {
		t.Fatal(err)
	}
	secret := held(t, c)
	if secret.Immutable == nil || !*secret.Immutable || secret.Labels["app.kubernetes.io/managed-by"] != "kubeop" {
		t.Errorf("the Secret is %+v", secret.ObjectMeta)
	}
	identity, err := age.ParseX25519Identity(string(secret.Data["age.agekey"]))
	if err != nil || identity.Recipient().String() != first {
		t.Errorf("the Secret has the key of %v, want %s; error %v", identity.Recipient(), first, err)
	}
	for name, of := range map[string]*v1alpha1.Tenant{"the same": acme, "restored from a backup": tenant("2", "a"), "with another repository": tenant("1", "b")} {
		if again, err := keysOf(c).Ensure(t.Context(), of); err != nil || again != first {
			t.Errorf("%s: the key is of %q, want %q; error %v", name, again, first, err)
		}
	}
}

func TestAKeyIsNotReplaced(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	recipient, err := keysOf(c).Ensure(t.Context(), tenant("1", "a"))
	if err != nil {
		t.Fatal(err)
	}
	known := func(of *v1alpha1.Tenant, recipient string) *v1alpha1.Tenant {
		of.Status.Sops = &v1alpha1.SopsStatus{Recipient: recipient}
		return of
	}
	damaged := held(t, c)
	damaged.Data["age.agekey"] = []byte("AGE-SECRET-KEY-1DAMAGED")
	damaged.ResourceVersion = ""
	cases := map[string]struct {
		in   client.Client
		of   *v1alpha1.Tenant
		want string
	}{
		"it is gone":                 {fake.NewClientBuilder().Build(), known(tenant("1", "a"), recipient), "the tenant's key cannot be used: Secret kubeop-system/kubeop-sops-acme is gone, and files may be encrypted for " + recipient + ": an administrator of the cluster restores it from a backup"},
		"it is another tenant's":     {c, tenant("2", "b"), "the tenant's key cannot be used: Secret kubeop-system/kubeop-sops-acme is of an earlier tenant of this name: an administrator of the cluster keeps a copy and runs: kubectl delete secret kubeop-sops-acme -n kubeop-system"},
		"neither has an identity":    {c, tenant("2", ""), "the tenant's key cannot be used: Secret kubeop-system/kubeop-sops-acme is of an earlier tenant of this name: an administrator of the cluster keeps a copy and runs: kubectl delete secret kubeop-sops-acme -n kubeop-system"},
		"it is another key":          {c, known(tenant("1", "a"), "age1other"), "the tenant's key cannot be used: Secret kubeop-system/kubeop-sops-acme holds the key of " + recipient + ", and files may be encrypted for age1other: an administrator of the cluster restores it from a backup"},
		"its content is not a key":   {fake.NewClientBuilder().WithObjects(damaged).Build(), known(tenant("1", "a"), recipient), "the tenant's key cannot be used: Secret kubeop-system/kubeop-sops-acme holds no age identity in age.agekey: an administrator of the cluster restores it from a backup"},
		"the API server has no word": {failing(errors.New("down")), tenant("1", "a"), "reading the key of tenant acme: down"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := keysOf(c.in).Ensure(t.Context(), c.of)
			if err == nil || err.Error() != c.want {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if errors.Is(err, ErrUnusable) != (name != "the API server has no word") {
				t.Errorf("%v: only people can help: %t", err, errors.Is(err, ErrUnusable))
			}
		})
	}
}

// TestTwoLeadersUseOneKey: an earlier leader creates the Secret between the look and the creation.
func TestTwoLeadersUseOneKey(t *testing.T) {
	first := ""
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if first == "" {
				var err error
				first = "begun"
				if first, err = keysOf(c).Ensure(ctx, tenant("1", "a")); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
	})
	if got, err := keysOf(c).Ensure(t.Context(), tenant("1", "a")); err != nil || got != first {
		t.Errorf("the key is of %q, want %q; error %v", got, first, err)
	}
}

func TestDataIsReadOnce(t *testing.T) {
	reads := 0
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, opts...)
		},
	})
	keys, acme := keysOf(c), tenant("1", "a")
	if _, _, ok, err := keys.Data(t.Context(), acme); ok || err != nil {
		t.Errorf("a tenant without a key has data: %t, error %v", ok, err)
	}
	recipient, err := keys.Ensure(t.Context(), acme)
	if err != nil {
		t.Fatal(err)
	}
	acme.Status.Sops = &v1alpha1.SopsStatus{Recipient: recipient}
	reads = 0
	for range 3 {
		name, data, ok, err := keys.Data(t.Context(), acme)
		if !ok || err != nil || name != "kubeop-system/kubeop-sops-acme" || len(data["age.agekey"]) == 0 {
			t.Errorf("the data is of %s, %t, error %v", name, ok, err)
		}
	}
	if reads != 1 {
		t.Errorf("the Secret was read %d times", reads)
	}
	acme.Spec.Sops = ""
	if _, _, ok, _ := keys.Data(t.Context(), acme); ok {
		t.Error("a tenant that wants no key any more still has it")
	}
}

func failing(err error) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return fmt.Errorf("%w", err)
		},
	})
}
