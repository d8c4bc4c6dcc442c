package source

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/references"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestTheAnswerOfASourceDecidesTheRetryAndTheReason checks for each answer to a Git app's fetch when the queue retries, and what the condition reports.
func TestTheAnswerOfASourceDecidesTheRetryAndTheReason(t *testing.T) {
	const interval = time.Hour
	busy := fmt.Errorf("fetching https://git.example/a: %w", failure.ErrBusy)
	cases := map[string]struct {
		url    string
		secret bool
		// answered is the source's answer; without it the source is really fetched.
		answered error
		reason   string
		says     string
		after    time.Duration
		failed   bool
	}{
		"busy":            {answered: busy, reason: v1alpha1.WaitingForTurnReason, says: "fetching https://git.example/a: busy", after: time.Minute},
		"refused":         {answered: failure.ErrAuthentication, reason: v1alpha1.AuthenticationFailedReason, after: interval},
		"not there":       {answered: failure.ErrNotFound, reason: v1alpha1.SourceNotFoundReason, after: interval},
		"too large":       {answered: failure.ErrTooLarge, reason: v1alpha1.InvalidSourceReason, after: interval},
		"unreachable":     {answered: context.DeadlineExceeded, reason: v1alpha1.FetchFailedReason, failed: true},
		"a bad URL":       {url: "ftp://git.example", reason: v1alpha1.InvalidSourceReason, says: `fetching ftp://git.example: the scheme "ftp" is not supported: use https, http or ssh in the URL in Git`, after: interval},
		"no secret there": {url: "https://git.example", secret: true, reason: v1alpha1.FetchFailedReason, says: "secret ns/git of secretRef does not exist: create it; an administrator of the cluster may run: kubectl create secret generic git -n ns --from-literal=username=... --from-literal=password=...", failed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "app", Finalizers: []string{v1alpha1.Finalizer}},
				Spec:       v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: tc.url}},
			}
			app.Spec.Interval.Duration = interval
			if tc.secret {
				app.Spec.Git.SecretRef = &v1alpha1.LocalSecretReference{Name: "git"}
			}
			f, p := newFetcher(t, app)
			woken := make(chan types.NamespacedName, 10)
			f.Answers.wake(func(app types.NamespacedName) { woken <- app })
			runner := &step.Runner{Client: p.Client, Events: events.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(p.Now())}
			run := func() (ctrl.Result, error) {
				s := &recording{Found: Found{}, app: app}
				return runner.Run(t.Context(), app, s, step.Of(v1alpha1.SourceReadyCondition, s, func(ctx context.Context, s *recording) error {
					if tc.answered != nil {
						return outcomeOf(tc.answered)
					}
					return f.Fetch(ctx, p.Subject, &s.Found)
				}))
			}
			result, err := run()
			for result.RequeueAfter == step.Quiet {
				if c := conditions.Get(app, v1alpha1.SourceReadyCondition); c != nil {
					t.Fatalf("the condition %v is set during the fetch", c)
				}
				<-woken
				result, err = run()
			}
			if (err != nil) != tc.failed {
				t.Errorf("the step returns the error %v", err)
			}
			if d := result.RequeueAfter - tc.after; d < -tc.after/10 || d > tc.after/10 {
				t.Errorf("requeued after %s, want about %s", result.RequeueAfter, tc.after)
			}
			is := conditions.Get(app, v1alpha1.SourceReadyCondition)
			if is == nil || is.Reason != tc.reason || !strings.Contains(is.Message, tc.says) {
				t.Errorf("the condition is %v, want reason %s and %q in the message", is, tc.reason, tc.says)
			}
		})
	}
}

// TestTenantsFetchTheSameSourceSeparately: one tenant gives up on a source, and another one follows it.
func TestTenantsFetchTheSameSourceSeparately(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "app"}, Spec: v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: "https://git.example/public"}}}
	f, p := newFetcher(t, app)
	ask := func(tenant string, err error) error {
		p.Owner.Tenant = tenant
		_, got := answered(t, f, p, query[git.Commit]{of: f.Answers.Commits, what: "git", prepare: answering(err)})
		return got
	}
	if err := ask("mallory", context.DeadlineExceeded); err == nil {
		t.Fatal("the first tenant did not give up")
	}
	if err := ask("acme", nil); err != nil {
		t.Errorf("the other tenant got %v", err)
	}
}

// TestAppsShareOnlyTheSameSource: another ref, another artifact, or other credentials are another source.
func TestAppsShareOnlyTheSameSource(t *testing.T) {
	repo, server, _ := pushed(t, map[string]string{"a.yaml": "of the tag"})
	repo.Git("tag", "v1")
	repo.Write("a.yaml", "of the branch")
	repo.Push("second")
	repo.PushAll()
	server.Allow = sources.Basic("u", "p")
	registry := sources.ServeOCI(t, httptest.NewServer)
	for tag, text := range map[string]string{"1.0.0": "one", "1.1.0": "newest", "latest": "latest"} {
		registry.PushArtifact(t, tag, "application/vnd.cncf.flux.content.v1.tar+gzip", sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: text}))
	}
	w := newWorld(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "git"}, Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")}})
	git := func(ref *sourcev1.GitRepositoryRef) v1alpha1.AppSpec {
		return v1alpha1.AppSpec{Git: &v1alpha1.GitSource{URL: server.RepoURL(), Ref: ref, SecretRef: &v1alpha1.LocalSecretReference{Name: "git"}}}
	}
	oci := func(tag, versions string) v1alpha1.AppSpec {
		return v1alpha1.AppSpec{Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: registry.Repository() + "/web", Tag: tag, SemVer: versions, Insecure: true}}}
	}
	var apps []*v1alpha1.App
	for _, c := range []struct {
		spec v1alpha1.AppSpec
		want string
	}{
		{git(nil), "of the branch"}, {git(&sourcev1.GitRepositoryRef{Tag: "v1"}), "of the tag"},
		{oci("1.0.0", ""), "one"}, {oci("latest", ""), "latest"}, {oci("", "1.x"), "newest"},
	} {
		apps = append(apps, appOf(c.want, c.spec))
	}
	for _, app := range slices.Concat(apps, apps) { // Afterwards each has an answer that it could share.
		found, end := w.fetch(app)
		if end != "done" {
			t.Fatalf("%s: %s", app.Name, end)
		}
		if text := w.read(found.Files.FS, "a.yaml"); text != app.Name {
			t.Errorf("the file is %q, want %q", text, app.Name)
		}
	}
	other := git(nil)
	other.Git.SecretRef = nil
	if found, end := w.fetch(appOf("other", other)); !strings.Contains(end, "AuthenticationFailed: ") || found.Files.FS != nil {
		t.Errorf("without the Secret: %s", end)
	}
}

// TestAnAppFollowsItsSource changes an app's source from a Git repository to one of Flux.
func TestAnAppFollowsItsSource(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "app"}, Spec: v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: "https://git.example/public"}}}
	f, p := newFetcher(t, app)
	if _, err := answered(t, f, p, query[git.Commit]{of: f.Answers.Commits, what: "git", prepare: answering(nil)}); err != nil {
		t.Fatal(err)
	}
	source := references.Object{Kind: sharedSource, Name: p.last.source}
	if len(f.users.Users(source)) != 1 {
		t.Fatal("the app does not follow its repository")
	}
	app.Spec.Git = &v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{Kind: "GitRepository", Name: "web"}}
	if err := f.Fetch(t.Context(), p.Subject, &Found{}); err == nil {
		t.Fatal("the Flux source is not found")
	}
	if p.last.source != "" || len(f.users.Users(source)) != 0 {
		t.Errorf("the app still follows %q", p.last.source)
	}
}

// answering prepares a fetch that ends so.
func answering(err error) func() (cache.Fetcher[git.Commit], error) {
	return func() (cache.Fetcher[git.Commit], error) {
		return func(context.Context) (git.Commit, error) { return git.Commit{}, err }, nil
	}
}

// answered asks as Reconciles do: the second one finds the answer.
func answered(t *testing.T, f *Fetcher, p *pass, q query[git.Commit]) (git.Commit, error) {
	t.Helper()
	woken := make(chan types.NamespacedName, 10)
	f.Answers.wake(func(app types.NamespacedName) { woken <- app })
	for {
		got, err := shared(t.Context(), f, p, q)
		if !errors.As(err, new(*cache.Unanswered)) {
			return got, err
		}
		<-woken
	}
}

// recording are the facts of a Reconcile that fetches a source.
type recording struct {
	Found
	app *v1alpha1.App
}

func (r *recording) Record()         { r.Found.Record(r.app) }
func (r *recording) Summary() string { return "" }

func newFetcher(t *testing.T, app *v1alpha1.App) (*Fetcher, *pass) {
	t.Helper()
	api := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(app).WithStatusSubresource(app).Build()
	now := clocktesting.NewFakeClock(time.Unix(1000, 0))
	f := &Fetcher{
		Client: api, Inputs: &inputs.Reader{Version: func(context.Context, string, string, string) (string, error) { return "1", nil }},
		Queue: &wake.Queue{}, Git: git.NewStore(t.TempDir(), nil), Answers: NewAnswers(pool.New(pool.Options{Reach: pool.ReachOf}, now), now),
	}
	s := (&subject.Subjects{Clock: now}).New(app)
	s.Client = api
	return f, &pass{Subject: s, found: &Found{}, last: f.queries.Get(app)}
}

// schemeOf knows Kubernetes' own kinds and kubeop's.
func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}
