package hook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheCacheHoldsOnlyTheKeysOfSecrets: the operator's namespace also has the passwords of all tenants' repositories, which are not cached.
func TestTheCacheHoldsOnlyTheKeysOfSecrets(t *testing.T) {
	about := metav1.ObjectMeta{Namespace: "kubeop-system", Name: "acme", ResourceVersion: "7"}
	noted := *about.DeepCopy()
	noted.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "password"}
	noted.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	for name, c := range map[string]struct{ given, want map[string][]byte }{
		"a key among others": {map[string][]byte{"token": []byte("key"), "password": []byte("hunter2")}, map[string][]byte{"token": []byte("key")}},
		"no key":             {map[string][]byte{"password": []byte("hunter2")}, nil},
	} {
		got, err := onlyKey(&corev1.Secret{ObjectMeta: noted, Data: c.given, StringData: map[string]string{"password": "hunter2"}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&corev1.Secret{ObjectMeta: about, Data: c.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
