package plan

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestAPlanIsACommentOnItsPullRequest, with the token of a file.
func TestAPlanIsACommentOnItsPullRequest(t *testing.T) {
	var posted string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Bearer t0ken":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, "[]")
		case r.Method == http.MethodPost && r.URL.Path == "/api/v1/repos/acme/shop/issues/7/comments":
			var in struct{ Body string }
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				t.Error(err)
			}
			posted = in.Body
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "{}")
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	repo := sources.NewGitRepo(t)
	repo.Git("remote", "set-url", "origin", server.URL+"/acme/shop.git")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &command{Call: &call.Call{Clock: clocktesting.NewFakeClock(time.Now())}, comment: 7, host: git.Host{Type: "gitea", TokenFile: token}, root: repo.Work}
	made := everything()
	if err := p.publish(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if want := "<!-- kubeop plan of acme -->\n" + made.Markdown(); posted != want {
		t.Errorf("posted\n%s\nwant\n%s", posted, want)
	}
	// A pull request may have the plan of its commit and the one of its preview.
	p.preview = "7"
	if err := p.publish(t.Context(), made); err != nil || !strings.HasPrefix(posted, "<!-- kubeop plan of acme preview -->\n") {
		t.Errorf("the plan of a preview: %v, posted\n%s", err, posted)
	}
	p.host.TokenFile = filepath.Join(t.TempDir(), "none")
	if err := p.publish(t.Context(), made); err == nil || !strings.Contains(err.Error(), "--token-file: ") {
		t.Errorf("without the file of the token: %v", err)
	}
}

// TestAPlanOfAnotherFolderIsACommentInItsRepository, and not in that of the current folder.
func TestAPlanOfAnotherFolderIsACommentInItsRepository(t *testing.T) {
	posted := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			posted = r.URL.Path
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "{}")
			return
		}
		_, _ = io.WriteString(w, "[]")
	}))
	defer server.Close()
	d := newClone(t)
	d.Git("remote", "set-url", "origin", server.URL+"/acme/shop.git")
	here := sources.NewGitRepo(t)
	here.Git("remote", "set-url", "origin", server.URL+"/acme/other.git")
	t.Chdir(here.Work)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.planned(Command, d.Work, "--repository", "acme", "--comment", "7", "--git-host", "gitea", "--token-file", token)
	if want := "/api/v1/repos/acme/shop/issues/7/comments"; posted != want {
		t.Errorf("posted to %q, want %q", posted, want)
	}
}
