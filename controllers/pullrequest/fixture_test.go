package pullrequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	gitreport "github.com/kubeop/kubeop/gitops/report"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// fixture is a Planner with a Git host that has the API of Gitea, and a repository there.
type fixture struct {
	*Planner
	t          *testing.T
	clock      *clocktesting.FakeClock
	repo       *sources.GitRepo
	repository *v1alpha1.Repository
	main       git.Commit

	mu   sync.Mutex
	open []map[string]any
	// comments are the bodies written to pull requests, as "number: body". refuses is the answer to comments, and down that to everything; 0 for none.
	comments      []string
	refuses, down int
	lists, woken  int
	// planned are the hashes of the commits that were planned, fails is why the next ones cannot be.
	planned []string
	fails   error
	// keys are those that have to sign commits; nil for none.
	keys *signature.Verification
	// running counts the plans that are made, most is how many there were at once, and hold makes them wait.
	running, most int
	hold          chan struct{}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{t: t, clock: clocktesting.NewFakeClock(time.Now()), repo: sources.NewGitRepo(t)}
	b.repo.Write("a", "main")
	b.main = git.Commit{Hash: b.repo.Push("first")}
	b.main.Revision = "main@sha1:" + b.main.Hash
	host := b.serve(sources.ServeGit(t, b.repo, httptest.NewServer))
	network := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	b.repository = &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "acme-uid"}, Spec: v1alpha1.RepositorySpec{
		URL: host.URL + "/acme/shop.git", Tenant: "acme", Previews: v1alpha1.PreviewsPlan, CommitStatus: &v1alpha1.CommitStatus{Type: "gitea"},
	}}
	b.Planner = b.planner(git.NewStore(t.TempDir(), network), network)
	return b
}

// planner returns a Planner that knows nothing yet, as after a restart.
func (b *fixture) planner(store *git.Store, network *transport.Network) *Planner {
	queue, fetches, plans := gitreport.NewQueue(b.clock, nil), pool.New(pool.Options{}, b.clock), NewPlans(b.clock, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, start := range []func(context.Context) error{queue.Start, fetches.Start, plans.Start} {
		running.Go(func() {
			if err := start(ctx); err != nil {
				b.t.Error(err)
			}
		})
	}
	b.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return &Planner{Options: Options{
		Queue: queue, Fetches: fetches, Plans: plans, Git: store, Network: network, Clock: b.clock, Repositories: b,
		Plan: b.plan, Mark: func(repository string) string { return "<" + repository + ">" },
		Wake: func(types.NamespacedName) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.woken++
		},
	}}
}

func (b *fixture) SignedSource(_ context.Context, repository *v1alpha1.Repository) (git.Source, error) {
	return git.Source{URL: repository.Spec.URL, Signers: b.keys}, nil
}

func (b *fixture) APIAuth(context.Context, *v1alpha1.Repository) (transport.Auth, error) {
	return transport.Auth{BearerToken: "t0ken", Secret: "kubeop-system/acme"}, nil
}

// plan fakes a plan.
func (b *fixture) plan(ctx context.Context, _ *v1alpha1.Repository, commit git.Commit) (Comment, error) {
	b.mu.Lock()
	b.running++
	b.most = max(b.most, b.running)
	hold, fails := b.hold, b.fails
	b.planned = append(b.planned, commit.Hash)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.running--
	}()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return Comment{}, context.Cause(ctx)
		}
	}
	text, err := commit.Root.ReadFile("a")
	return Comment{Body: "it has " + string(text), Summary: "1 to update"}, errors.Join(err, fails)
}

// serve serves the API of the Git host, and its repository.
func (b *fixture) serve(repository *sources.GitServer) *httptest.Server {
	to, err := url.Parse(repository.RepoURL())
	if err != nil {
		b.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/acme/shop.git/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
		r.Out.URL.Path = strings.Replace(r.In.URL.Path, "/acme/shop.git", to.Path, 1)
	}})
	mux.HandleFunc("/api/v1/repos/acme/shop/", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		_, at, _ := strings.Cut(r.URL.Path, "/shop/")
		var answer any = []any{}
		switch {
		case b.down != 0:
			w.WriteHeader(b.down)
			return
		case at == "pulls":
			b.lists++
			answer = b.open
		case r.Method == http.MethodPost && b.refuses != 0:
			w.WriteHeader(b.refuses)
			return
		case r.Method == http.MethodPost:
			var in struct{ Body string }
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				b.t.Error(err)
			}
			b.comments = append(b.comments, strings.Split(at, "/")[1]+": "+in.Body)
			w.WriteHeader(http.StatusCreated)
			answer = map[string]any{}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			b.t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	b.t.Cleanup(server.Close)
	return server
}

// push pushes a commit to a branch, whose file a then has the content, and returns its hash.
func (b *fixture) push(branch, content string) string {
	b.t.Helper()
	b.repo.Git("checkout", "--quiet", "-B", branch)
	b.repo.Write("a", content)
	return b.repo.Push(content)
}

// propose opens a pull request, or gives it another commit.
func (b *fixture) propose(number int, branch, hash, from, into string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = slices.DeleteFunc(b.open, func(open map[string]any) bool { return open["number"] == number })
	b.open = append(b.open, map[string]any{
		"number": number, "head": map[string]any{"ref": branch, "sha": hash, "repo": map[string]any{"full_name": from}},
		"base": map[string]any{"ref": into, "repo": map[string]any{"full_name": "acme/shop"}},
	})
}

func (b *fixture) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// status returns the status as a Reconcile would write it: plans as "number revision message", and the condition.
func (b *fixture) status() (plans []string, condition string) {
	note, all := b.StatusOf(b.repository, "1")
	b.repository.Status.Plans = all
	if !note.Stays {
		b.repository.Status.Conditions = nil
	}
	if note.Status != "" {
		b.repository.Status.Conditions = []metav1.Condition{{Type: note.Condition, Status: note.Status, Reason: note.Reason, Message: note.Message}}
	}
	for _, c := range b.repository.Status.Conditions {
		condition = c.Reason + ": " + c.Message
	}
	for _, plan := range all {
		branch, hash, _ := strings.Cut(plan.Revision, "@sha1:")
		plans = append(plans, fmt.Sprintf("%d %s %.8s %s", plan.Number, branch, hash, plan.Message))
	}
	return plans, condition
}

// until lets time pass until the status has plans with these beginnings, and the condition contains a text; "" for no condition.
func (b *fixture) until(condition string, plans ...string) {
	b.t.Helper()
	var got []string
	var note string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		got, note = b.status()
		if slices.EqualFunc(got, plans, strings.HasPrefix) && (condition == "") == (note == "") && strings.Contains(note, condition) {
			return
		}
		b.clock.Step(50 * time.Millisecond)
	}
	b.t.Fatalf("the plans are %q, want %q; the condition is %q, want %q", got, plans, note, condition)
}

// wrote checks the comments since the last call, in any order.
func (b *fixture) wrote(want ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.comments)
	if !slices.Equal(b.comments, want) {
		b.t.Errorf("the comments are %q, want %q", b.comments, want)
	}
	b.comments = nil
}
