package hook

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestPush(t *testing.T) {
	const body, key = `{"ref":"refs/heads/main"}`, "hook-key"
	mac := hex.EncodeToString(sign([]byte(body), []byte(key)))
	wrong := hex.EncodeToString(sign([]byte(body), []byte("another")))
	cases := map[string]struct {
		path, header, value string
		want                int
	}{
		"generic":                     {"/hook/acme", "X-Signature", "sha256=" + mac, 202},
		"GitHub":                      {"/hook/acme", "X-Hub-Signature-256", "sha256=" + mac, 202},
		"Gitea":                       {"/hook/acme", "X-Gitea-Signature", mac, 202},
		"GitLab":                      {"/hook/acme", "X-Gitlab-Token", key, 202},
		"no signature":                {"/hook/acme", "X-Other", mac, 401},
		"another key":                 {"/hook/acme", "X-Signature", "sha256=" + wrong, 401},
		"no hex":                      {"/hook/acme", "X-Signature", "sha256=zz", 401},
		"a wrong token":               {"/hook/acme", "X-Gitlab-Token", "hook-kez", 401},
		"a wrong one beside a right":  {"/hook/acme", "X-Signature", "sha256=", 401},
		"no such repository":          {"/hook/other", "X-Signature", "sha256=" + mac, 401},
		"a repository without a hook": {"/hook/closed", "X-Signature", "sha256=" + mac, 401},
		"another path":                {"/hook/acme/x", "X-Signature", "sha256=" + mac, 404},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, key)
			request := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(body))
			request.Header.Set(c.header, c.value)
			answer := httptest.NewRecorder()
			s.Handler().ServeHTTP(answer, request)
			if answer.Code != c.want {
				t.Errorf("got %d, want %d", answer.Code, c.want)
			}
			if strings.Contains(answer.Body.String(), key) {
				t.Error("the answer holds the key")
			}
			if asked := requestedAt(t, s); (asked != "") != (c.want == 202) {
				t.Errorf("requestedAt is %q after an answer of %d", asked, answer.Code)
			}
		})
	}
}

func newServer(t *testing.T, key string) *Server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Name: "acme"},
			Spec:       v1alpha1.RepositorySpec{HookSecretRef: &v1alpha1.LocalSecretReference{Name: "acme-hook"}},
		},
		&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "closed"}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "acme-hook"},
			Data:       map[string][]byte{"token": []byte(key)},
		},
	).Build()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	return &Server{Client: c, Reader: c, Namespace: "kubeop-system", Clock: clock, Log: logr.Discard()}
}

func requestedAt(t *testing.T, s *Server) string {
	t.Helper()
	repository := &v1alpha1.Repository{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "acme"}, repository); err != nil {
		t.Fatal(err)
	}
	return repository.Annotations[meta.ReconcileRequestAnnotation]
}

func FuzzSigned(f *testing.F) {
	f.Add("X-Signature", "sha256=00", []byte("{}"))
	f.Add("X-Gitlab-Token", "key", []byte(""))
	f.Fuzz(func(t *testing.T, name, value string, body []byte) {
		key := []byte("the key that is not guessed")
		header := http.Header{}
		header.Set(name, value)
		if signed(header, body, key) && value != string(key) && !strings.Contains(strings.ToLower(value), hex.EncodeToString(sign(body, key))) {
			t.Errorf("%s: %q passed as a signature", name, value)
		}
	})
}
