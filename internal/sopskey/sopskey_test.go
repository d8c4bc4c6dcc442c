package sopskey

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
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
	if err != nil || identity.Recipient().String() != first.Recipient {
		t.Errorf("the Secret has the key of %v, want %s; error %v", identity.Recipient(), first.Recipient, err)
	}
	for name, of := range map[string]*v1alpha1.Tenant{"the same": acme, "restored from a backup": tenant("2", "a"), "with another repository": tenant("1", "b")} {
		if again, err := keysOf(c).Ensure(t.Context(), of); err != nil || !reflect.DeepEqual(again, first) {
			t.Errorf("%s: the key is %v, want %v; error %v", name, again, first, err)
		}
	}
}

func TestAKeyIsNotReplaced(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	made, err := keysOf(c).Ensure(t.Context(), tenant("1", "a"))
	if err != nil {
		t.Fatal(err)
	}
	recipient := made.Recipient
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
	var first *v1alpha1.SopsStatus
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if first == nil {
				var err error
				first = &v1alpha1.SopsStatus{}
				if first, err = keysOf(c).Ensure(ctx, tenant("1", "a")); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
	})
	if got, err := keysOf(c).Ensure(t.Context(), tenant("1", "a")); err != nil || got.Recipient != first.Recipient {
		t.Errorf("the key is %v, want %v; error %v", got, first, err)
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
	if held, err := keys.Data(t.Context(), acme); held != nil || err != nil {
		t.Errorf("a tenant without a key has data: %t, error %v", held != nil, err)
	}
	var err error
	if acme.Status.Sops, err = keys.Ensure(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	reads = 0
	for range 3 {
		held, err := keys.Data(t.Context(), acme)
		if err != nil || held.Secret != "kubeop-system/kubeop-sops-acme" || len(held.Data["age.agekey"]) == 0 || held.Recipient != "" {
			t.Errorf("the data is of %s, for %q, error %v", held.Secret, held.Recipient, err)
		}
	}
	if reads != 1 {
		t.Errorf("the Secret was read %d times", reads)
	}
	acme.Spec.Sops = ""
	if held, _ := keys.Data(t.Context(), acme); held != nil {
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

// TestAnotherNumberMakesAnotherKey, once, and all keys decrypt. A lower number uses the earlier key again.
func TestAnotherNumberMakesAnotherKey(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	keys, acme := keysOf(c), tenant("1", "a")
	ensure := func(number int) *v1alpha1.SopsStatus {
		t.Helper()
		acme.Spec.SopsKey = number
		status, err := keys.Ensure(t.Context(), acme)
		if err != nil {
			t.Fatal(err)
		}
		acme.Status.Sops = status
		return status
	}
	first := ensure(0).Recipient
	second := ensure(3)
	if second.Recipient == first || second.Number != 3 || !reflect.DeepEqual(second.Earlier, []v1alpha1.SopsKey{{Number: 1, Recipient: first}}) {
		t.Errorf("after the second key: %+v", second)
	}
	held, err := keys.Data(t.Context(), acme)
	if err != nil || held.Secret != "kubeop-system/kubeop-sops-acme.3" || held.Recipient != second.Recipient || len(held.Data) != 2 {
		t.Fatalf("the data is of %s, for %s: %d keys, error %v", held.Secret, held.Recipient, len(held.Data), err)
	}
	for name, want := range map[string]string{"age.agekey": first, "age-3.agekey": second.Recipient} {
		if identity, err := age.ParseX25519Identity(string(held.Data[name])); err != nil || identity.Recipient().String() != want {
			t.Errorf("%s is not the key of %s: %v", name, want, err)
		}
	}
	restored := tenant("2", "a")
	restored.Spec.SopsKey = 3
	if again, err := keysOf(c).Ensure(t.Context(), restored); err != nil || !reflect.DeepEqual(again, second) {
		t.Errorf("restored: %+v, want %+v; error %v", again, second, err)
	}
	if back := ensure(1); back.Recipient != first || back.Number != 1 || back.Earlier[0].Recipient != second.Recipient {
		t.Errorf("back at the first key: %+v", back)
	}
}

// TestALostEarlierKeyIsReported, and the present one decrypts all the same. One of an earlier tenant of the name is not taken for this one's.
func TestALostEarlierKeyIsReported(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	acme := tenant("1", "a")
	acme.Spec.SopsKey = 2
	acme.Status.Sops = &v1alpha1.SopsStatus{Number: 1, Recipient: "age1first"}
	made, err := keysOf(c).Ensure(t.Context(), acme)
	if want := "Secret kubeop-system/kubeop-sops-acme is gone, and files may be encrypted for age1first"; !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
	if made == nil || made.Recipient == "" || !reflect.DeepEqual(made.Earlier, []v1alpha1.SopsKey{{Number: 1, Recipient: "age1first"}}) {
		t.Fatalf("the keys are %+v", made)
	}
	acme.Status.Sops = made
	held, err := keysOf(c).Data(t.Context(), acme)
	if err != nil || len(held.Data) != 1 || held.Recipient != made.Recipient {
		t.Errorf("the data has %d keys for %s, error %v", len(held.Data), held.Recipient, err)
	}
	other := tenant("2", "b")
	other.Spec.SopsKey = 3
	status, err := keysOf(c).Ensure(t.Context(), other)
	if err != nil || status.Number != 3 || len(status.Earlier) != 0 {
		t.Errorf("beside a key of an earlier tenant: %+v, error %v", status, err)
	}
}

// TestAnEarlierKeyThatCannotBeReadIsKept: a status without it would say that the tenant never had it, and its files could not be decrypted any more.
func TestAnEarlierKeyThatCannotBeReadIsKept(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	acme := tenant("1", "a")
	for _, number := range []int{1, 2} {
		acme.Spec.SopsKey = number
		status, err := keysOf(c).Ensure(t.Context(), acme)
		if err != nil {
			t.Fatal(err)
		}
		acme.Status.Sops = status
	}
	away := errors.New("the API server does not answer")
	broken := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == "kubeop-sops-acme" {
				return away
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	restored := tenant("1", "a")
	restored.Spec.SopsKey = 2
	for name, of := range map[string]*v1alpha1.Tenant{"with a status": acme, "restored without one": restored} {
		if status, err := keysOf(broken).Ensure(t.Context(), of); !errors.Is(err, away) || status != nil {
			t.Errorf("%s: %+v, error %v", name, status, err)
		}
	}
	if held, err := keysOf(broken).Data(t.Context(), acme); !errors.Is(err, away) || held != nil {
		t.Errorf("its files are decrypted without it: %t, error %v", held != nil, err)
	}
	if again, err := keysOf(c).Ensure(t.Context(), acme); err != nil || !reflect.DeepEqual(again, acme.Status.Sops) {
		t.Errorf("when it answers again: %+v, error %v", again, err)
	}
}

func TestTheNameOfASecretNamesTheTenantOfTheKey(t *testing.T) {
	for secret, want := range map[string]string{Name("acme", 1): "acme", Name("acme", 12): "acme", "kubeop-sops": "", "kubeop-git": "", "acme": ""} {
		if got := TenantOf(secret); got != want {
			t.Errorf("Secret %s has the key of %q, want %q", secret, got, want)
		}
	}
}
