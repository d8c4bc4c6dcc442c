package commit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/gitops/edit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

const appFile = "projects/shop/apps/web/app.yaml"

const appText = `# The shop's front.
kind: App
spec:
  image:
    replicas: 2 # two zones
    reference: 'web:1.0'
`

// served is a repository with one app, at a server that takes pushes.
type served struct {
	*sources.GitRepo
	server *sources.GitServer
	first  string
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{GitRepo: sources.NewGitRepo(t)}
	s.Write(appFile, appText)
	s.Write("projects/shop/apps/web/values.yaml", "a: 1\n")
	s.first = s.Push("first")
	s.bare("config", "http.receivepack", "true")
	s.server = sources.ServeGit(t, s.GitRepo, httptest.NewServer)
	return s
}

func (s *served) bare(args ...string) string {
	s.T.Helper()
	return s.Run(filepath.Join(s.Root, s.Name), args...)
}

// remote is the branch main, with a store of its own.
func (s *served) remote() Remote {
	network := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	return Remote{Store: git.NewStore(s.T.TempDir(), network), Source: git.Source{URL: s.server.RepoURL(), Ref: &sourcev1.GitRepositoryRef{Branch: "main"}}}
}

func field(t testing.TB, text string) edit.Path {
	t.Helper()
	p, err := edit.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request(id string, edits ...Edit) Request {
	return Request{
		ID: id, Title: "Change " + id, Body: "For a test.", Author: draft.Person{Name: "Ann", Email: "ann@example.com"},
		Committer: draft.Person{Name: "kubeop", Email: "kubeop@example.com"}, Branch: "main", Edits: edits,
	}
}

func TestACommitHasAllEditsOfItsRequest(t *testing.T) {
	s := serve(t)
	w := &Writer{Clock: clock.RealClock{}}
	tree := s.Git("rev-parse", s.first+":projects/shop/apps/web")
	got, err := w.Write(t.Context(), s.remote(), request("r1",
		Set{File: appFile, Fields: []Field{{Path: field(t, "spec.image.replicas"), Value: 3}, {Path: field(t, "spec.image.reference"), Delete: true}}},
		Create{File: "projects/shop/apps/db/app.yaml", Content: []byte("kind: App\n")}, Delete{Path: "projects/shop/apps/web/values.yaml"},
		Restore{Folder: "projects/copy", Tree: tree},
	))
	if err != nil || got.Attempts != 1 || got.Unchanged || got.Hash != s.bare("rev-parse", "main") {
		t.Fatalf("%+v, %v", got, err)
	}
	want := strings.Replace(strings.Replace(appText, "replicas: 2", "replicas: 3", 1), "    reference: 'web:1.0'\n", "", 1)
	if text := s.bare("show", "main:"+appFile); text != strings.TrimSpace(want) {
		t.Errorf("the app has\n%s\nwant\n%s", text, want)
	}
	if files := s.bare("ls-tree", "-r", "--name-only", "main"); files != "projects/copy/app.yaml\nprojects/copy/values.yaml\nprojects/shop/apps/db/app.yaml\n"+appFile {
		t.Errorf("the commit has\n%s", files)
	}
	if m := s.bare("log", "-1", "--format=%an|%cn|%B", "main"); m != "Ann|kubeop|Change r1\n\nFor a test.\n\nKubeop-Request: r1" {
		t.Errorf("the commit says %q", m)
	}
	if id := s.bare("log", "-1", "--format=%(trailers:key="+Trailer+",valueonly)", "main"); id != "r1" {
		t.Errorf("Git reads the trailer as %q", id)
	}
	// The same request again changes nothing.
	again := request("r2", Set{File: appFile, Fields: []Field{{Path: field(t, "spec.image.replicas"), Value: 3}}}, Delete{Path: "projects/none"}, Restore{Folder: "projects/copy", Tree: tree})
	if got, err := w.Write(t.Context(), s.remote(), again); err != nil || !got.Unchanged || got.Attempts != 0 || got.Hash != s.bare("rev-parse", "main") {
		t.Errorf("%+v, %v", got, err)
	}
	below := request("below", Create{File: "file", Content: []byte("x")})
	below.Folder = "projects/copy"
	if _, err := w.Write(t.Context(), s.remote(), below); err != nil || s.bare("show", "main:projects/copy/file") != "x" {
		t.Errorf("in a folder: %v", err)
	}
}

// TestEditsAreMadeOnWhatOthersPushed: an edit of something else is made on their commit, and an edit of the same is a conflict that says what
// they changed.
func TestEditsAreMadeOnWhatOthersPushed(t *testing.T) {
	replicas := func(n int) Edit {
		return Set{File: appFile, Fields: []Field{{Path: field(t, "spec.image.replicas"), Value: n}}}
	}
	other := strings.Replace(appText, "replicas: 2", "replicas: 7", 1)
	for name, tc := range map[string]struct {
		theirs map[string]string // "" deletes
		edit   Edit
		err    error
		says   string
		none   bool // The newest commit has the edit.
	}{
		"another field":                {map[string]string{appFile: strings.Replace(appText, "web:1.0", "web:2.0", 1)}, replicas(3), nil, "", false},
		"the same field":               {map[string]string{appFile: other}, replicas(3), ErrConflict, appFile + ": another commit changed spec.image.replicas from 2 to 7: look at it", false},
		"the same field in the same":   {map[string]string{appFile: other}, replicas(7), nil, "", true},
		"the same field is gone":       {map[string]string{appFile: strings.Replace(appText, "    reference: 'web:1.0'\n", "", 1)}, Set{File: appFile, Fields: []Field{{Path: field(t, "spec.image.reference"), Delete: true}}}, nil, "", true},
		"the file is gone":             {map[string]string{appFile: ""}, replicas(3), ErrConflict, appFile + " was deleted by another commit", false},
		"the file is broken":           {map[string]string{appFile: "a: [\n"}, replicas(3), ErrInvalidEdit, appFile + ": reading spec.image.replicas: line 1: broken YAML: did not find expected node content", false},
		"another file was created":     {map[string]string{"x": "1"}, Create{"y", []byte("2")}, nil, "", false},
		"the same file was created":    {map[string]string{"y": "1"}, Create{"y", []byte("2")}, ErrConflict, "y was created by another commit, with other content: look at it, and change it there", false},
		"with the same content":        {map[string]string{"y": "2"}, Create{"y", []byte("2")}, nil, "", true},
		"what is deleted was changed":  {map[string]string{appFile: other}, Delete{"projects/shop"}, ErrConflict, "another commit changed projects/shop: look at it, and delete it again", false},
		"what is deleted is gone":      {map[string]string{appFile: "", "projects/shop/apps/web/values.yaml": ""}, Delete{"projects/shop"}, nil, "", true},
		"what is restored was changed": {map[string]string{appFile: other}, Restore{"projects/shop", strings.Repeat("ab", 20)}, ErrConflict, "another commit changed projects/shop: look at it, and restore it again", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			raced := racing(t, s, tc.theirs)
			got, err := (&Writer{Clock: clock.RealClock{}}).Write(t.Context(), raced, request("mine", tc.edit))
			theirs := s.Git("rev-parse", "HEAD")
			switch {
			case tc.err != nil:
				sources.WantError(t, err, tc.err, tc.says)
				if s.bare("rev-parse", "main") != theirs {
					t.Error("a request with an error was pushed")
				}
			case err != nil || got.Unchanged != tc.none:
				t.Errorf("%+v, %v", got, err)
			case !tc.none && (got.Attempts != 2 || s.bare("rev-parse", "main~1") != theirs || got.Hash != s.bare("rev-parse", "main")):
				t.Errorf("%+v is not upon the other's commit:\n%s", got, s.bare("log", "--oneline", "main"))
			}
		})
	}
}

// raced is a branch to which another pushes between the first fetch and the first push.
type raced struct {
	Branch
	push func()
}

func racing(t *testing.T, s *served, theirs map[string]string) *raced {
	t.Helper()
	return &raced{Branch: s.remote(), push: func() {
		for file, content := range theirs {
			if content == "" {
				s.Git("rm", "--quiet", file)
				continue
			}
			s.Write(file, content)
		}
		s.Push("theirs")
	}}
}

func (r *raced) Push(ctx context.Context, p git.Proposed) ([]string, error) {
	if push := r.push; push != nil {
		r.push = nil
		push()
	}
	return r.Branch.Push(ctx, p)
}

// TestTheBaseOfARequestIsWhatItsRequesterSaw, also when it is older than the newest commit.
func TestTheBaseOfARequestIsWhatItsRequesterSaw(t *testing.T) {
	s := serve(t)
	to := s.remote()
	seen, err := to.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Write(appFile, strings.Replace(appText, "replicas: 2", "replicas: 5", 1))
	s.Push("others")
	w := &Writer{Clock: clock.RealClock{}}
	r := request("r", Set{File: appFile, Fields: []Field{{Path: field(t, "spec.image.replicas"), Value: 3}}})
	r.Base = seen.Root
	if _, err := w.Write(t.Context(), to, r); !errors.Is(err, ErrConflict) {
		t.Errorf("got %v, want a conflict with what the requester did not see", err)
	}
	r.Base = nil
	if got, err := w.Write(t.Context(), to, r); err != nil || got.Unchanged {
		t.Errorf("without a base: %+v, %v", got, err)
	}
}

func TestEditsThatCannotBeMadeAreRefused(t *testing.T) {
	s := serve(t)
	for name, tc := range map[string]struct {
		edits []Edit
		err   error
		says  string
	}{
		"a file that exists":      {[]Edit{Create{appFile, nil}}, ErrExists, "projects/shop/apps/web/app.yaml exists: nothing is overwritten"},
		"a file that does not":    {[]Edit{Set{File: "none.yaml"}}, ErrMissing, "none.yaml does not exist"},
		"a file twice":            {[]Edit{Create{"a", nil}, Create{"a", nil}}, ErrInvalidEdit, "a is edited twice in one commit"},
		"a folder as a file":      {[]Edit{Set{File: "projects"}}, ErrInvalidEdit, "projects: is a folder, not a file"},
		"a field below a scalar":  {[]Edit{Set{File: appFile, Fields: []Field{{Path: field(t, "kind.x"), Value: 1}}}}, ErrInvalidEdit, appFile + `: setting kind.x: "x" is a field of an object, and what is there is none`},
		"a field that is not":     {[]Edit{Set{File: appFile, Fields: []Field{{Path: field(t, "spec.none"), Delete: true}}}}, ErrInvalidEdit, "projects/shop/apps/web/app.yaml: deleting spec.none: the file has no such field"},
		"out of the repository":   {[]Edit{Create{"../x", nil}}, ErrInvalidEdit, "../x: invalid argument"},
		"in a folder that is not": {[]Edit{Create{"a", nil}}, ErrInvalidEdit, "the folder none of the repository cannot be read: sub none: no such file or folder"},
		"below a file":            {[]Edit{Create{appFile + "/x", nil}}, nil, appFile + " is no folder"},
	} {
		r := request("r", tc.edits...)
		if name == "in a folder that is not" {
			r.Folder = "none"
		}
		_, err := (&Writer{Clock: clock.RealClock{}}).Write(t.Context(), s.remote(), r)
		if err == nil || tc.err != nil && !errors.Is(err, tc.err) || err.Error() != tc.says {
			t.Errorf("%s: got %v, want %s", name, err, tc.says)
		}
	}
	if s.bare("rev-parse", "main") != s.first {
		t.Error("something was pushed")
	}
}

// TestAWriteIsTriedAgainWhileTheServerFails, a few times. At the end of the context, the error says how often.
func TestAWriteIsTriedAgainWhileTheServerFails(t *testing.T) {
	attempted := regexp.MustCompile(`^the commit could not be pushed in time: context deadline exceeded after [1-9][0-9]* attempts$`)
	s := serve(t)
	failures := 0
	fail := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		if failures == 0 {
			return false
		}
		failures--
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	s.server.Set(func() { s.server.Wrap = fail })
	w := &Writer{Clock: clock.RealClock{}}
	set := func(n int) { s.server.Set(func() { failures = n }) }
	set(maxFailures - 1)
	if got, err := w.Write(t.Context(), s.remote(), request("r", Create{"a", []byte("1")})); err != nil || got.Hash != s.bare("rev-parse", "main") {
		t.Errorf("%+v, %v", got, err)
	}
	lose := true
	s.server.Set(func() {
		s.server.Wrap = func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if lose && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack") {
				lose = false
				next.ServeHTTP(httptest.NewRecorder(), r)
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}
	})
	if got, err := w.Write(t.Context(), s.remote(), request("lost", Create{"lost", []byte("1")})); err != nil || got.Unchanged || got.Hash != s.bare("rev-parse", "main") || lose {
		t.Errorf("an answer that was lost: %+v, %v", got, err)
	}
	s.server.Set(func() { s.server.Wrap = fail })
	set(1000)
	_, err := w.Write(t.Context(), s.remote(), request("away", Create{"b", []byte("1")}))
	sources.WantError(t, err, failure.ErrServer, "502")
	set(0)
	to := s.remote()
	newest, err := to.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer end()
	_, err = w.Write(ctx, busy{to, newest}, request("busy", Create{"c", []byte("1")}))
	if !errors.Is(err, context.DeadlineExceeded) || !attempted.MatchString(err.Error()) {
		t.Errorf("a branch that others move without end: %v", err)
	}
}

// busy is a branch to which others push before every push.
type busy struct {
	Branch
	newest git.Commit
}

func (b busy) Fetch(context.Context) (git.Commit, error) { return b.newest, nil }

func (busy) Push(context.Context, git.Proposed) ([]string, error) { return nil, git.ErrMoved }
