package hook

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
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

// failingLater is a RESTMapper that answers so many questions.
type failingLater struct {
	meta.RESTMapper
	answers int
}

// RESTMapping implements meta.RESTMapper.
func (m *failingLater) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.answers--; m.answers < 0 {
		return nil, errors.New("the API server does not answer")
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

func TestAWatchOfTheKeysThatCannotBeMadeIsAnError(t *testing.T) {
	served := meta.NewDefaultRESTMapper(nil)
	served.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	unserved := &failingLater{RESTMapper: served, answers: 1}
	if keys, err := NewKeys(&rest.Config{Host: "http://127.0.0.1:1"}, http.DefaultClient, unserved, "kubeop-system"); err == nil || keys != nil {
		t.Errorf("got %v and %v", keys, err)
	}
}

func TestAnOperatorThatEndsBeforeItsCachesAreFilledEndsWithoutAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Server{Ready: func(ctx context.Context) bool { return ctx.Err() == nil }}
	if err := s.Start(ctx); err != nil {
		t.Errorf("got %v", err)
	}
}
