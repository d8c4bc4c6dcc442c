package pullrequest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/gitops/host"
)

// TestPullRequestsOfTheRepositoryArePlanned, into the branch that it follows, one after the other, and each commit once.
func TestPullRequestsOfTheRepositoryArePlanned(t *testing.T) {
	b := newFixture(t)
	one, two := b.push("one", "1"), b.push("two", "2")
	b.propose(1, "one", one, "acme/shop", "main")
	b.propose(2, "two", two, "acme/shop", "main")
	b.propose(3, "one", one, "acme/shop", "next")
	b.propose(4, "two", two, "eve/shop", "main")
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+one[:8]+" 1 to update", "2 two "+two[:8]+" 1 to update", "4   not planned: it comes from another repository")
	b.wrote("1: <acme>it has 1", "2: <acme>it has 2")
	if b.most != 1 || len(b.planned) != 2 {
		t.Errorf("%d plans at once, of %v", b.most, b.planned)
	}

	woken, lists := b.woken, b.lists
	b.Fetched(b.repository, b.main)
	b.waitLists(lists + 1)
	newer := b.push("one", "3")
	b.propose(1, "one", newer, "acme/shop", "main")
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+newer[:8], "2 two "+two[:8], "4 ")
	b.wrote("1: <acme>it has 3")
	if b.woken != woken+1 {
		t.Errorf("the Repository was reconciled %d times for one new plan", b.woken-woken)
	}

	b.set(func() { b.open = b.open[len(b.open)-1:] })
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+newer[:8])
	b.wrote()
}

// waitLists waits until the Git host has listed its pull requests so many times.
func (b *fixture) waitLists(n int) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		b.clock.Step(50 * time.Millisecond)
		b.mu.Lock()
		lists := b.lists
		b.mu.Unlock()
		if lists >= n {
			return
		}
	}
	b.t.Fatalf("the pull requests were not listed %d times", n)
}

// TestARestartWritesNothingAgain: the status has what was written.
func TestARestartWritesNothingAgain(t *testing.T) {
	b := newFixture(t)
	one := b.push("one", "1")
	b.propose(1, "one", one, "acme/shop", "main")
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+one[:8])
	b.wrote("1: <acme>it has 1")

	b.Planner = b.planner(b.Git, b.Network)
	b.until("", "1 one "+one[:8]) // Before the first fetch, too.
	b.Fetched(b.repository, b.main)
	two := b.push("two", "2")
	b.propose(2, "two", two, "acme/shop", "main")
	b.waitLists(2)
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+one[:8], "2 two "+two[:8])
	b.wrote("2: <acme>it has 2")
}

// TestARefusedTokenIsReported, with the plan that could not be written; a changed Secret is used at once. A restart does not hide the condition.
func TestARefusedTokenIsReported(t *testing.T) {
	b := newFixture(t)
	one := b.push("one", "1")
	b.propose(1, "one", one, "acme/shop", "main")
	b.set(func() { b.refuses = http.StatusForbidden })
	b.Fetched(b.repository, b.main)
	b.until("write:issue", "1   1 to update; it could not be written to the pull request: ")
	if note, _ := b.StatusOf(b.repository, "1"); note.Reason != v1alpha1.AuthenticationFailedReason || !strings.Contains(note.Message, "kubeop-system/acme") ||
		strings.Contains(note.Message, "t0ken") || !strings.HasSuffix(note.Message, "; commits are applied all the same") {
		t.Errorf("the condition is %+v", note)
	}
	b.Planner = b.planner(b.Git, b.Network)
	b.until("write:issue", "1   1 to update; ")
	b.Fetched(b.repository, b.main)
	b.until("write:issue", "1   1 to update; ")
	b.set(func() { b.refuses = 0 })
	b.StatusOf(b.repository, "2") // The version of the Secret.
	b.until("", "1 one "+one[:8]+" 1 to update")
	b.wrote("1: <acme>it has 1")
}

// TestAHostThatIsDownIsReportedAfterAWhile, and asked again.
func TestAHostThatIsDownIsReportedAfterAWhile(t *testing.T) {
	b := newFixture(t)
	one := b.push("one", "1")
	b.propose(1, "one", one, "acme/shop", "main")
	b.set(func() { b.down = http.StatusBadGateway })
	b.Fetched(b.repository, b.main)
	b.until("502")
	b.set(func() { b.down = 0 })
	b.until("", "1 one "+one[:8])
	b.wrote("1: <acme>it has 1")
}

// TestACommitThatCannotBePlannedIsReportedInThePullRequest, after some attempts, which wait; another pull request is planned meanwhile.
func TestACommitThatCannotBePlannedIsReportedInThePullRequest(t *testing.T) {
	b := newFixture(t)
	one, two := b.push("one", "1"), b.push("two", "2")
	b.propose(1, "one", one, "acme/shop", "main")
	b.set(func() { b.fails = errors.New("listing ```apps```: the API server is away") })
	for i := range patientTries - 1 {
		b.Fetched(b.repository, b.main)
		b.waitTries(i + 1)
		b.until("", "1   not planned yet: listing ```apps```: the API server is away")
		b.Fetched(b.repository, b.main) // It is too early for another attempt.
		b.waitIdle()
		b.clock.Step(lastRetry)
	}
	b.wrote()
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+one[:8]+" it cannot be planned: listing ```apps```")
	b.wrote("1: <acme>### kubeop plan for `acme`: it cannot be planned\n\n```\nlisting '''apps''': the API server is away\n```\n")
	if len(b.planned) != patientTries {
		t.Errorf("it was planned %d times", len(b.planned))
	}
	b.set(func() { b.fails = failure.New(failure.ErrTooLarge, "a file of 1 GiB") })
	b.propose(2, "two", two, "acme/shop", "main")
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+one[:8], "2 two "+two[:8]+" it cannot be planned: a file of 1 GiB") // Only another commit helps.
	b.set(func() { b.fails = nil })
	newer := b.push("one", "3")
	b.propose(1, "one", newer, "acme/shop", "main")
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+newer[:8]+" 1 to update", "2 ")
}

// waitTries waits until pull request 1 could not be planned so many times.
func (b *fixture) waitTries(n int) {
	b.t.Helper()
	b.wait(fmt.Sprintf("%d attempts", n), func(rec *record) bool { return rec.tries[1].failed == n })
}

// waitIdle waits until the list of pull requests is known, and nothing is planned.
func (b *fixture) waitIdle() {
	b.t.Helper()
	lists := b.lists
	b.wait("nothing to do", func(rec *record) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.lists > lists && !rec.busy
	})
}

func (b *fixture) wait(what string, is func(*record) bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		b.clock.Step(50 * time.Millisecond)
		b.Planner.mu.Lock()
		done := is(b.records["acme"])
		b.Planner.mu.Unlock()
		if done {
			return
		}
	}
	b.t.Fatalf("waiting for %s", what)
}

// TestABranchThatIsGoneIsNotPlanned, and said in the status until the pull request is closed.
func TestABranchThatIsGoneIsNotPlanned(t *testing.T) {
	b := newFixture(t)
	two := b.push("two", "2")
	b.propose(1, "gone", strings.Repeat("a", 40), "acme/shop", "main")
	b.propose(2, "two", two, "acme/shop", "main")
	b.Fetched(b.repository, b.main)
	b.until("", "1   not planned yet: fetching ", "2 two "+two[:8])
	b.wrote("2: <acme>it has 2")
}

// TestAPlanInProgressDelaysOnlyItsRepository: the plans of others are made, as many at once as there are places.
func TestAPlanInProgressDelaysOnlyItsRepository(t *testing.T) {
	b := newFixture(t)
	one := b.push("one", "1")
	hold := make(chan struct{})
	b.set(func() { b.hold = hold })
	b.propose(1, "one", one, "acme/shop", "main")
	b.Fetched(b.repository, b.main)
	b.waitPlans(1)
	b.Fetched(b.repository, b.main)
	b.waitLists(2)
	b.waitPlans(1)
	other, third := b.repository.DeepCopy(), b.repository.DeepCopy()
	other.Name, other.UID, third.Name, third.UID = "other", "other-uid", "third", "third-uid"
	b.Fetched(other, b.main)
	b.waitPlans(atOnce)
	b.Fetched(third, b.main)
	b.waitLists(4)
	b.waitPlans(atOnce)
	close(hold)
	b.until("", "1 one "+one[:8])
	b.repository = other
	b.until("", "1 one "+one[:8])
	b.repository = third
	b.until("", "1 one "+one[:8])
	if b.most != atOnce {
		t.Errorf("%d plans were made at once", b.most)
	}
}

// waitPlans waits until so many plans were begun.
func (b *fixture) waitPlans(n int) {
	b.t.Helper()
	got := 0
	for deadline := time.Now().Add(20 * time.Second); got != n && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		b.clock.Step(50 * time.Millisecond)
		b.mu.Lock()
		got = len(b.planned)
		b.mu.Unlock()
	}
	if got != n {
		b.t.Fatalf("%d plans were begun, want %d", got, n)
	}
}

// TestWithoutPreviewsNothingIsAsked, nor with a tag or a commit.
func TestWithoutPreviewsNothingIsAsked(t *testing.T) {
	b := newFixture(t)
	one := b.push("one", "1")
	b.propose(1, "one", one, "acme/shop", "main")
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+one[:8])
	lists := b.lists
	for _, change := range []func(*v1alpha1.RepositorySpec){
		func(s *v1alpha1.RepositorySpec) { s.Previews = v1alpha1.PreviewsNone },
		func(s *v1alpha1.RepositorySpec) { s.Ref = &sourcev1.GitRepositoryRef{Tag: "v1"} },
		func(s *v1alpha1.RepositorySpec) { s.Ref = &sourcev1.GitRepositoryRef{SemVer: "1.x"} },
		func(s *v1alpha1.RepositorySpec) { s.Ref = &sourcev1.GitRepositoryRef{Name: "refs/heads/main"} },
		func(s *v1alpha1.RepositorySpec) { s.Ref = &sourcev1.GitRepositoryRef{Branch: "main", Commit: one} },
	} {
		repository := b.repository.DeepCopy()
		change(&repository.Spec)
		b.Fetched(repository, b.main)
		if note, plans := b.StatusOf(repository, "1"); plans != nil || note.Status != "" {
			t.Errorf("%+v: %v, %+v", repository.Spec, plans, note)
		}
	}
	b.clock.Step(time.Minute)
	if b.lists != lists {
		t.Error("pull requests were listed")
	}
}

// TestForksDisplaceNoPullRequest: anybody may open as many as they like.
func TestForksDisplaceNoPullRequest(t *testing.T) {
	var found []host.PullRequest
	for number := range 100 {
		found = append(found, host.PullRequest{Number: 200 - number, Into: "main", Commit: "c", Fork: number < 90})
	}
	var numbers []string
	for _, open := range into(found, "main") {
		if !open.Fork {
			numbers = append(numbers, fmt.Sprint(open.Number))
		}
	}
	if want := []string{"101", "102", "103", "104", "105", "106", "107", "108", "109", "110"}; !slices.Equal(numbers, want) {
		t.Errorf("planned are %v, want %v", numbers, want)
	}
	if got := into(found, "main"); len(got) != maxPlans || !slices.IsSortedFunc(got, func(a, b host.PullRequest) int { return a.Number - b.Number }) {
		t.Errorf("%d pull requests are in the status: %v", len(got), got)
	}
}

func TestOnlyPullRequestsIntoTheBranchArePlanned(t *testing.T) {
	found := []host.PullRequest{
		{Number: 3, Into: "main", Commit: "c"}, {Number: 2, Into: "next", Commit: "c"}, {Number: 0, Into: "main", Commit: "c"}, {Number: -1, Into: "main", Commit: "c"},
		{Number: 4, Into: "main"}, {Number: 1, Into: "main", Commit: "c"},
	}
	if diff := cmp.Diff([]host.PullRequest{{Number: 1, Into: "main", Commit: "c"}, {Number: 3, Into: "main", Commit: "c"}}, into(found, "main")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestACommitWithoutASignatureIsNotPlanned: its content would be rendered in the cluster. Only another commit helps, so it is said at once.
func TestACommitWithoutASignatureIsNotPlanned(t *testing.T) {
	b := newFixture(t)
	one := b.push("one", "1")
	b.propose(1, "one", one, "acme/shop", "main")
	b.keys = &signature.Verification{Keys: map[string][]byte{"a.pub": []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKtT1Yv3m1ZLSmuHxCwFkzLwPWsXGbYzV0CKTyhrCw a")}, Now: b.clock.Now}
	b.Fetched(b.repository, b.main)
	b.until("", "1 one "+one[:8]+" it cannot be planned: commit "+one+": ")
	if len(b.planned) != 0 {
		t.Errorf("planned are %v", b.planned)
	}
}

// TestAShortenedHashNamesThePlannedCommit: Bitbucket Cloud shortens them.
func TestAShortenedHashNamesThePlannedCommit(t *testing.T) {
	rec := &record{plans: []v1alpha1.PullRequestPlan{{Number: 1, Revision: "a@sha1:0123456789abcdef"}, {Number: 2}}}
	for commit, want := range map[string]bool{"0123456789ab": true, "0123456789abcdef": true, "1123456789ab": false, "": false} {
		if got := rec.planned(host.PullRequest{Number: 1, Commit: commit}); got != want {
			t.Errorf("%q: planned is %t", commit, got)
		}
	}
	if rec.planned(host.PullRequest{Number: 2, Commit: "01"}) {
		t.Error("a pull request without a plan is planned")
	}
}
