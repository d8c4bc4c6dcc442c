package hook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestTheCacheHoldsOnlyTheKeysOfSecrets: the operator's namespace also has the passwords of all tenants' repositories, which are not cached.
func TestTheCacheHoldsOnlyTheKeysOfSecrets(t *testing.T) {
	about := metav1.ObjectMeta{Namespace: "kubeop-system", Name: "acme", ResourceVersion: "7"}
	noted := *about.DeepCopy()
	noted.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "password"}
	noted.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	for name, c := range map[string]struct{ given, want map[string][]byte }{
		"a key among others": {map[string][]byte{"token": []byte("key"), "password": []byte("hunter2")}, map[string][]byte{"token": []byte("key")}},
		"a key from a file":  {map[string][]byte{"token": []byte(" key\r\n\n")}, map[string][]byte{"token": []byte(" key")}},
		"only a line break":  {map[string][]byte{"token": []byte("\n")}, map[string][]byte{"token": {}}},
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

// TestACallWithoutAKeyIsRefused: an empty key would let anybody sign calls.
func TestACallWithoutAKeyIsRefused(t *testing.T) {
	down := errors.New("the cache is not filled")
	for name, tc := range map[string]struct {
		repository string
		change     func(*corev1.Secret)
		fails      error
		says       string
	}{
		"a key":                  {repository: "acme"},
		"no such repository":     {repository: "nobody", says: `reading repository nobody: repositories.paas.kubeop.io "nobody" not found`},
		"no hookSecretRef":       {repository: "closed", says: "the repository has no hookSecretRef"},
		"no such Secret":         {repository: "acme", change: func(s *corev1.Secret) { s.Name = "another" }, says: `reading secret kubeop-system/acme-hook: secrets "acme-hook" not found`},
		"a Secret elsewhere":     {repository: "acme", change: func(s *corev1.Secret) { s.Namespace = "kubeop-acme" }, says: `reading secret kubeop-system/acme-hook: secrets "acme-hook" not found`},
		"a Secret without a key": {repository: "acme", change: func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte(key)} }, says: "secret kubeop-system/acme-hook has no key token"},
		"an empty key":           {repository: "acme", change: func(s *corev1.Secret) { s.Data = map[string][]byte{"token": {}} }, says: "secret kubeop-system/acme-hook has no key token"},
		"Secrets cannot be read": {repository: "acme", fails: down, says: "reading secret kubeop-system/acme-hook: the cache is not filled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "acme-hook"}, Data: map[string][]byte{"token": []byte(key)}}
			if tc.change != nil {
				tc.change(secret)
			}
			s.Keys = fake.NewClientBuilder().WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tc.fails != nil {
						return tc.fails
					}
					return c.Get(ctx, name, o, options...)
				},
			}).Build()
			got, err := s.key(t.Context(), tc.repository)
			if (err != nil) != (tc.says != "") || err != nil && err.Error() != tc.says {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if err == nil && string(got) != key || err != nil && got != nil {
				t.Errorf("the key is %q, %v", got, err)
			}
			// A signature with the empty key, which is the key of nothing.
			if answer := call(s.Handler(), "/hook/"+tc.repository, "X-Signature", sign([]byte(body), nil), strings.NewReader(body)); answer.Code == http.StatusAccepted {
				t.Error("a call that is signed with the empty key is accepted")
			}
		})
	}
}
