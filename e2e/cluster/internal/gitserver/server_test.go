package gitserver

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParsePathAcceptsOnlyFetchesAndPushes(t *testing.T) {
	tests := map[string]struct {
		path, name, operation string
		ok                    bool
	}{
		"a fetch":                      {"/demo.git/info/refs", "demo", "/info/refs", true},
		"a push into a folder":         {"/team/demo.git/git-receive-pack", "team/demo", "/git-receive-pack", true},
		"a file of the repository":     {"/demo.git/HEAD", "", "", false},
		"an object":                    {"/demo.git/objects/info/packs", "", "", false},
		"the user file":                {"/access.json", "", "", false},
		"up and out":                   {"/../access.git/info/refs", "", "", false},
		"up inside a name":             {"/team/../../x.git/info/refs", "", "", false},
		"up after the name":            {"/demo.git/../other.git/info/refs", "", "", false},
		"an empty name":                {"/.git/info/refs", "", "", false},
		"too deep":                     {"/a/b/c.git/info/refs", "", "", false},
		"a repository in a repository": {"/demo.git/x.git/info/refs", "", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			name, operation, ok := parsePath(test.path)
			if name != test.name || operation != test.operation || ok != test.ok {
				t.Errorf("parsePath(%q) = %q, %q, %v", test.path, name, operation, ok)
			}
		})
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("/demo.git/info/refs")
	f.Add("/a/../b.git/git-upload-pack")
	f.Fuzz(func(t *testing.T, path string) {
		name, _, ok := parsePath(path)
		store := Open("/base")
		if ok && !strings.HasPrefix(filepath.Clean(store.Path(name)), "/base/repositories/") {
			t.Errorf("%q leads out of the store: %s", path, store.Path(name))
		}
	})
}

func TestChangesAreTheRefsThatDiffer(t *testing.T) {
	none := strings.Repeat("0", 40)
	got := changes(map[string]string{"a": "1", "b": "2", "c": "3"}, map[string]string{"a": "1", "b": "4", "d": "5"})
	want := []Change{{Ref: "b", Before: "2", After: "4"}, {Ref: "c", Before: "3", After: none}, {Ref: "d", Before: none, After: "5"}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

// call is a received webhook call.
type call struct {
	path, signature string
	body            []byte
}

func TestAPushCallsTheSignedWebhook(t *testing.T) {
	calls := make(chan call, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{r.URL.Path, r.Header.Get(SignatureHeader), body}
	}))
	defer receiver.Close()
	url, store := serve(t)
	wanted := Wanted{Repository: Repository{Webhook: receiver.URL + "/{name}", WebhookSecret: "key"}, User: "dev", Password: "right"}
	if err := store.Create(wanted, "team/demo"); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(Wanted{Repository: Repository{Public: true}, User: "dev", Password: "right"}, "open"); err != nil {
		t.Fatal(err)
	}
	as := func(credentials string) string { return strings.Replace(url, "http://", "http://"+credentials+"@", 1) }
	work := commit(t)
	tests := map[string]struct {
		args []string
		ok   bool
	}{
		"anonymous push":               {[]string{"push", url + "/team/demo.git", "main"}, false},
		"a wrong password":             {[]string{"push", as("dev:wrong") + "/team/demo.git", "main"}, false},
		"an unknown user":              {[]string{"push", as("other:right") + "/team/demo.git", "main"}, false},
		"an unknown repository":        {[]string{"ls-remote", as("dev:right") + "/team/none.git"}, false},
		"anonymous read":               {[]string{"ls-remote", url + "/team/demo.git"}, false},
		"anonymous read of public":     {[]string{"ls-remote", url + "/open.git"}, true},
		"anonymous push to public":     {[]string{"push", url + "/open.git", "main"}, false},
		"the administrator reads":      {[]string{"ls-remote", as("admin:all") + "/team/demo.git"}, true},
		"the user pushes a large file": {[]string{"push", as("dev:right") + "/team/demo.git", "main"}, true},
	}
	for name, test := range tests {
		if out, err := git(work, test.args...); (err == nil) != test.ok {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	checkCall(t, calls)
}

func checkCall(t *testing.T, calls <-chan call) {
	t.Helper()
	select {
	case got := <-calls:
		var change Change
		if err := json.Unmarshal(got.body, &change); err != nil {
			t.Fatal(err)
		}
		if change.Repository != "team/demo" || change.Ref != "refs/heads/main" || len(change.After) != 40 {
			t.Errorf("the webhook was called with %+v", change)
		}
		if got.path != "/team/demo" {
			t.Errorf("the webhook was called at %s, want %q", got.path, "/team/demo")
		}
		if want := "sha256=" + sign("key", got.body); got.signature != want {
			t.Errorf("signature %s, want %s", got.signature, want)
		}
	case <-time.After(5 * time.Second):
		t.Error("the webhook was not called")
	}
}

func TestDeletedRepositoryIsNotFound(t *testing.T) {
	url, store := serve(t)
	if err := store.Create(Wanted{User: "dev", Password: "right"}, "demo"); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete("demo"); err != nil {
		t.Fatal(err)
	}
	out, err := git(t.TempDir(), "ls-remote", strings.Replace(url, "http://", "http://dev:right@", 1)+"/demo.git")
	if err == nil || !strings.Contains(out, "not found") {
		t.Errorf("ls-remote of a deleted repository: %v\n%s", err, out)
	}
}

func TestCopiesBeginWithTheContentOfAnother(t *testing.T) {
	url, store := serve(t)
	from := filepath.Join(t.TempDir(), "from.git")
	if out, err := git(t.TempDir(), "clone", "--quiet", "--bare", commit(t), from); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := store.Create(Wanted{User: "dev", Password: "right", From: from}, "one", "two"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		out, err := git(t.TempDir(), "ls-remote", strings.Replace(url, "http://", "http://dev:right@", 1)+"/"+name+".git")
		if err != nil || !strings.Contains(out, "refs/heads/main") {
			t.Errorf("ls-remote of the copy %s: %v\n%s", name, err, out)
		}
	}
}

// serve starts a server over a fresh store.
func serve(t *testing.T) (url string, store *Store) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	store = Open(t.TempDir())
	if err := store.Init("all"); err != nil {
		t.Fatal(err)
	}
	server, err := NewServer(store, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	return listening.URL, store
}

// commit returns a working copy with one commit that is too large to be pushed in one piece.
func commit(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	noise := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	if err := os.WriteFile(filepath.Join(dir, "large"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "one"}} {
		if out, err := git(dir, args...); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func git(dir string, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir, command.Env = dir, append(os.Environ(), environment()...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestCachedAnswersAreCurrent: an answer of Git is repeated only until the references or the users change.
func TestCachedAnswersAreCurrent(t *testing.T) {
	url, store := serve(t)
	if err := store.Create(Wanted{User: "dev", Password: "first"}, "demo"); err != nil {
		t.Fatal(err)
	}
	as := func(password string) string {
		return strings.Replace(url, "http://", "http://dev:"+password+"@", 1) + "/demo.git"
	}
	work := commit(t)
	if out, err := git(work, "push", as("first"), "main"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	advertised := func(password string) string {
		t.Helper()
		out, err := git(work, "ls-remote", as(password))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	first := advertised("first")
	if again := advertised("first"); again != first || !strings.Contains(first, "refs/heads/main") {
		t.Errorf("two requests return %q and %q", first, again)
	}
	if out, err := git(store.Path("demo"), "branch", "other", "main"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := advertised("first"), "refs/heads/other"; !strings.Contains(got, want) {
		t.Errorf("a new branch is missing: %q, want %q in it", got, want)
	}
	if out, err := git(store.Path("demo"), "pack-refs", "--all"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := git(work, "push", as("first"), ":other"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := advertised("first"); got != first {
		t.Errorf("after the deletion of the branch the answer is %q, want %q", got, first)
	}
	if err := store.Create(Wanted{User: "dev", Password: "second"}, "demo"); err != nil {
		t.Fatal(err)
	}
	advertised("second")
	if out, err := git(work, "ls-remote", as("first")); err == nil {
		t.Errorf("the old password is taken: %s", out)
	}
}
