package repository

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// fixture is a Reconciler between a real Git server and a fake API server, which count what they are asked.
type fixture struct {
	*Reconciler
	t          *testing.T
	clock      *clocktesting.FakeClock
	woken      chan types.NamespacedName
	bare       string
	down       bool
	asked      int // requests to the Git server
	secrets    int // Secrets read
	repository *v1alpha1.Repository
	app        *v1alpha1.App
	pulls      pullRequests
	// progress is that of the next passes; nil before anything was synced.
	progress *progress
}

const appFolder = "projects/shop/apps/web"

// newFixture has a repository with one app that was declared by its only commit.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}
	server := b.serve()
	revision, tree := b.push("1")
	b.repository = &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "repository", Generation: 1},
		Spec:       v1alpha1.RepositorySpec{URL: server + "/app.git", Tenant: "acme", SecretRef: &v1alpha1.LocalSecretReference{Name: "git"}},
		Status:     v1alpha1.RepositoryStatus{LastAttemptedRevision: revision},
	}
	b.app = &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kubeop-acme-shop", Name: "web", UID: "app", Generation: 1, Finalizers: []string{v1alpha1.Finalizer},
		Labels: map[string]string{v1alpha1.RepositoryLabel: "acme"},
		Annotations: map[string]string{
			v1alpha1.TreeAnnotation: tree, v1alpha1.RevisionAnnotation: revision, v1alpha1.FolderAnnotation: appFolder,
		},
	}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "git"},
		Data:       map[string][]byte{"username": []byte("u"), "password": []byte("p")},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(b.repository, b.app, secret).WithStatusSubresource(b.app).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, ok := o.(*corev1.Secret); ok {
					b.secrets++
				}
				return c.Get(ctx, key, o, opts...)
			},
		}).Build()
	b.Reconciler = &Reconciler{
		Client: api, Direct: api, Namespace: "kubeop-system", Secrets: api, Git: git.NewStore(t.TempDir(), &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}),
		Steps:  &step.Runner{Client: api, Events: events.NewFakeRecorder(100), Clock: b.clock},
		Beside: Beside{PullRequests: &b.pulls},
	}
	b.restart()
	return b
}

// pullRequests records the commits that it was called with.
type pullRequests struct {
	mu      sync.Mutex
	fetched []string
	forgot  []string
}

func (p *pullRequests) Fetched(_ *v1alpha1.Repository, newest git.Commit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched = append(p.fetched, newest.Hash)
}

func (p *pullRequests) StatusOf(*v1alpha1.Repository, string) (step.Note, []v1alpha1.PullRequestPlan) {
	return step.Note{}, nil
}

func (p *pullRequests) Forget(repository string) { p.forgot = append(p.forgot, repository) }

// restart forgets what is only remembered.
func (b *fixture) restart() {
	b.Remotes = NewRemotes(pool.New(pool.Options{Reach: pool.ReachOf}, b.clock), b.clock)
	woken := make(chan types.NamespacedName, 10)
	b.woken = woken
	b.Commits.Wake = func(name types.NamespacedName) { woken <- name }
	b.WakeApps(b.Commits.Wake)
	b.credentials = credentials.Cache{Reader: b.Direct, Metadata: b.Secrets, Named: func(context.Context, string) bool { return true }, Clock: b.clock}
}

func (b *fixture) serve() string {
	b.t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		b.t.Fatal(err)
	}
	root := b.t.TempDir()
	b.bare = filepath.Join(root, "app.git")
	b.git("init", "-q", "--bare", "-b", "main", b.bare)
	backend := &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if b.asked++; b.down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		backend.ServeHTTP(w, req)
	}))
	b.t.Cleanup(server.Close)
	return server.URL
}

// push makes a commit without a parent, as after a forced push; it returns its revision and the hash of the app's folder.
func (b *fixture) push(content string) (revision, tree string) {
	b.t.Helper()
	work := b.t.TempDir()
	b.git("init", "-q", "-b", "main", work)
	if err := os.MkdirAll(filepath.Join(work, appFolder), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, appFolder, "app.yaml"), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.git("-C", work, "add", "-A")
	b.git("-C", work, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", content)
	b.git("-C", work, "push", "-q", "-f", b.bare, "main")
	return "main@sha1:" + b.git("-C", work, "rev-parse", "HEAD"), b.git("-C", work, "rev-parse", "HEAD:"+appFolder)
}

func (b *fixture) git(args ...string) string {
	b.t.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

// fetchNow fetches as a Reconcile of the repository does.
func (b *fixture) fetchNow() {
	b.t.Helper()
	if err := b.fetch(b.t.Context(), newScope(b.repository)); err == nil {
		b.t.Fatal("it has a commit before the server was asked")
	}
	<-b.woken
	if err := b.fetch(b.t.Context(), newScope(b.repository)); err != nil {
		b.t.Fatal(err)
	}
	b.asked, b.secrets = 0, 0
}

// look takes one step of the app, and returns the result for the queue.
func (b *fixture) look() (ctrl.Result, error) {
	b.t.Helper()
	return b.Steps.Run(b.t.Context(), b.app, facts{}, step.Of(v1alpha1.SourceReadyCondition, facts{}, func(ctx context.Context, _ facts) error {
		folder, err := b.Folder(ctx, b.app)
		for errors.As(err, new(*cache.Unanswered)) {
			<-b.woken
			folder, err = b.Folder(ctx, b.app)
		}
		if err == nil {
			_, err = folder.ReadFile("app.yaml")
		}
		return err
	}))
}

type facts struct{}

func (facts) Record()         {}
func (facts) Summary() string { return "" }

func (b *fixture) wantFound(secrets, asked int) {
	b.t.Helper()
	if _, err := b.look(); err != nil {
		b.t.Error(err)
	}
	if b.secrets != secrets || b.asked != asked {
		b.t.Errorf("read %d Secrets and asked the server %d times, want %d and %d", b.secrets, b.asked, secrets, asked)
	}
}

func TestFolderOfTheLastFetchReadsNoSecret(t *testing.T) {
	b := newFixture(t)
	b.fetchNow()
	for range 5 {
		b.wantFound(0, 0)
	}
	// A newest commit that holds another folder does not take the one the app was declared with away.
	b.push("2")
	b.clock.Step(time.Hour)
	b.fetchNow()
	b.wantFound(0, 0)
}

func TestAFolderIsReadAfterARestartWithoutARequest(t *testing.T) {
	b := newFixture(t)
	b.fetchNow()
	b.restart()
	b.wantFound(1, 0)
}

func TestFolderOfAnotherSpecIsReadAnew(t *testing.T) {
	b := newFixture(t)
	b.fetchNow()
	b.repository.Generation = 2
	if err := b.Client.Update(t.Context(), b.repository); err != nil {
		t.Fatal(err)
	}
	b.wantFound(0, 0) // With the Secret that is known.
}

// TestAnAppSaysWhyItsFolderIsNotThere checks the message, when the app is looked at again, and how often the server is asked by an
// app that events wake.
func TestAnAppSaysWhyItsFolderIsNotThere(t *testing.T) {
	cases := map[string]struct {
		change func(b *fixture)
		after  time.Duration
		says   string
		asked  int
	}{
		"never fetched": {func(b *fixture) {
			b.repository.Status.LastAttemptedRevision = ""
			b.update(b.repository)
		}, time.Second, "waits for its repository: repository acme: not fetched yet", 0},
		"repository deleted": {func(b *fixture) {
			if err := b.Client.Delete(b.t.Context(), b.repository); err != nil {
				b.t.Fatal(err)
			}
		}, 0, "repository acme, which declared the app, does not exist: create it again, or delete the app", 0},
		"another tenant's": {func(b *fixture) {
			b.repository.Spec.Tenant = "other"
			b.update(b.repository)
		}, 0, "repository acme cannot declare apps in namespace kubeop-acme-shop", 0},
		"commit gone": {func(b *fixture) {
			b.push("2")
			b.git("-C", b.bare, "gc", "-q", "--prune=now")
		}, 0, "push a change of the folder", 4}, // one fetch: the commit alone, then with the history
		"repository gone": {func(b *fixture) {
			if err := os.RemoveAll(b.bare); err != nil {
				b.t.Fatal(err)
			}
		}, 0, "push a change of the folder", 1},
		"not declared": {func(b *fixture) { b.app.Labels = nil }, 0, "the app was not declared in a repository, so it has no folder: ", 0},
		"no folder":    {func(b *fixture) { b.app.Annotations = nil }, 0, "the app was not declared in a repository, so it has no folder: ", 0},
		"server down":  {func(b *fixture) { b.down = true; b.lose() }, 0, "502 Bad Gateway", 1},
		"no secret": {func(b *fixture) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "git"}}
			if err := b.Client.Delete(b.t.Context(), secret); err != nil {
				b.t.Fatal(err)
			}
		}, 0, "secret kubeop-system/git of secretRef does not exist: create it", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			tc.change(b)
			for range 5 {
				result, err := b.look()
				if tc.after > 0 {
					if result.RequeueAfter != tc.after || err != nil {
						t.Errorf("got %v and %v, want to be looked at after %s", result, err, tc.after)
					}
				} else if err == nil || result.RequeueAfter != 0 {
					t.Errorf("got %v and %v, want an error, for the queue's backoff", result, err)
				}
				if message := b.message(); !strings.Contains(message, tc.says) || name == "server down" && strings.Contains(message, "push a change") {
					t.Errorf("it says %q, want %q", message, tc.says)
				}
			}
			if b.asked != tc.asked || b.secrets > 1 {
				t.Errorf("asked the server %d times, want %d; read %d Secrets", b.asked, tc.asked, b.secrets)
			}
		})
	}
}

func (b *fixture) update(o client.Object) {
	b.t.Helper()
	if err := b.Client.Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) message() string {
	for _, c := range b.app.Status.Conditions {
		if c.Type == v1alpha1.SourceReadyCondition {
			return c.Message
		}
	}
	return ""
}

// TestTheRepositoryDoesNotCountForItsTenant so that apps which take all of the tenant's room do not stop the push that mends them.
func TestTheRepositoryDoesNotCountForItsTenant(t *testing.T) {
	b := newFixture(t)
	b.repository.Spec.Ref = &sourcev1.GitRepositoryRef{Branch: "main"}
	source, err := b.Source(t.Context(), b.repository)
	if source.Auth.Username != "u" || source.Ref == b.repository.Spec.Ref || source.Ref.Branch != "main" {
		t.Errorf("it is fetched as %q at %+v; the ref is to be a copy, because the fetch may outlast the pass", source.Auth.Username, source.Ref)
	}
	if err != nil || source.Tenant != budget.OfRepository("acme") || source.Tenant == "acme" {
		t.Errorf("it counts for %q, %v", source.Tenant, err)
	}
}

// TestFolderOfTheLastFetchNeedsNoCredentials, as long as the repository is the one that was fetched.
func TestFolderOfTheLastFetchNeedsNoCredentials(t *testing.T) {
	b := newFixture(t)
	b.fetchNow()
	b.credentials = credentials.Cache{Reader: b.Direct, Metadata: b.Secrets, Named: func(context.Context, string) bool { return true }, Clock: b.clock}
	b.wantFound(0, 0)

	b.repository.Generation = 2
	b.repository.Spec.URL = strings.TrimSuffix(b.repository.Spec.URL, "app.git") + "none.git"
	if err := b.Client.Update(t.Context(), b.repository); err != nil {
		t.Fatal(err)
	}
	folder, err := b.Folder(t.Context(), b.app)
	for errors.As(err, new(*cache.Unanswered)) {
		<-b.woken
		folder, err = b.Folder(t.Context(), b.app)
	}
	if err == nil || folder != nil {
		t.Errorf("the folder of the former repository is used: %v", err)
	}
}
