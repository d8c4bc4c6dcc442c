package inputs

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/sopskey"
)

// TestTheAppsOwnKeyOrTheTenantsDecrypts: the keys are those of the Secret that the App names, or else the tenant's, and are hidden in what is reported.
func TestTheAppsOwnKeyOrTheTenantsDecrypts(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	acme := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "1"}, Spec: v1alpha1.TenantSpec{Sops: "Generated"}}
	operators := fake.NewClientBuilder().WithScheme(scheme).Build()
	keys := func(c client.Client) *sopskey.Keys {
		return &sopskey.Keys{Client: c, Namespace: "kubeop-system", Identity: func(*v1alpha1.Tenant) string { return "" }}
	}
	var err error
	if acme.Status.Sops, err = keys(operators).Ensure(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	without := acme.DeepCopy()
	without.Spec.Sops = ""
	down := errors.New("down")
	failing := func(c client.WithWatch) client.Client {
		return interceptor.NewClient(c, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return down
		}})
	}
	with := func(objects ...client.Object) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	const noKey = "decryption has no secretRef, and tenant acme has no key: name a Secret with keys in app.yaml, or have administrators set spec.sops of the Tenant to Generated; " +
		"nothing is decrypted without it"
	for name, c := range map[string]struct {
		named   string
		failure error
		tenants client.Client
		keys    client.Client
		secret  string
		is      error
		says    string
	}{
		"the App's own": {named: "team", secret: "kubeop-a-b/team"},
		"a Secret that is not there": {named: "none", is: ErrNoKeys, says: "decryption.secretRef: Secret none does not exist in this namespace: create it, or correct the name in app.yaml; " +
			"an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl create secret generic none -n kubeop-a-b --from-literal=KEY=...; nothing is decrypted without it"},
		"a Secret that cannot be read": {named: "team", failure: down, is: ErrReading, says: "decryption.secretRef: " + ErrReading.Error() + ": Secret team: down"},
		"the tenant's":                 {tenants: with(acme), keys: operators, secret: "kubeop-system/kubeop-sops-acme"},
		"a tenant without a key":       {tenants: with(without), keys: operators, is: ErrNoKeys, says: noKey},
		"no such tenant":               {tenants: with(), keys: operators, is: ErrNoKeys, says: noKey},
		"a tenant that cannot be read": {tenants: failing(with()), keys: operators, is: ErrReading, says: ErrReading.Error() + ": tenant acme: down"},
		"a key that cannot be read":    {tenants: with(acme), keys: failing(with()), is: down, says: ErrReading.Error() + ": decryption: reading the key of tenant acme: down"},
		"a key that is gone": {tenants: with(acme), keys: with(), is: ErrNoKeys, says: "decryption: the key of tenant acme cannot be used: " +
			"kubectl get tenant acme says why, and administrators of the cluster restore it; nothing is decrypted without it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(&corev1.Secret{ObjectMeta: meta("kubeop-a-b", "team"), Data: map[string][]byte{"age.agekey": []byte("AGE-SECRET-KEY-1TEAM")}})
			b.failure, b.s.Owner.Tenant, b.Tenants, b.TenantKeys = c.failure, "acme", c.tenants, keys(c.keys)
			held, err := b.Keys(t.Context(), b.s, &v1alpha1.Decryption{SecretRef: v1alpha1.LocalSecretReference{Name: c.named}})
			if c.says != "" {
				if !errors.Is(err, c.is) || err.Error() != c.says || held != nil {
					t.Errorf("got %v, want %s", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			key := string(held.Data["age.agekey"])
			if held.Secret != c.secret || key == "" || !slices.Contains(b.s.Sensitive(), key) {
				t.Errorf("got %s, hidden %t, want %s", held.Secret, slices.Contains(b.s.Sensitive(), key), c.secret)
			}
		})
	}
}
