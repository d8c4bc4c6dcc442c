package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	fetched "github.com/kubeop/kubeop/delivery/fetch/git"
)

// configured gives Git this configuration alone, and a folder that is in no clone as the working directory.
func configured(t *testing.T, config string) string {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "gitconfig")
	if err := os.WriteFile(file, []byte("[user]\nname = Ann\nemail = ann@example.com\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", file)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Chdir(folder)
	return folder
}

func run(t *testing.T, folder string, args ...string) {
	t.Helper()
	if _, err := Run(t.Context(), folder, args...); err != nil {
		t.Fatal(err)
	}
}

// TestTheHelperIsAskedForCredentialsByHostOnly, and only the name and the password of its answer are used.
func TestTheHelperIsAskedForCredentialsByHostOnly(t *testing.T) {
	folder := configured(t, "[credential]\nhelper = \"!f() { cat >asked; echo username=me; echo password=to=ken; }; f\"\n")
	for at, want := range map[string]struct{ asked, user, token string }{
		"https://git.example.com/a/b":        {"protocol=https\nhost=git.example.com\n", "me", "to=ken"},
		"https://git.example.com:8443/a/b":   {"protocol=https\nhost=git.example.com:8443\n", "me", "to=ken"},
		"http://git.example.com:8080/a/b":    {"protocol=http\nhost=git.example.com:8080\n", "me", "to=ken"},
		"ssh://git@git.example.com:2222/a/b": {"protocol=https\nhost=git.example.com\n", "me", "to=ken"},
		"https://ann:hunter2@example.com/a":  {"", "ann", "hunter2"},
	} {
		asked := filepath.Join(folder, "asked")
		if err := os.RemoveAll(asked); err != nil {
			t.Fatal(err)
		}
		user, token, err := Credentials(t.Context(), at)
		if err != nil || user != want.user || token != want.token {
			t.Errorf("%s: got %s, %s, %v", at, user, token, err)
		}
		var said strings.Builder
		text, _ := os.ReadFile(asked)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "protocol=") || strings.HasPrefix(line, "host=") {
				said.WriteString(line)
			}
		}
		if said.String() != want.asked {
			t.Errorf("%s: the helper was asked for %q, want %q", at, said.String(), want.asked)
		}
	}
}

// TestMissingCredentialsAreAnErrorThatNamesTheHost, and nothing asks on the terminal.
func TestMissingCredentialsAreAnErrorThatNamesTheHost(t *testing.T) {
	configured(t, "")
	for at, want := range map[string]string{
		"https://git.example.com/a": "there are no Git credentials for git.example.com: git credential: ",
		"https://exa mple.com":      "the URL of the remote cannot be used: ",
	} {
		if user, token, err := Credentials(t.Context(), at); err == nil || !strings.HasPrefix(err.Error(), want) || user+token != "" {
			t.Errorf("%s: got %q, %q, %v", at, user, token, err)
		}
	}
}

// TestTheRemoteIsThatOfTheBranchOrOrigin: a branch that follows one of the same clone has the remote of origin.
func TestTheRemoteIsThatOfTheBranchOrOrigin(t *testing.T) {
	folder := configured(t, "")
	run(t, folder, "init", "-q", "-b", "main", "clone")
	clone := filepath.Join(folder, "clone")
	run(t, clone, "remote", "add", "origin", "git@git.example.com:acme/fleet.git")
	run(t, clone, "remote", "add", "fork", "https://git.example.com/fork/fleet.git")
	for _, c := range []struct{ remote, want string }{
		{"", "ssh://git@git.example.com/acme/fleet.git"}, {".", "ssh://git@git.example.com/acme/fleet.git"}, {"fork", "https://git.example.com/fork/fleet.git"},
	} {
		if c.remote != "" {
			run(t, clone, "config", "branch.main.remote", c.remote)
		}
		if got, err := RemoteURL(t.Context(), clone); err != nil || got != c.want {
			t.Errorf("remote %q: got %s, %v, want %s", c.remote, got, err, c.want)
		}
	}
	run(t, clone, "remote", "set-url", "origin", "host:/srv/fleet.git")
	run(t, clone, "config", "branch.main.remote", "origin")
	if got, err := RemoteURL(t.Context(), clone); err != nil || got != "host:/srv/fleet.git" {
		t.Errorf("a path on a host: got %s, %v", got, err)
	}
}

// TestAPushThatIsRefused by the server is no conflict, and a signature that cannot be made ends it before. The messages of commits are read as they
// are.
func TestAPushThatIsRefused(t *testing.T) {
	folder := configured(t, "")
	server, clone := filepath.Join(folder, "server"), filepath.Join(folder, "clone")
	run(t, folder, "init", "-q", "--bare", "-b", "main", server)
	run(t, folder, "clone", "-q", server, clone)
	if err := os.WriteFile(filepath.Join(clone, "a.yaml"), []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, clone, "add", ".")
	run(t, clone, "commit", "-q", "-m", "one")
	run(t, clone, "push", "-q", "-u", "origin", "main")
	if err := os.WriteFile(filepath.Join(server, "hooks", "pre-receive"), []byte("#!/bin/sh\necho 'the branch is protected' >&2\nexit 1\n"), 0o755); err != nil { //nolint:gosec // Git runs it.
		t.Fatal(err)
	}
	b, _, err := Upstream(t.Context(), clone)
	if err != nil {
		t.Fatal(err)
	}
	upon, err := b.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change := fetched.Proposed{Upon: upon, Branch: b.Branch, Draft: draft.New()}
	if err := change.Draft.Add(upon.Root, draft.Commit{Message: "two"}, []draft.Change{{Path: "a.yaml", Content: []byte("a: 2\n")}}); err != nil {
		t.Fatal(err)
	}
	_, err = b.Push(t.Context(), change)
	if !errors.Is(err, fetched.ErrRefused) || errors.Is(err, fetched.ErrMoved) || !strings.Contains(err.Error(), "the branch is protected") {
		t.Errorf("got %v", err)
	}
	run(t, clone, "config", "log.showSignature", "true")
	run(t, clone, "commit", "-q", "--allow-empty", "-m", "next", "-m", "Kubeop-Request: r")
	next, err := b.Commit(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[string]map[string]string{
		"":          {upon.Hash: "one\n", next.Hash: "next\n\nKubeop-Request: r\n"},
		upon.Hash:   {next.Hash: "next\n\nKubeop-Request: r\n"},
		next.Hash:   {},
		"no commit": nil,
	} {
		got, err := b.Messages(t.Context(), next, since, 10)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("the messages since %q: %v (-want +got):\n%s", since, err, diff)
		}
	}
	run(t, clone, "config", "commit.gpgsign", "true")
	run(t, clone, "config", "gpg.program", "false")
	if hashes, err := b.Push(t.Context(), change); err == nil || !strings.HasPrefix(err.Error(), "git commit-tree: ") || hashes != nil {
		t.Errorf("without a signature: got %s, %v", hashes, err)
	}
}

func TestGitIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Run(t.Context(), t.TempDir(), "version"); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v", err)
	}
}
