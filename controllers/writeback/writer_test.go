package writeback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/writeback/update"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/gitops/commit"
	gitreport "github.com/kubeop/kubeop/gitops/report"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

const (
	appFile = "projects/shop/apps/web/app.yaml"
	old     = "example.com/web:1.0.0"
	newer   = "example.com/web:1.1.0@sha256:11112222333344445555666677778888"
)

const appText = `# The shop's front.
spec:
  type: Image
  image:
    reference: '` + old + `' # kubeop writes it
    policy: {semver: ^1, write: Commit}
`

// fixture is a Writer, a repository with one App at a server that takes pushes, and a Git host like Gitea.
type fixture struct {
	*testing.T
	*Writer
	repo       *sources.GitRepo
	repository *v1alpha1.Repository
	app        *v1alpha1.App
	api        client.Client
	from       git.Source
	woken      chan struct{}
	// declaring, sourcing and authorizing are what Declaring, Source and APIAuth fail with. opened counts the pull requests that were
	// requested, and refuse how many of them are refused.
	declaring, sourcing, authorizing error

	mode           v1alpha1.WriteMode
	opened, refuse atomic.Int32
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, mode: v1alpha1.WriteCommit, repo: sources.NewGitRepo(t), woken: make(chan struct{}, 100)}
	f.repo.Write(appFile, appText)
	f.repo.Push("first")
	f.bare("config", "http.receivepack", "true")
	server := sources.ServeGit(t, f.repo, httptest.NewServer)
	host := httptest.NewServer(http.HandlerFunc(f.host))
	t.Cleanup(host.Close)
	f.repository = &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{
		URL: "https://git.example.com/acme/shop.git", Tenant: "acme", CommitStatus: &v1alpha1.CommitStatus{Type: "gitea", Address: host.URL},
	}}
	f.app = &v1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kubeop-acme-shop", Name: "web", UID: "web", Labels: map[string]string{v1alpha1.RepositoryLabel: "acme"},
			Annotations: map[string]string{v1alpha1.FolderAnnotation: "projects/shop/apps/web"},
		},
		Spec: v1alpha1.AppSpec{Type: v1alpha1.AppImage, Image: &v1alpha1.ImageSource{Reference: old, Policy: &v1alpha1.ImagePolicy{SemVer: "^1", Write: v1alpha1.WriteCommit}}},
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	network := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	f.from = git.Source{URL: server.RepoURL(), Ref: &sourcev1.GitRepositoryRef{Branch: "main"}}
	queue := gitreport.NewQueue(clock.RealClock{}, nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- queue.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	f.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.repository).Build()
	f.Writer = New(Options{
		Queue: queue, Git: git.NewStore(t.TempDir(), network), Network: network, Clock: clock.RealClock{}, Repositories: f,
		Client: f.api,
	})
	return f
}

// Declaring implements Repositories.
func (f *fixture) Declaring(context.Context, *v1alpha1.App) (*v1alpha1.Repository, string, error) {
	return f.repository, "acme", f.declaring
}

// Source implements Repositories.
func (f *fixture) Source(context.Context, *v1alpha1.Repository) (git.Source, error) {
	return f.from, f.sourcing
}

// APIAuth implements Repositories.
func (f *fixture) APIAuth(context.Context, *v1alpha1.Repository) (transport.Auth, error) {
	return transport.Auth{BearerToken: "token"}, f.authorizing
}

// host answers as Gitea does.
func (f *fixture) host(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/repos/acme/shop/pulls") || r.Header.Get("Authorization") == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	in := map[string]string{}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		f.Error(err)
	}
	want := map[string]string{
		"title": "Update shop/web to 1.1.0", "body": "The policy chose it. A newer one gets a pull request of its own.", "head": "kubeop/shop-web-1-1-0", "base": "main",
	}
	if diff := cmp.Diff(want, in); diff != "" {
		f.Errorf("the pull request (-want +got):\n%s", diff)
	}
	if f.opened.Add(1) <= f.refuse.Load() {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"number": 7, "html_url": "https://git.example.com/acme/shop/pulls/7"}`)
}

func (f *fixture) bare(args ...string) string {
	f.Helper()
	return f.repo.Run(filepath.Join(f.repo.Root, f.repo.Name), args...)
}

// update is the update of the App's image.
func (f *fixture) update() update.Update {
	return update.Update{
		Key: "image web", Version: "1.1.0", App: f.app, Mode: f.mode, What: "1.1.0", Title: "Update shop/web to 1.1.0", Body: "The policy chose it.", Branch: "shop-web-1.1.0",
		Changes: []update.Change{{Field: "spec.image.reference", Was: f.app.Spec.Image.Reference, Value: newer}},
		Done:    func() { f.woken <- struct{}{} },
	}
}

func (f *fixture) note() step.Note {
	return f.Note("image web", v1alpha1.ImageWriteFailedCondition)
}

// asks asks until something is written, or the condition says why not. It returns what was written and the message.
func (f *fixture) asks() (*update.Written, string) {
	f.Helper()
	for {
		written, note := f.Ask(f.update()), f.note()
		if written != nil || note.Message != "" {
			if note.Message != "" && (note.Status != metav1.ConditionTrue || note.Reason == "") {
				f.Errorf("the condition is %+v", note)
			}
			return written, note.Message
		}
		select {
		case <-f.woken:
		case <-time.After(30 * time.Second):
			f.Fatal("nothing was written, and nothing says why")
		}
	}
}

func (f *fixture) commits(branch string) string { return f.bare("rev-list", "--count", branch) }

func TestAChosenImageIsCommitted(t *testing.T) {
	f := newFixture(t)
	written, message := f.asks()
	if message != "" || written.Commit != f.bare("rev-parse", "main") || written.PullRequest != "" {
		t.Fatalf("%+v, %q", written, message)
	}
	if u, last := f.Last("image web"); last != written || u.Version != "1.1.0" {
		t.Errorf("the last update is %+v, and written is %+v", u, last)
	}
	if text, want := f.bare("show", "main:"+appFile), strings.TrimSpace(strings.Replace(appText, old, newer, 1)); text != want {
		t.Errorf("the file is\n%s\nwant\n%s", text, want)
	}
	said := f.bare("log", "-1", "--format=%an|%s|%b", "main")
	if !strings.HasPrefix(said, "kubeop|Update shop/web to 1.1.0|The policy chose it.") {
		t.Errorf("the commit says %q", said)
	}
	if err := f.api.Get(t.Context(), client.ObjectKeyFromObject(f.repository), f.repository); err != nil || f.repository.Annotations[meta.ReconcileRequestAnnotation] == "" {
		t.Errorf("the repository is not fetched: %v, %v", f.repository.Annotations, err)
	}
	// The same again is not written, and another version of it is, unless the file has it.
	if again, message := f.asks(); again != written || message != "" {
		t.Errorf("%+v, %q", again, message)
	}
	f.Drop("image web")
	f.app.Spec.Image.Reference = newer
	if again, message := f.asks(); again.Commit != written.Commit || message != "" || f.commits("main") != "2" {
		t.Errorf("%+v, %q; the branch has %s commits, want 2", again, message, f.commits("main"))
	}
	if len(f.pending) != 1 {
		t.Errorf("in memory is %v", f.pending)
	}
}

func TestAChosenImageBecomesAPullRequest(t *testing.T) {
	f := newFixture(t)
	f.mode = v1alpha1.WritePullRequest
	f.repository.Spec.Verify = &v1alpha1.GitVerification{} // A person merges, with a signature.
	f.refuse.Store(1)
	written, message := f.asks()
	const branch = "kubeop/shop-web-1-1-0"
	if message != "" || written.Commit != f.bare("rev-parse", branch) || written.PullRequest != "https://git.example.com/acme/shop/pulls/7" {
		t.Fatalf("%+v, %q", written, message)
	}
	if text := f.bare("show", branch+":"+appFile); !strings.Contains(text, newer) {
		t.Errorf("the file is\n%s", text)
	}
	if main, proposed := f.commits("main"), f.commits(branch); main != "1" || proposed != "2" || f.opened.Load() != 2 {
		t.Errorf("main has %s commits, want 1, the branch %s, want 2; %d pull requests were opened, want 2", main, proposed, f.opened.Load())
	}
	if err := f.api.Get(t.Context(), client.ObjectKeyFromObject(f.repository), f.repository); err != nil || f.repository.Annotations != nil {
		t.Errorf("the repository is fetched although nobody merged: %v, %v", f.repository.Annotations, err)
	}
}

func TestABranchOfOthersIsNotProposed(t *testing.T) {
	f := newFixture(t)
	f.mode = v1alpha1.WritePullRequest
	f.bare("branch", "kubeop/shop-web-1-1-0", "main")
	if written, message := f.asks(); written != nil || message != "writing 1.1.0 to projects/shop/apps/web/app.yaml: the branch kubeop/shop-web-1-1-0 exists with other content of projects/shop/apps/web/app.yaml: who may push to the repository may delete it: git push origin --delete kubeop/shop-web-1-1-0" {
		t.Errorf("%+v, %q", written, message)
	}
}

func TestAFailedWriteReportsItsReason(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"a protected branch": {func(f *fixture) {
			hook := filepath.Join(f.repo.Root, f.repo.Name, "hooks", "pre-receive")
			if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o755), os.WriteFile(hook, []byte("#!/bin/sh\necho main is protected >&2\nexit 1\n"), 0o755)); err != nil {
				f.Fatal(err)
			}
		}, "main is protected"},
		"signed commits only": {func(f *fixture) { f.repository.Spec.Verify = &v1alpha1.GitVerification{} }, "accepts signed commits only (spec.verify), and those of kubeop have no signature: write PullRequest"},
		"a tag":               {func(f *fixture) { f.repository.Spec.Ref = &sourcev1.GitRepositoryRef{Tag: "v1"} }, "writing 1.1.0 to projects/shop/apps/web/app.yaml: the repository acme follows no branch, so there is nothing to commit to: name one in its spec.ref.branch in Git, or write nothing"},
		"a preview": {func(f *fixture) {
			f.app.Annotations[v1alpha1.PreviewOfAnnotation], f.app.Annotations[v1alpha1.BranchAnnotation] = "shop", "feature/x"
		}, "writing 1.1.0 to projects/shop/apps/web/app.yaml: the app is one of a preview: its file is in the branch feature/x, and only people write to that"},
		"no folder":          {func(f *fixture) { f.app.Annotations = nil }, "writing 1.1.0 to app.yaml: the file of the app is not known"},
		"another tenant":     {func(f *fixture) { f.declaring = errors.New("repository acme cannot declare apps") }, "repository acme cannot declare apps"},
		"a change of others": {func(f *fixture) { f.app.Spec.Image.Reference = "example.com/web:0.9.0" }, `another commit changed spec.image.reference from "example.com/web:0.9.0" to "` + old + `"`},
		"no such file": {func(f *fixture) {
			f.app.Name, f.app.Annotations[v1alpha1.FolderAnnotation] = "api", "projects/shop/apps/api"
		}, "projects/shop/apps/api/app.yaml does not exist"},
		"no such branch": {func(f *fixture) { f.from.Ref.Branch = "none" }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tc.change(f)
			written, message := f.asks()
			if written != nil || !strings.Contains(message, tc.want) || !strings.Contains(message, "writing 1.1.0 to ") {
				t.Errorf("%+v, %q, want %q", written, message, tc.want)
			}
			if n := f.commits("main"); n != "1" {
				t.Errorf("the branch has %s commits, want 1", n)
			}
		})
	}
}

// TestARestartIsNoNewsAboutAFailure: the condition stays until the repository has answered.
func TestARestartIsNoNewsAboutAFailure(t *testing.T) {
	f := newFixture(t)
	if note := f.note(); note.Status != "" || note.Stays {
		t.Errorf("an app that asks for nothing has %+v", note)
	}
	f.Ask(f.update())
	if note := f.note(); !note.Stays {
		t.Errorf("the condition is %+v", note)
	}
	<-f.woken
	if note := f.note(); note.Status != "" || note.Stays {
		t.Errorf("the condition is %+v, although it was written", note)
	}
}

func TestTheBranchThatTheServerNamesIsWrittenWithoutARef(t *testing.T) {
	f := newFixture(t)
	f.from.Ref = nil
	if written, message := f.asks(); message != "" || written.Commit != f.bare("rev-parse", "main") {
		t.Errorf("%+v, %q", written, message)
	}
}

// TestFailuresThatOnlyPeopleCanEndAreReportedAtOnce, and others if they last.
func TestFailuresThatOnlyPeopleCanEndAreReportedAtOnce(t *testing.T) {
	away := failure.New(failure.ErrUnavailable, "connection refused")
	for name, tc := range map[string]struct {
		failure  error
		failures int
		reason   string
	}{
		"a server that is away":        {away, 1, ""},
		"away for longer":              {away, patience, v1alpha1.WriteFailedReason},
		"refused credentials":          {failure.New(failure.ErrAuthentication, "no"), 1, v1alpha1.AuthenticationFailedReason},
		"a refused push":               {fmt.Errorf("pushing: %w", git.ErrRefused), 1, v1alpha1.WriteFailedReason},
		"a file of another content":    {fmt.Errorf("editing: %w", commit.ErrInvalidEdit), 1, v1alpha1.WriteFailedReason},
		"what can never be written":    {notWritable("it follows no branch"), 1, v1alpha1.WriteFailedReason},
		"a file of a commit meanwhile": {fmt.Errorf("pushing: %w", git.ErrMoved), 1, ""},
		"nothing":                      {nil, patience, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(Options{})
			u := update.Update{Key: "image web", What: "1.1.0", App: &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.FolderAnnotation: "web"}}}}
			w.pending[u.Key] = &pending{Update: u, failure: tc.failure, failures: tc.failures, answered: true}
			want := step.Note{Condition: "Failed"}
			if tc.reason != "" {
				want.Status, want.Reason, want.Event = metav1.ConditionTrue, tc.reason, "Warning"
				want.Message = "writing 1.1.0 to web/app.yaml: " + tc.failure.Error()
			}
			got := w.Note(u.Key, "Failed")
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestOnlyTheLastUpdateOfAKeyCounts: the end of an attempt for another one calls no Done.
func TestOnlyTheLastUpdateOfAKeyCounts(t *testing.T) {
	ended := 0
	ask := func(change func(*update.Update)) update.Update {
		u := update.Update{Key: "image web", Version: "1", Mode: v1alpha1.WriteCommit, App: &v1alpha1.App{}, Done: func() { ended++ }}
		change(&u)
		return u
	}
	for name, change := range map[string]func(*update.Update){
		"another version": func(u *update.Update) { u.Version = "2" },
		"another file":    func(u *update.Update) { u.App.Annotations = map[string]string{v1alpha1.FolderAnnotation: "web"} },
		"another mode":    func(u *update.Update) { u.Mode = v1alpha1.WritePullRequest },
	} {
		t.Run(name, func(t *testing.T) {
			ended = 0
			w := New(Options{Queue: gitreport.NewQueue(clocktesting.NewFakeClock(time.Unix(1000, 0)), nil)})
			w.Ask(ask(func(*update.Update) {}))
			first := w.pending["image web"]
			first.written = &update.Written{Commit: "c"}
			if again := w.Ask(ask(func(*update.Update) {})); again != first.written || w.pending["image web"] != first {
				t.Errorf("the same again: %v", again)
			}
			if got := w.Ask(ask(change)); got != nil || w.pending["image web"] == first {
				t.Errorf("got %v: it was not asked for", got)
			}
			w.done(first, errors.New("away"))
			if note := w.Note("image web", "Failed"); ended != 0 || note.Status != "" || first.answered {
				t.Errorf("ended %d times; %+v", ended, note)
			}
			now := w.pending["image web"]
			w.done(now, errors.New("away"))
			w.done(now, nil)
			if ended != 2 || !now.answered || now.failure != nil || now.failures != 2 {
				t.Errorf("ended %d times; %+v", ended, now)
			}
		})
	}
}

func TestATagOrASignedBranchIsNotWrittenTo(t *testing.T) {
	for name, tc := range map[string]struct {
		ref     *sourcev1.GitRepositoryRef
		verify  bool
		mode    v1alpha1.WriteMode
		refused bool
	}{
		"no ref":                            {nil, false, v1alpha1.WriteCommit, false},
		"a branch":                          {&sourcev1.GitRepositoryRef{Branch: "main"}, false, v1alpha1.WriteCommit, false},
		"a tag":                             {&sourcev1.GitRepositoryRef{Branch: "main", Tag: "v1"}, false, v1alpha1.WriteCommit, true},
		"a range of versions":               {&sourcev1.GitRepositoryRef{SemVer: "1.x"}, false, v1alpha1.WritePullRequest, true},
		"a commit":                          {&sourcev1.GitRepositoryRef{Branch: "main", Commit: "c0ffee"}, false, v1alpha1.WriteCommit, true},
		"a ref by name":                     {&sourcev1.GitRepositoryRef{Name: "refs/heads/main"}, false, v1alpha1.WriteCommit, true},
		"signed commits":                    {nil, true, v1alpha1.WriteCommit, true},
		"signed commits, by a pull request": {nil, true, v1alpha1.WritePullRequest, false},
	} {
		t.Run(name, func(t *testing.T) {
			repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{Ref: tc.ref}}
			if tc.verify {
				repository.Spec.Verify = &v1alpha1.GitVerification{}
			}
			u := update.Update{Mode: tc.mode, App: &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{v1alpha1.FolderAnnotation: "apps/web"}}}}
			if err := writable(u, repository); errors.Is(err, errNotWritable) != tc.refused {
				t.Errorf("got %v", err)
			}
			u.App.Name = "api"
			if err := writable(u, repository); err == nil || err.Error() != "the file of the app is not known" {
				t.Errorf("of another app: %v", err)
			}
		})
	}
}

// TestAnAttemptReturnsWhatWentWrong: otherwise the update counts as written.
func TestAnAttemptReturnsWhatWentWrong(t *testing.T) {
	down := errors.New("down")
	patches := func(f *fixture, err error) {
		f.Client = interceptor.NewClient(f.api.(client.WithWatch), interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return err
			},
		})
	}
	for name, tc := range map[string]struct {
		change  func(*fixture, *update.Update)
		want    string
		written bool
	}{
		"the Secret of the repository cannot be read": {change: func(f *fixture, _ *update.Update) { f.sourcing = down }, want: "down"},
		"the server names no branch":                  {change: func(f *fixture, _ *update.Update) { f.from.Ref, f.from.URL = nil, f.from.URL+"/none" }, want: "none"},
		"a field that is none":                        {change: func(_ *fixture, u *update.Update) { u.Changes[0].Field = "spec..image" }, want: "the field spec..image: "},
		"no login for the API": {change: func(f *fixture, u *update.Update) {
			f.authorizing, u.Mode = down, v1alpha1.WritePullRequest
		}, want: "down"},
		"a host without an API": {change: func(f *fixture, u *update.Update) {
			f.repository.Spec.CommitStatus, u.Mode = nil, v1alpha1.WritePullRequest
		}, want: "; with Commit in place of PullRequest, kubeop needs no API of a Git host"},
		"no fetch can be requested": {change: func(f *fixture, _ *update.Update) { patches(f, down) }, want: "requesting a fetch of repository acme: down", written: true},
		"the repository is gone meanwhile": {change: func(f *fixture, _ *update.Update) {
			patches(f, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("repositories").GroupResource(), "acme"))
		}, written: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			to := &pending{Update: f.update()}
			tc.change(f, &to.Update)
			err := f.send(t.Context(), to)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if (to.written != nil) != tc.written {
				t.Errorf("written is %+v, want it to be: %t", to.written, tc.written)
			}
		})
	}
}

// TestADroppedUpdateIsNotSent, and what is asked for does not change with the app.
func TestADroppedUpdateIsNotSent(t *testing.T) {
	passes := clocktesting.NewFakeClock(time.Unix(1000, 0))
	w := New(Options{Queue: gitreport.NewQueue(passes, nil)})
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web"}}
	w.Ask(update.Update{Key: "image web", Version: "1", App: app})
	if asked, _ := w.Last("image web"); asked.App == app || asked.App.Name != "web" {
		t.Errorf("asked for is %+v, of the app itself", asked)
	}
	if !passes.HasWaiters() {
		t.Fatal("it is not sent")
	}
	if w.Drop("image web"); passes.HasWaiters() {
		t.Error("it is sent after it was dropped")
	}
	if asked, written := w.Last("image web"); asked.Key != "" || written != nil {
		t.Errorf("asked for is %+v, written %+v", asked, written)
	}
}
