package preview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declaredby"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/host"
	"github.com/kubeop/kubeop/gitops/preview"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

const (
	project = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\nspec:\n  previews: {branches: \"f-*\", max: 2}\n"
	app     = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: {type: Image, image: {reference: \"registry.example.com/web:%s\"}}\n"
)

// fixture is a tenant's repository on a Git server, with the previews that run.
type fixture struct {
	*Previews
	t      *testing.T
	repo   *sources.GitRepo
	server *sources.GitServer
	store  *git.Store
	reader *tree.Reader
	live   client.Client
	woken  chan types.NamespacedName
	// before is the last tree, now what the commit of the last request declares itself, and projects are those read for it. asked counts the requests, each
	// of which asks for a new listing.
	before, now *tree.Tree
	projects    []*tree.Project
	asked       int
	// signers are those whose signatures commits need; nil for none.
	signers *signature.Verification
	// list answers for the Git host.
	list func() ([]host.PullRequest, error)
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	reader, err := tree.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	repo := sources.NewGitRepo(t)
	f := &fixture{
		t: t, repo: repo, server: sources.ServeGit(t, repo, httptest.NewServer), reader: reader, woken: make(chan types.NamespacedName, 100),
		store: git.NewStore(t.TempDir(), &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}),
		live:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&v1alpha1.Project{}, declaredby.Index, declaredby.Repository).Build(),
	}
	f.restart()
	repo.Write("kubeop.yaml", "layout: v1\n")
	repo.Write("projects/shop/project.yaml", project)
	repo.Write("projects/shop/apps/web/app.yaml", fmt.Sprintf(app, "main"))
	repo.Push("main")
	return f
}

// restart forgets all answers, as a new process does.
func (f *fixture) restart() {
	f.Previews = New(pool.New(pool.Options{Reach: pool.ReachOf}, clock.RealClock{}), clock.RealClock{})
	f.WakeBy(func(name types.NamespacedName) { f.woken <- name })
	f.before = nil
}

func (f *fixture) branch(name, text string) {
	f.t.Helper()
	f.repo.Git("checkout", "--quiet", "-B", name, "main")
	f.repo.Write("projects/shop/apps/web/app.yaml", text)
	f.repo.Push(name)
	f.repo.Git("checkout", "--quiet", "main")
}

// request asks for a new listing of the branches.
func (f *fixture) request(commit git.Commit, now *tree.Tree) Request {
	f.asked++
	f.now = now
	question := cache.Question{Generation: 1, MaxAge: time.Hour, Retry: time.Hour, Request: fmt.Sprint(f.asked)}
	return Request{
		Repository: &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid", Generation: 1}}, Commit: commit, Parents: now.Parents(),
		Read: f.readBranch, Live: f.live, Store: f.store, Source: func(context.Context) (git.Source, error) {
			return git.Source{URL: f.server.RepoURL(), Signers: f.signers}, nil
		},
		Query:        cache.Query{Question: question, Caller: types.NamespacedName{Name: "team"}, Version: fmt.Sprint("keys ", f.signers != nil), Host: "host:80"},
		PullRequests: func(context.Context) ([]host.PullRequest, error) { return f.list() },
	}
}

// readBranch reads a preview, as the controller of Repositories does.
func (f *fixture) readBranch(parent *v1alpha1.Project, of preview.Preview, commit git.Commit) ([]string, error) {
	from := tree.Origin{Of: parent.Name, Branch: of.Name, Revision: commit.Revision, Author: commit.Author}
	project, err := f.reader.ReadPreview(files.Of(commit.Root), f.now.Scope, tree.PreviewOf(parent, of.Project, from), f.before)
	if err != nil {
		return nil, err
	}
	f.projects = append(f.projects, project)
	return f.now.ProblemsOf(parent, project), nil
}

// readout is a Result with the previews that the Repository has then.
type readout struct {
	*Result
	Projects []*tree.Project
}

// Read decides about the previews of the commit of the last request.
func (f *fixture) Read(ctx context.Context, q Request) (*readout, error) {
	f.projects = nil
	result, err := f.Previews.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	return &readout{result, f.now.With(append(f.projects, f.now.Kept(f.before, result.Stays)...)).Previews()}, nil
}

// read reads main with its previews, after the branches were listed again.
func (f *fixture) read() *readout {
	f.t.Helper()
	commit, err := f.store.Fetch(f.t.Context(), git.Source{URL: f.server.RepoURL()})
	if err != nil {
		f.t.Fatal(err)
	}
	scope := tree.Scope{Repository: "team", Tenant: "team"}
	now := f.reader.Read(files.Of(commit.Root), scope, f.before)
	q := f.request(commit, now)
	if _, err := f.Read(f.t.Context(), q); err != nil {
		f.t.Fatal(err)
	}
	if now.Parents()["shop"] != nil {
		select {
		case <-f.woken:
		case <-time.After(30 * time.Second):
			f.t.Fatal("the branches were not listed")
		}
	}
	result, err := f.Read(f.t.Context(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	f.before = now.With(result.Projects)
	return result
}

func (f *fixture) has(result *readout, want ...string) {
	f.t.Helper()
	var got []string
	for _, p := range result.Projects {
		got = append(got, p.Ref().Project)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		f.t.Errorf("the previews are %v, want %v; %v", got, want, result.Status)
	}
}

// said returns what the status says about a branch.
func said(result *readout, branch string) string {
	for _, s := range result.Status {
		if s.Branch == branch {
			return s.Message
		}
	}
	return "nothing"
}

func running(name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kubeop-team", Name: name, Labels: map[string]string{v1alpha1.RepositoryLabel: "team", v1alpha1.ProjectLabel: name},
		Annotations: map[string]string{v1alpha1.PreviewOfAnnotation: "shop", v1alpha1.BranchAnnotation: strings.TrimPrefix(name, "shop-pr-")},
	}}
}

func TestPreviewsFollowTheBranches(t *testing.T) {
	f := newFixture(t)
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.branch("f-b", "kind: nothing\n")
	f.branch("f-c", fmt.Sprintf(app, "c"))
	f.branch("other", fmt.Sprintf(app, "other"))
	result := f.read()
	f.has(result, "shop-pr-f-a", "shop-pr-f-b")
	if a, b, c := said(result, "f-a"), said(result, "f-b"), said(result, "f-c"); a != "" || !strings.HasPrefix(b, "projects/shop/apps/web/app.yaml:1:") ||
		!strings.Contains(b, "in branch f-b: ") || !strings.Contains(c, "as many as spec.previews.max allows") || said(result, "other") != "nothing" {
		t.Errorf("the status says %q, %q, %q", a, b, c)
	}
	f.repo.Git("push", "--quiet", "origin", ":f-b")
	f.has(f.read(), "shop-pr-f-a", "shop-pr-f-c")
	if result.Keep(running("shop-pr-f-b")) {
		t.Error("the preview of a branch that is gone is kept")
	}
}

func TestPreviewsStayWhileTheBranchesAreNotKnown(t *testing.T) {
	f := newFixture(t, running("shop-pr-f-a"))
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.has(f.read(), "shop-pr-f-a")

	f.server.Set(func() {
		f.server.Wrap = func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return true
		}
	})
	before := f.before
	result := f.readAway(before)
	f.has(result, "shop-pr-f-a")
	if !strings.Contains(said(result, "f-a"), "the branch may be older") {
		t.Errorf("the status says %v", result.Status)
	}
	f.restart()
	result = f.readAway(before)
	if !result.Keep(running("shop-pr-f-a")) || result.Keep(&v1alpha1.Project{}) {
		t.Error("after a restart, the preview is not kept, or any project is")
	}
}

// TestTheOrderOfTheProjectsAsksNothingAnew: the branches of all patterns, each there once, are listed by one request, however often the Repository is read
// meanwhile.
func TestTheOrderOfTheProjectsAsksNothingAnew(t *testing.T) {
	f := newFixture(t)
	var want []string
	for _, pattern := range []string{"a-*", "b-*", "c-*", "d-*", "e-*", "f-*"} {
		for _, twice := range []string{"1", "2"} {
			name := pattern[:1] + twice
			f.repo.Write("projects/"+name+"/project.yaml", strings.NewReplacer("shop", name, "f-*", pattern).Replace(project))
		}
		want = append(want, pattern)
	}
	f.repo.Push("many projects")
	commit, err := f.store.Fetch(t.Context(), git.Source{URL: f.server.RepoURL()})
	if err != nil {
		t.Fatal(err)
	}
	listings, answer := make(chan struct{}, 100), make(chan struct{})
	f.server.Set(func() {
		f.server.Wrap = func(_ http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			listings <- struct{}{}
			<-answer
			return false
		}
	})
	q := f.request(commit, f.reader.Read(files.Of(commit.Root), tree.Scope{Repository: "team", Tenant: "team"}, nil))
	reads := func() {
		for range 10 {
			if _, err := f.Read(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	reads()
	<-listings
	close(answer)
	<-f.woken
	reads()
	if last, _, known := f.Branches.Last(branchesKey(q.Repository)); !known || !slices.Equal(last.Patterns, want) {
		t.Errorf("the patterns are %q, want %q", last.Patterns, want)
	}
	if len(listings) > 0 || len(f.woken) > 0 {
		t.Errorf("the branches were listed again %d times, and there were %d more answers", len(listings), len(f.woken))
	}
}

// TestWithoutCredentialsNoBranchIsListed: the status says why, and what runs stays.
func TestWithoutCredentialsNoBranchIsListed(t *testing.T) {
	f := newFixture(t, running("shop-pr-f-a"))
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.has(f.read(), "shop-pr-f-a")
	f.server.Seen()
	q := f.request(git.Commit{}, f.before.With(nil))
	q.Source = func(context.Context) (git.Source, error) {
		return git.Source{URL: f.server.RepoURL()}, errors.New("reading the credentials: there is no Secret team")
	}
	if _, err := f.Read(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	<-f.woken
	result, err := f.Read(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	f.has(result, "shop-pr-f-a")
	if says := said(result, "f-a"); !strings.Contains(says, "there is no Secret team") || len(f.server.Seen()) > 0 {
		t.Errorf("the status says %q, and the server was asked %d times", says, len(f.server.Seen()))
	}
}

// TestPreviewsOfAFrozenTenantStay: none is made, changed or deleted, and no branch is listed.
func TestPreviewsOfAFrozenTenantStay(t *testing.T) {
	f := newFixture(t, running("shop-pr-f-a"))
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.has(f.read(), "shop-pr-f-a")
	f.branch("f-b", fmt.Sprintf(app, "b"))
	before := f.before
	for _, restarted := range []bool{false, true} {
		q := f.request(git.Commit{}, before.With(nil))
		q.Frozen = true
		if restarted {
			f.restart()
		}
		result, err := f.Read(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if !restarted {
			f.has(result, "shop-pr-f-a")
		}
		if !result.Keep(running("shop-pr-f-a")) || len(result.Status) != 0 {
			t.Errorf("restarted %t: the preview is not kept, or the status says %v", restarted, result.Status)
		}
	}
}

// readAway reads the commit of an earlier tree while the Git host does not answer.
func (f *fixture) readAway(before *tree.Tree) *readout {
	f.t.Helper()
	q := f.request(git.Commit{}, before.With(nil))
	if _, err := f.Read(f.t.Context(), q); err != nil {
		f.t.Fatal(err)
	}
	select {
	case <-f.woken:
	case <-time.After(30 * time.Second):
		f.t.Fatal("the listing did not fail")
	}
	result, err := f.Read(f.t.Context(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	return result
}

func TestPreviewsStayWhileTheProjectIsInvalid(t *testing.T) {
	f := newFixture(t)
	f.branch("f-a", fmt.Sprintf(app, "a"))
	f.has(f.read(), "shop-pr-f-a")
	f.repo.Write("projects/shop/project.yaml", "kind: nothing\n")
	f.repo.Push("broken")
	result := f.read()
	f.has(result, "shop-pr-f-a")
	if !result.Keep(running("shop-pr-f-a")) {
		t.Error("after a restart, the preview would not be kept")
	}
	f.repo.Write("projects/shop/project.yaml", strings.Split(project, "spec:")[0])
	f.repo.Push("none")
	if result := f.readNone(); len(result.Projects) != 0 || result.Keep(running("shop-pr-f-a")) {
		t.Errorf("without spec.previews there is %v", result.Projects)
	}
}

// readNone reads a commit without previews: no branch is listed.
func (f *fixture) readNone() *readout {
	f.t.Helper()
	commit, err := f.store.Fetch(f.t.Context(), git.Source{URL: f.server.RepoURL()})
	if err != nil {
		f.t.Fatal(err)
	}
	f.server.Seen()
	f.now = f.reader.Read(files.Of(commit.Root), f.before.Scope, f.before)
	result, err := f.Read(f.t.Context(), Request{Repository: &v1alpha1.Repository{}, Commit: commit, Parents: f.now.Parents(), Live: f.live})
	if err != nil || len(f.server.Seen()) > 0 {
		f.t.Fatalf("without previews, the branches are listed (%v)", err)
	}
	return result
}
