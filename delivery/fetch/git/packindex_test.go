package git

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestGitAgreesWithTheIndex compares our index of a pack with long chains of deltas with git's, byte by byte.
func TestGitAgreesWithTheIndex(t *testing.T) {
	repo := sources.NewGitRepo(t)
	lines := strings.Split(noiseLines(400), "\n")
	for i := range 60 {
		lines[i*3] = fmt.Sprint("changed ", i)
		repo.Write("app.yaml", strings.Join(lines, "\n"))
		repo.Write(fmt.Sprintf("d%d/same.yaml", i%7), strings.Join(lines[i:], "\n"))
		repo.Git("add", "--all")
		repo.Git("commit", "--quiet", "--message", fmt.Sprint(i))
	}
	for name, option := range map[string]string{"by name": "--no-reuse-delta", "by offset": "--delta-base-offset"} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(t.TempDir(), "p")
			repo.Git("-c", "alias.all=!git rev-list --objects --all | git pack-objects --no-reuse-delta --depth=50 "+option+" "+base, "all")
			packs, err := filepath.Glob(base + "-*.pack")
			if err != nil || len(packs) != 1 {
				t.Fatal(packs, err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(packs[0], "pack") + "idx")
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(packs[0])
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			got, err := indexOf(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the index has %d bytes, that of git %d, and they differ", len(got), len(want))
			}
			deltas := strings.Count(repo.Git("verify-pack", "-v", packs[0]), "chain length")
			if deltas < 5 {
				t.Errorf("the pack has chains of only %d lengths", deltas)
			}
		})
	}
}

// emptyStore has no objects on which a pack could build.
type emptyStore struct{}

func (emptyStore) Size(plumbing.Hash) (int64, error) { return 0, plumbing.ErrObjectNotFound }

func (emptyStore) Object(plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	return plumbing.InvalidObject, nil, plumbing.ErrObjectNotFound
}

// indexOf returns the index of a pack that builds on no other object.
func indexOf(file *os.File) ([]byte, error) {
	sum, _, err := pack.Checksum(file)
	if err != nil {
		return nil, err
	}
	contents, err := pack.Read(file, defaultLimits().contents, emptyStore{})
	if err != nil {
		return nil, err
	}
	return pack.Index(contents.Objects, sum)
}

func noiseLines(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %d: %x\n", i, sources.Noise(i, 20))
	}
	return text.String()
}

// TestALargeFileDoesNotHoldTheCommit: the file is never in memory, neither when it is received nor when someone tries to read it.
func TestALargeFileDoesNotHoldTheCommit(t *testing.T) {
	const size = 24 * limit.MiB // Three times what the test's limit has the index hold in memory.
	repo := sources.NewGitRepo(t)
	fastImport(repo, func(file func(string, int64, io.Reader)) {
		file("apps/db/dump.sql", size, sources.Zeros{})
		file("apps/web/app.yaml", 3, strings.NewReader("a: "))
	})
	config(repo, "core.bigFileThreshold", "10m") // otherwise git searches long for deltas in it
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	store.limits.contents.Object = size / 3
	var commit Commit
	peak := sources.PeakHeap(t, func() {
		commit = fetchOK(t, store, Source{URL: server.RepoURL()})
		_, err := commit.Root.ReadFile("apps/db/dump.sql")
		sources.WantError(t, err, failure.ErrTooLarge, "larger than the limit of 5 MiB")
		if path, is := failure.OversizedPath(err); !is || path != "apps/db/dump.sql" {
			t.Errorf("the error is about %q, %t", path, is)
		}
	})
	if text(t, commit, "apps/web/app.yaml") != "a: " {
		t.Error("the file beside it cannot be read")
	}
	if peak > size*2/3 {
		t.Errorf("it took %d MiB", peak/limit.MiB)
	}
	// The next commit is fetched on top of it.
	repo.Git("fetch", "--quiet", "--depth=1", "origin", "main")
	repo.Git("reset", "--quiet", "--hard", "FETCH_HEAD")
	repo.Write("apps/web/app.yaml", "b: ")
	repo.Push("next")
	if next := fetchOK(t, store, Source{URL: server.RepoURL()}); text(t, next, "apps/web/app.yaml") != "b: " {
		t.Error("the next commit is not there")
	}
}
