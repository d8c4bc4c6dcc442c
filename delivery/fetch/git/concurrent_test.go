package git

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestManyReadACommitAtOnce: objects of all sizes, also those that go-git reads from the pack only when their content is requested, and
// those that are stored as a difference to another, have the right content while the packs are closed and opened again beside it.
func TestManyReadACommitAtOnce(t *testing.T) {
	repo := sources.NewGitRepo(t)
	want := map[string]string{}
	for n := range 8 {
		name := fmt.Sprintf("%d.txt", n)
		want[name] = noiseLines(2_000 + n) // Each file is the one before it and a line.
		repo.Write(name, want[name])
	}
	repo.Push("many files")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: server.RepoURL()})
	objects := commit.from.generations()[0].objects
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for name, text := range want {
				content, err := commit.Root.ReadFile(name)
				if err != nil || !bytes.Equal(content, []byte(text)) {
					t.Errorf("%s has %d bytes, want %d: %v", name, len(content), len(text), err)
				}
				objects.mu.Lock()
				objects.close()
				objects.mu.Unlock()
			}
		})
	}
	readers.Wait()
}
