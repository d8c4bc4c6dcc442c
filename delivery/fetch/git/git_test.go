package git

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestFetchReadsTheCommitWithoutHistory(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("old.txt", "only in history")
	repo.Push("first")
	repo.Git("rm", "--quiet", "old.txt")
	repo.Write("apps/web/app.yaml", "kind: App\n")
	hash := repo.Push("second")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	dir := t.TempDir()

	commit := fetchOK(t, NewStore(dir, loopback), Source{URL: server.RepoURL()})

	if want := "main@sha1:" + hash; commit.Revision != want || commit.Hash != hash {
		t.Errorf("got %s and %s, want %s", commit.Revision, commit.Hash, want)
	}
	if want := repo.Git("log", "-1", "--format=%an|%ct"); commit.Author+"|"+fmt.Sprint(commit.Time.Unix()) != want {
		t.Errorf("it is by %s of %s, want %s", commit.Author, commit.Time, want)
	}
	if got := text(t, commit, "apps/web/app.yaml"); got != "kind: App\n" {
		t.Errorf("got %q, want %q", got, "kind: App\n")
	}
	if got := server.Seen(); !cmp.Equal(got, []string{"GET /app.git/info/refs", "POST /app.git/git-upload-pack"}) {
		t.Errorf("requests: %v", got)
	}
	// Git can read the store, which has one commit only.
	stores, _ := filepath.Glob(filepath.Join(dir, "*", "1", "objects", "pack", "*.pack"))
	if len(stores) != 1 {
		t.Fatalf("packs: %v", stores)
	}
	listed := repo.Run(dir, "verify-pack", "-v", stores[0])
	if n := strings.Count(listed, " commit "); n != 1 {
		t.Errorf("the pack holds %d commits:\n%s", n, listed)
	}
}

func TestFetchRequestsNothingItHas(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	dir := t.TempDir()
	fetchOK(t, NewStore(dir, loopback), Source{URL: server.RepoURL()})
	server.Seen()

	// A new store behaves like a restarted process.
	for _, store := range []*Store{NewStore(dir, loopback), NewStore(dir, loopback)} {
		fetchOK(t, store, Source{URL: server.RepoURL()})
		if got := server.Seen(); !cmp.Equal(got, []string{"GET /app.git/info/refs"}) {
			t.Errorf("requests: %v", got)
		}
	}
}

func TestASecondFetchTransfersOnlyWhatIsNew(t *testing.T) {
	repo := sources.NewGitRepo(t)
	for i := range 50 {
		// Text that does not compress, so that sizes show what was sent.
		repo.Write(fmt.Sprintf("apps/a%d/app.yaml", i), rand.Text()+rand.Text()+rand.Text()+rand.Text()+rand.Text()+rand.Text())
	}
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	dir := t.TempDir()
	store := NewStore(dir, loopback)
	first := fetchOK(t, store, Source{URL: server.RepoURL()})

	repo.Write("apps/a7/app.yaml", "changed")
	repo.Push("skipped: two commits between two fetches")
	repo.Write("apps/a8/app.yaml", "changed too")
	hash := repo.Push("third")
	second := fetchOK(t, store, Source{URL: server.RepoURL()})

	if second.Hash != hash || text(t, second, "apps/a7/app.yaml") != "changed" || text(t, second, "apps/a8/app.yaml") != "changed too" {
		t.Errorf("got %s", second.Hash)
	}
	if text(t, second, "apps/a9/app.yaml") != text(t, first, "apps/a9/app.yaml") {
		t.Error("an unchanged file differs")
	}
	if got := text(t, first, "apps/a7/app.yaml"); got == "changed" {
		t.Error("the first commit changed under its reader")
	}
	packs, _ := filepath.Glob(filepath.Join(dir, "*", "1", "objects", "pack", "*.pack"))
	if len(packs) != 2 {
		t.Fatalf("packs: %v", packs)
	}
	small, large := int64(1<<62), int64(0)
	for _, pack := range packs {
		info, err := os.Stat(pack)
		if err != nil {
			t.Fatal(err)
		}
		small, large = min(small, info.Size()), max(large, info.Size())
	}
	if small*4 > large {
		t.Errorf("the second pack has %d bytes, the first %d: not only the difference was sent", small, large)
	}
}

func TestAFetchFollowsAForcedPush(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	old := repo.Push("first")
	repo.Write("a", "2")
	repo.Push("second")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	fetchOK(t, store, Source{URL: server.RepoURL()})

	// To an ancestor, which breaks go-git's own fetch into a shallow store (issue 1443), then to an unrelated commit.
	repo.Git("reset", "--quiet", "--hard", old)
	repo.PushAll()
	if commit := fetchOK(t, store, Source{URL: server.RepoURL()}); commit.Hash != old || text(t, commit, "a") != "1" {
		t.Errorf("after a push to an ancestor: %s", commit.Hash)
	}
	repo.Git("checkout", "--quiet", "--orphan", "other")
	repo.Write("a", "3")
	repo.Git("add", "--all")
	repo.Git("commit", "--quiet", "--message", "unrelated")
	repo.Git("branch", "--force", "main", "other")
	repo.PushAll()
	if commit := fetchOK(t, store, Source{URL: server.RepoURL()}); text(t, commit, "a") != "3" {
		t.Errorf("after a push of an unrelated commit: %s", commit.Hash)
	}
}

func TestANewStoreIsStartedBeforeThereAreManyPacks(t *testing.T) {
	repo := sources.NewGitRepo(t)
	server := sources.ServeGit(t, repo, httptest.NewServer)
	dir := t.TempDir()
	store := NewStore(dir, loopback)
	store.limits.packs = 3
	var commits []Commit
	for i := range 8 {
		repo.Write("a", fmt.Sprint(i))
		repo.Push("next")
		commits = append(commits, fetchOK(t, store, Source{URL: server.RepoURL()}))
		if got := text(t, commits[i], "a"); got != fmt.Sprint(i) {
			t.Fatalf("commit %d: %q", i, got)
		}
	}
	// A commit that is still held can be read, however long ago its store was replaced.
	for i, commit := range commits {
		if got := text(t, commit, "a"); got != fmt.Sprint(i) {
			t.Errorf("commit %d: %q", i, got)
		}
	}
	// From here on no commit is held.
	left := []string{"", "", ""}
	for deadline := time.Now().Add(10 * time.Second); len(left) > 2 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		runtime.GC()
		left, _ = filepath.Glob(filepath.Join(dir, "*", "[0-9]*"))
	}
	if len(left) != 2 {
		t.Errorf("stores: %v, want the one in use and the one before", left)
	}
	if commit := fetchOK(t, store, Source{URL: server.RepoURL()}); text(t, commit, "a") != "7" {
		t.Error("not the last commit")
	}
}

func TestRefsAreResolvedToCommits(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	first := repo.Push("first")
	repo.Git("tag", "v1.0.0")
	repo.Git("tag", "--annotate", "--message", "x", "v1.2.0")
	repo.Git("tag", "--annotate", "--message", "x", "nested", "v1.2.0")
	repo.Write("a", "2")
	second := repo.Push("second")
	repo.Git("tag", "v2.0.0-rc.1")
	repo.Git("branch", "feature/x")
	repo.PushAll()
	repo.Run(filepath.Join(repo.Root, repo.Name), "update-ref", "refs/pull/7/head", first)
	server := sources.ServeGit(t, repo, httptest.NewServer)
	ssh := sources.ServeSSH(t, repo)

	cases := map[string]struct {
		ref  *sourcev1.GitRepositoryRef
		want string
	}{
		"nothing":           {nil, "main@sha1:" + second},
		"branch":            {&sourcev1.GitRepositoryRef{Branch: "feature/x"}, "feature/x@sha1:" + second},
		"tag":               {&sourcev1.GitRepositoryRef{Tag: "v1.0.0"}, "v1.0.0@sha1:" + first},
		"annotated tag":     {&sourcev1.GitRepositoryRef{Tag: "v1.2.0"}, "v1.2.0@sha1:" + first},
		"tag of a tag":      {&sourcev1.GitRepositoryRef{Tag: "nested"}, "nested@sha1:" + first},
		"semver":            {&sourcev1.GitRepositoryRef{SemVer: ">=1.0.0"}, "v1.2.0@sha1:" + first},
		"semver prerelease": {&sourcev1.GitRepositoryRef{SemVer: ">=2.0.0-0"}, "v2.0.0-rc.1@sha1:" + second},
		"name":              {&sourcev1.GitRepositoryRef{Name: "refs/pull/7/head"}, "refs/pull/7/head@sha1:" + first},
		"commit":            {&sourcev1.GitRepositoryRef{Commit: first}, "sha1:" + first},
		"commit and branch": {&sourcev1.GitRepositoryRef{Commit: first, Branch: "main"}, "main@sha1:" + first},
		"order":             {&sourcev1.GitRepositoryRef{Name: "refs/heads/main", SemVer: "1.0.0", Tag: "v1.2.0", Branch: "no"}, "refs/heads/main@sha1:" + second},
		"semver before tag": {&sourcev1.GitRepositoryRef{SemVer: "1.0.0", Tag: "v2.0.0-rc.1", Branch: "no"}, "v1.0.0@sha1:" + first},
		"tag before branch": {&sourcev1.GitRepositoryRef{Tag: "v1.0.0", Branch: "no"}, "v1.0.0@sha1:" + first},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, src := range []Source{{URL: server.RepoURL(), Ref: tc.ref}, {URL: ssh.RepoURL(), Ref: tc.ref, Auth: authOf(ssh)}} {
				commit := fetchOK(t, NewStore(t.TempDir(), loopback), src)
				if commit.Revision != tc.want {
					t.Errorf("%s: got %s, want %s", src.URL, commit.Revision, tc.want)
				}
			}
		})
	}
}

func TestFetchCommitTheServerDoesNotServeByHash(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	first := repo.Push("first")
	repo.Write("a", "2")
	repo.Push("second")
	// Over SSH git-upload-pack refuses a commit to which no ref points; over HTTP it cannot know.
	ssh := sources.ServeSSH(t, repo)
	store := NewStore(t.TempDir(), loopback)
	fetchOK(t, store, Source{URL: ssh.RepoURL(), Auth: authOf(ssh)})
	for _, ref := range []*sourcev1.GitRepositoryRef{{Commit: first}, {Commit: first, Branch: "main"}} {
		if commit := fetchOK(t, store, Source{URL: ssh.RepoURL(), Auth: authOf(ssh), Ref: ref}); text(t, commit, "a") != "1" {
			t.Errorf("%+v: got %s", ref, commit.Revision)
		}
	}
	repo.Write("a", "3")
	third := repo.Push("third")
	if commit := fetchOK(t, store, Source{URL: ssh.RepoURL(), Auth: authOf(ssh)}); commit.Hash != third || text(t, commit, "a") != "3" {
		t.Errorf("after a fetch with history: %s", commit.Revision)
	}
	_, err := store.Fetch(t.Context(), Source{URL: ssh.RepoURL(), Auth: authOf(ssh), Ref: &sourcev1.GitRepositoryRef{Commit: strings.Repeat("ab", 20)}})
	sources.WantError(t, err, failure.ErrNotFound, "is in none of the branches")
}

func TestManyFetchesAtOnceReadWholeCommits(t *testing.T) {
	repo := sources.NewGitRepo(t)
	for i := range 30 {
		repo.Write(fmt.Sprintf("d%d/f", i), fmt.Sprint(i))
	}
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	other := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	store.limits.packs = 2
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			from := []*sources.GitServer{server, other}[i%2]
			for range 4 {
				commit, err := store.Fetch(context.Background(), Source{URL: from.RepoURL()})
				if err != nil {
					t.Error(err)
					return
				}
				for d := range 30 {
					got, err := commit.Root.ReadFile(fmt.Sprintf("d%d/f", d))
					if err != nil || string(got) != fmt.Sprint(d) {
						t.Errorf("d%d: %q, %v", d, got, err)
					}
				}
			}
		})
	}
	for i := range 4 {
		repo.Write("new", fmt.Sprint(i))
		repo.Push("next")
	}
	wg.Wait()
	uploads := strings.Count(strings.Join(server.Seen(), "\n"), "git-upload-pack")
	if uploads > 5 {
		t.Errorf("%d transfers for at most 5 commits", uploads)
	}
}

func TestAFolderIsFoundByItsDigest(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("apps/web/app.yaml", "x")
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	dir := t.TempDir()
	src := Source{URL: server.RepoURL()}
	commit := fetchOK(t, NewStore(dir, loopback), src)
	digest, err := commit.Root.Digest("apps/web")
	if err != nil {
		t.Fatal(err)
	}
	server.Seen()
	store := NewStore(dir, loopback)
	folder, err := store.Folder(src, digest)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := folder.ReadFile("app.yaml"); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if got := server.Seen(); len(got) != 0 {
		t.Errorf("the network was used: %v", got)
	}
	_, err = store.Folder(src, strings.Repeat("0", 40))
	sources.WantError(t, err, failure.ErrNotFound, "fetch first")
	_, err = store.Folder(src, "../../etc")
	sources.WantError(t, err, failure.ErrInvalid, "not a hash")
	src.Auth.Password = "another credential"
	_, err = store.Folder(src, digest)
	sources.WantError(t, err, failure.ErrNotFound, "fetch first")
}

// fetchOK fetches and fails the test on an error.
func fetchOK(t *testing.T, store *Store, src Source) Commit {
	t.Helper()
	commit, err := store.Fetch(t.Context(), src)
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	return commit
}

// text reads a file of the commit.
func text(t *testing.T, commit Commit, path string) string {
	t.Helper()
	content, err := commit.Root.ReadFile(path)
	if err != nil {
		t.Fatalf("ReadFile(%s): %v", path, err)
	}
	return string(content)
}

// authOf returns credentials for the server.
func authOf(s *sources.SSHServer) transport.Auth {
	return transport.Auth{Identity: s.Identity, KnownHosts: s.KnownHosts}
}

// TestACommitThatIsStoredWaitsForNoOtherFetch of the repository, which may take minutes.
func TestACommitThatIsStoredWaitsForNoOtherFetch(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store, src := NewStore(t.TempDir(), loopback), Source{URL: server.RepoURL()}
	want := fetchOK(t, store, src)
	unlock, err := store.locks.Lock(t.Context(), store.repository(src).dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if got, err := store.Fetch(ctx, src); err != nil || got.Revision != want.Revision {
		t.Errorf("got %q, %v, want %q", got.Revision, err, want.Revision)
	}
}
