package preview

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/host"
	"github.com/kubeop/kubeop/gitops/tree"
)

// pullsFixture is a repository whose project shop has previews of pull requests, which the Git host lists.
type pullsFixture struct {
	*fixture
	// open are the open pull requests, and away is why they cannot be listed.
	open atomic.Pointer[[]host.PullRequest]
	away atomic.Pointer[error]
}

func newPullsFixture(t *testing.T) *pullsFixture {
	t.Helper()
	f := &pullsFixture{fixture: newFixture(t)}
	f.repo.Write("projects/shop/project.yaml", strings.Replace(project, `branches: "f-*"`, "pullRequests: true", 1))
	f.repo.Push("pull requests")
	f.list = func() ([]host.PullRequest, error) {
		if away := f.away.Load(); away != nil {
			return nil, *away
		}
		return *f.open.Load(), nil
	}
	f.opened()
	return f
}

// opened sets which pull requests are open.
func (f *pullsFixture) opened(open ...host.PullRequest) { f.open.Store(&open) }

// until reads main again each time that something was answered, and at once at first, until the previews are those wanted and the status says what is
// wanted, as "<number> <message>".
func (f *pullsFixture) until(want []string, says ...string) *readout {
	f.t.Helper()
	commit, err := f.store.Fetch(f.t.Context(), git.Source{URL: f.server.RepoURL()})
	if err != nil {
		f.t.Fatal(err)
	}
	now := f.reader.Read(files.Of(commit.Root), tree.Scope{Repository: "team", Tenant: "team"}, f.before)
	q := f.request(commit, now)
	deadline := time.After(30 * time.Second)
	for {
		result, err := f.Read(f.t.Context(), q)
		if err != nil {
			f.t.Fatal(err)
		}
		var got, said []string
		for _, p := range result.Projects {
			got = append(got, p.Ref().Project)
		}
		for _, s := range result.Status {
			said = append(said, fmt.Sprint(s.PullRequest, " ", s.Message))
		}
		if fmt.Sprint(got) == fmt.Sprint(want) && begin(said, says) {
			f.before = now.With(result.Projects)
			return result
		}
		select {
		case <-f.woken:
		case <-deadline:
			f.t.Fatalf("the previews are %v with %q, want %v with %q", got, said, want, says)
		}
	}
}

// begin reports whether each text begins with its counterpart, or is it if that ends in a blank.
func begin(got, want []string) bool {
	for i := range got {
		if i >= len(want) || !strings.HasPrefix(got[i], want[i]) || strings.HasSuffix(want[i], " ") && got[i] != want[i] {
			return false
		}
	}
	return len(got) == len(want)
}

func pull(number int, from string) host.PullRequest {
	return host.PullRequest{Number: number, From: from, Into: "main"}
}

func TestPullRequestsHaveAPreviewWhileTheyAreOpen(t *testing.T) {
	f := newPullsFixture(t)
	f.branch("login", fmt.Sprintf(app, "login"))
	f.branch("f-other", fmt.Sprintf(app, "other"))
	f.until(nil)
	fork, elsewhere := pull(9, "login"), pull(10, "f-other")
	fork.Fork, elsewhere.Into = true, "release"
	f.opened(fork, elsewhere, pull(8, "gone"), pull(12, "login"))
	result := f.until([]string{"shop-pr-12"}, "8 its branch is not in the repository: push it, or close the pull request", "9 the pull request is from a fork", "12 ")
	if s := result.Status[2]; s.Branch != "login" || s.Project != "shop-pr-12" || !strings.HasPrefix(s.Revision, "login@sha1:") {
		t.Errorf("the status says %+v", s)
	}
	if result.Keep(running("shop-pr-11")) {
		t.Error("the preview of a pull request that is closed is kept")
	}

	f.branch("login", "kind: nothing\n")
	f.until([]string{"shop-pr-12"}, "8 its", "9 the", "12 projects/shop/apps/web/app.yaml:1:")

	f.opened()
	f.until(nil)
}

// TestOnlySomePullRequestsHaveAPreview: max and ttl count as for branches.
func TestOnlySomePullRequestsHaveAPreview(t *testing.T) {
	f := newPullsFixture(t)
	for _, branch := range []string{"a", "b", "c"} {
		f.branch(branch, fmt.Sprintf(app, branch))
	}
	f.repo.Git("branch", "old", "main")
	f.opened(pull(3, "c"), pull(20, "b"), pull(100, "a"), pull(4, "old"))
	f.until([]string{"shop-pr-20", "shop-pr-3"}, "3 ", "4 its branch is not", "20 ", "100 there are 2 previews")
	f.repo.Git("push", "--quiet", "origin", "old")
	f.until([]string{"shop-pr-20", "shop-pr-3"}, "3 ", "4 the branch has no commits of its own", "20 ", "100 there are 2 previews")
}

func TestPreviewsStayWhileThePullRequestsAreNotKnown(t *testing.T) {
	f := newPullsFixture(t)
	f.branch("login", fmt.Sprintf(app, "login"))
	f.opened(pull(12, "login"))
	f.until([]string{"shop-pr-12"}, "12 ")
	away := errors.New("the Git host is away")
	f.away.Store(&away)
	f.branch("login", fmt.Sprintf(app, "newer"))
	f.until([]string{"shop-pr-12"}, "0 the Git host is away", "12 ")

	before := f.before
	f.restart()
	f.before = before
	if result := f.until([]string{"shop-pr-12"}, "0 the Git host is away"); !result.Keep(running("shop-pr-12")) || result.Keep(&v1alpha1.Project{}) {
		t.Error("after a restart, the preview is not kept, or any project is")
	}
	f.away.Store(nil)
	f.opened()
	if result := f.until(nil); result.Keep(running("shop-pr-12")) {
		t.Error("the preview of a pull request that is closed is kept")
	}
}

// TestPreviewsOfPullRequestsStayWhileTheBranchesAreNotKnown, also one that the cache of the cluster does not have yet.
func TestPreviewsOfPullRequestsStayWhileTheBranchesAreNotKnown(t *testing.T) {
	f := newPullsFixture(t)
	f.branch("login", fmt.Sprintf(app, "login"))
	f.opened(pull(12, "login"))
	f.until([]string{"shop-pr-12"}, "12 ")
	before := f.before
	f.restart()
	f.server.Set(func() {
		f.server.Wrap = func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return true
		}
	})
	q := f.request(git.Commit{Revision: "main@sha1:1", Hash: "1"}, before.With(nil))
	f.before = before
	for range 2 { // The Git host answers first about the pull requests, then about the branches.
		if _, err := f.Read(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		<-f.woken
	}
	result, err := f.Read(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	f.has(result, "shop-pr-12")
	if len(result.Status) != 1 || !strings.Contains(result.Status[0].Message, "503") || !result.Keep(running("shop-pr-12")) {
		t.Errorf("the preview is not kept, or the status says %+v", result.Status)
	}
}

// TestARepositoryThatFollowsNoBranchHasNoPullRequests: nothing is listed.
func TestARepositoryThatFollowsNoBranchHasNoPullRequests(t *testing.T) {
	f := newPullsFixture(t)
	q := f.request(git.Commit{Revision: "v1@sha1:1"}, &tree.Tree{})
	f.list = func() ([]host.PullRequest, error) {
		t.Error("the pull requests are listed")
		return nil, nil
	}
	for _, ref := range []sourcev1.GitRepositoryRef{{Tag: "v1"}, {SemVer: "1.x"}, {Commit: "1"}, {Name: "refs/tags/v1"}} {
		q.Repository.Spec.Ref = &ref
		if got := f.pullRequests(q); !got.known || !errors.Is(got.failed, errNoBranch) || len(got.open) > 0 {
			t.Errorf("of %+v there are %+v", ref, got)
		}
	}
	q.Repository.Spec.Ref = &sourcev1.GitRepositoryRef{Branch: "main"}
	if got := q.follows(); got != "v1" { // The label of the revision is the branch then.
		t.Errorf("it follows %q", got)
	}
}
