package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/encrypt"
	"github.com/kubeop/kubeop/internal/sopskey"
	"github.com/kubeop/kubeop/internal/testenv"
)

// recipient waits until the tenant has a key, and returns the public key.
func (n *team) recipient() string {
	n.t.Helper()
	tenant := &v1alpha1.Tenant{}
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: n.name}, tenant); err != nil {
			return err
		}
		if tenant.Status.Sops == nil {
			return fmt.Errorf("the tenant has no key: %+v", tenant.Status.Conditions)
		}
		return nil
	})
	return tenant.Status.Sops.Recipient
}

// TestATenantHasAKeyOfItsOwn: kubeop makes the key and decrypts what is encrypted for it, also in another project of the tenant, and not for
// another tenant. It never replaces a key that files may be encrypted for.
func TestATenantHasAKeyOfItsOwn(t *testing.T) {
	needsProcesses(t)
	n, other := newTeam(t, "keyed"), teamOf(t, "keyless")
	source := n.gitApp(map[string]string{"note.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n"}, "decryption: {provider: sops}")
	app := n.app("shop", "web")
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.DecryptionFailedReason)
	if want := "decryption has no secretRef, and tenant keyed has no key"; !strings.Contains(message, want) {
		t.Errorf("the message of Ready is %q, want %q", message, want)
	}

	generated := func(s *v1alpha1.TenantSpec) { s.Sops = "Generated" }
	n.tenanted(generated)
	public := n.recipient()
	secret := &encrypt.Secret{Name: "db", Data: map[string][]byte{"password": []byte(secretWords[0])}}
	file, err := secret.Encrypted([]string{public}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	source.Push(map[string]string{"secret.yaml": string(file)})
	n.ready(app)
	n.eventually(func() error {
		db := &corev1.Secret{}
		err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "db"}, db)
		if err == nil && string(db.Data["password"]) != secretWords[0] {
			err = fmt.Errorf("the password is %q", db.Data["password"])
		}
		return err
	})
	n.revealsNothing(app)

	theirs := other.gitApp(map[string]string{"secret.yaml": string(file)}, "decryption: {provider: sops}")
	other.tenanted(generated)
	if got := other.recipient(); got == public {
		t.Errorf("both tenants have the key of %s", got)
	}
	message = other.until(other.app("shop", "web"), v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.DecryptionFailedReason)
	for !strings.Contains(message, "secret.yaml") {
		message = other.until(other.app("shop", "web"), v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.DecryptionFailedReason)
	}
	theirs.Push(map[string]string{"secret.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"})
	other.ready(other.app("shop", "web"))

	n.isNotReadByTheTenant()
	n.loses(public)
	n.rotates(source, app, secret)
}

// rotates has kubeop make another key: the app says which file is encrypted for the earlier one, and delivers it all the same. When the file is
// encrypted for the new one, the condition goes.
func (n *team) rotates(source *testenv.Repo, app *v1alpha1.App, secret *encrypt.Secret) {
	n.t.Helper()
	earlier := n.recipient()
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Sops, s.SopsKey = "Generated", 2 })
	n.eventually(func() error {
		if n.recipient() == earlier {
			return errors.New("the tenant has the earlier key")
		}
		return nil
	})
	public := n.recipient()
	message := n.until(app, v1alpha1.OutdatedKeyCondition, metav1.ConditionTrue, v1alpha1.EarlierKeyReason)
	if want := "encrypted for an earlier key of the tenant, and not for the present one, " + public + ": secret.yaml: encrypt them for that one, too"; !strings.Contains(message, want) {
		n.t.Errorf("the message of OutdatedKey is %q, want %q", message, want)
	}
	n.ready(app)
	for i, recipients := range [][]string{{public, earlier}, {public}} {
		secret.Data["password"] = []byte(secretWords[i])
		file, err := secret.Encrypted(recipients, time.Now())
		if err != nil {
			n.t.Fatal(err)
		}
		source.Push(map[string]string{"secret.yaml": string(file)})
		n.eventually(func() error {
			db := &corev1.Secret{}
			err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "db"}, db)
			if err == nil && string(db.Data["password"]) != secretWords[i] {
				err = fmt.Errorf("the password is %q", db.Data["password"])
			}
			return err
		})
		n.eventually(func() error {
			if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
				return err
			}
			if is := conditions.Get(app, v1alpha1.OutdatedKeyCondition); is != nil {
				return fmt.Errorf("the condition is %+v", is)
			}
			return nil
		})
	}
	n.revealsNothing(app)
}

// isNotReadByTheTenant asks for the Secret with the key as the tenant's accounts.
func (n *team) isNotReadByTheTenant() {
	n.t.Helper()
	for _, user := range []string{"jane-of-" + n.name, "system:serviceaccount:" + n.namespace() + ":kubeop-deployer"} {
		err := n.as(user).Get(n.t.Context(), client.ObjectKey{Namespace: testenv.Namespace, Name: sopskey.Name(n.name, 1)}, &corev1.Secret{})
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			n.t.Errorf("%s reads the tenant's key: %v", user, err)
		}
	}
}

// loses deletes the key: the tenant says so, and gets no other one; a restored key is used again. Both are noticed at once.
func (n *team) loses(public string) {
	n.t.Helper()
	tenant, key := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, &corev1.Secret{}
	if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: testenv.Namespace, Name: sopskey.Name(n.name, 1)}, key); err != nil {
		n.t.Fatal(err)
	}
	n.delete(key)
	message := n.until(tenant, v1alpha1.KeyReadyCondition, metav1.ConditionFalse, v1alpha1.KeyUnusableReason)
	if want := "files may be encrypted for " + public; !strings.Contains(message, want) {
		n.t.Errorf("the message of KeyReady is %q, want %q", message, want)
	}
	key.ResourceVersion, key.UID = "", ""
	n.create(key)
	n.until(tenant, v1alpha1.KeyReadyCondition, metav1.ConditionTrue, "")
	if got := n.recipient(); got != public {
		n.t.Errorf("the key is of %s, want %s", got, public)
	}
}
