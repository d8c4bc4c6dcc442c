package repositories

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/manager/api"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/manager/writes"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

const (
	head    = "apiVersion: paas.kubeop.io/v1alpha1\nkind: "
	appFile = "projects/shop/apps/web/app.yaml"
	appText = `# The shop's front.
apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: web}
spec:
  type: Image # not a chart
  image:
    replicas: 2 # two zones
    reference: 'registry.example.com/web:1.0'
    env:
    # Read by the front.
    - name: MESSAGE
      value: hello # shown first
`
)

// remote is a repository at a Git server that wants a password.
type remote struct {
	*sources.GitRepo
	server *sources.GitServer
}

func serveGit(t *testing.T, files map[string]string) *remote {
	t.Helper()
	r := &remote{GitRepo: sources.NewGitRepo(t)}
	for name, text := range files {
		r.Write(name, text)
	}
	r.Push("first")
	r.bare("config", "http.receivepack", "true")
	r.server = sources.ServeGit(t, r.GitRepo, httptest.NewServer)
	r.server.Allow = sources.Basic("manager", "password")
	return r
}

func (r *remote) bare(args ...string) string {
	r.T.Helper()
	return r.Run(filepath.Join(r.Root, r.Name), args...)
}

func (r *remote) commits() int {
	r.T.Helper()
	return len(strings.Fields(r.bare("rev-list", "main")))
}

// stage is a manager over the repositories of a platform with the tenants acme, which has a repository of its own, and beta, which has none.
type stage struct {
	*testing.T
	http.Handler
	acme, platform *remote
	objects        client.Client
	live           *live.Operations
	store          store.Store
	now            time.Time
	log            logr.Logger
	repositories   *Repositories
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	s.acme = serveGit(t, map[string]string{
		"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": head + "Project\nmetadata: {name: shop}\n", appFile: appText,
		"projects/blog/project.yaml": head + "Project\nmetadata: {name: blog}\nspec: {quotas: {}} # wrong before\n",
	})
	s.platform = serveGit(t, map[string]string{
		"kubeop.yaml":                                "layout: v1\n",
		"tenants/acme/tenant.yaml":                   head + "Tenant\nmetadata: {name: acme}\nspec: {repository: {url: 'https://git.example.com/acme.git'}}\n",
		"tenants/beta/tenant.yaml":                   head + "Tenant\nmetadata: {name: beta}\n",
		"tenants/beta/projects/shop/project.yaml":    head + "Project\nmetadata: {name: shop}\n",
		"tenants/beta/projects/shop/apps/a/app.yaml": strings.Replace(appText, "name: web", "name: a", 1),
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	repository := func(name string, of *remote) *v1alpha1.Repository {
		r := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Spec.URL, r.Spec.Ref, r.Spec.SecretRef = of.server.RepoURL(), &sourcev1.GitRepositoryRef{Branch: "main"}, &v1alpha1.LocalSecretReference{Name: "git"}
		if name != v1alpha1.PlatformRepository {
			r.Spec.Tenant = name
		}
		return r
	}
	s.objects = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		repository("acme", s.acme), repository("platform", s.platform),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "git"}, Data: map[string][]byte{"username": []byte("manager"), "password": []byte("password")}},
	).Build()
	x := index.New()
	for _, tenant := range []string{"acme", "beta"} {
		if err := live.Apply(x, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: tenant}}); err != nil {
			t.Fatal(err)
		}
	}
	s.live = &live.Operations{Index: x, Synced: func(context.Context) error { return nil }}
	opened, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "manager.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	s.store = opened
	s.start(opened)
	return s
}

// start starts a manager with nothing in memory.
func (s *stage) start(on store.Store) {
	s.Helper()
	network := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	s.repositories = New(s.objects, s.objects, "kubeop-system", git.NewStore(s.TempDir(), network))
	var err error
	s.Handler, err = api.New(api.Options{
		Log: s.log, Registry: prometheus.NewRegistry(), Checks: readiness.New(logr.Discard(), time.Now), Store: on, Live: s.live, Repositories: s.repositories,
		RequestsPerSecond: 10_000, Burst: 10_000, Now: func() time.Time { return s.now },
	})
	if err != nil {
		s.Fatal(err)
	}
}

// holder stores a token, valid for a year, and returns it.
func (s *stage) holder(id, scope string) string {
	s.Helper()
	secret, tenant := token.New(), ""
	if scope != "admin" {
		tenant = strings.FieldsFunc(scope, func(r rune) bool { return r == ':' || r == '/' })[1]
	}
	t := store.Token{ID: id, Name: "CI of " + id, Hash: token.Hash(secret), Scopes: []string{scope}, Tenant: tenant, Created: s.now, Expires: s.now.AddDate(1, 0, 0)}
	if err := s.store.CreateToken(s.Context(), t, store.Event{Action: "test", Tenant: tenant}); err != nil {
		s.Fatal(err)
	}
	return secret
}

// header is a header of a request.
type header struct{ name, value string }

func (s *stage) send(secret, method, path, body string, headers ...header) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	for _, h := range headers {
		r.Header.Set(h.name, h.value)
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	return answer
}

// written sends a request that has to be accepted.
func (s *stage) written(secret, method, path, body string, headers ...header) (w writes.Written) {
	s.Helper()
	answer := s.send(secret, method, path, body, headers...)
	if answer.Code != http.StatusAccepted {
		s.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &w); err != nil {
		s.Fatal(err)
	}
	if answer.Header().Get("Location") != w.Follow {
		s.Errorf("the location is %s, and %+v", answer.Header().Get("Location"), w)
	}
	return w
}

// refused sends a request, such as "GET /v1/tenants", that has to be answered by a problem.
func (s *stage) refused(secret, operation, body string, status int, headers ...header) (p problem.Problem) {
	s.Helper()
	method, path, _ := strings.Cut(operation, " ")
	answer := s.send(secret, method, path, body, headers...)
	if answer.Code != status {
		s.Fatalf("%s %s: %d %s, want %d", method, path, answer.Code, answer.Body, status)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		s.Fatal(err)
	}
	return p
}

func notReady(why string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "Held", Message: why}
}
