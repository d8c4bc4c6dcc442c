package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestAFolderOfALocalRepositoryIsRead wherever Git stores the objects.
func TestAFolderOfALocalRepositoryIsRead(t *testing.T) {
	for name, arrange := range map[string]func(r *sources.GitRepo) (dir string){
		"loose objects": func(r *sources.GitRepo) string { return filepath.Join(r.Work, ".git") },
		"a pack": func(r *sources.GitRepo) string {
			r.Git("repack", "-a", "-d", "--quiet")
			return filepath.Join(r.Work, ".git")
		},
		"a bare repository": func(r *sources.GitRepo) string { return filepath.Join(r.Root, r.Name) },
		"objects through alternates": func(r *sources.GitRepo) string {
			dir := filepath.Join(t.TempDir(), ".git")
			r.Run(r.Root, "init", "--quiet", "--bare", dir)
			if err := os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(filepath.Join(r.Work, ".git", "objects")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := sources.NewGitRepo(t)
			repo.Write("app/deployment.yaml", "kind: Deployment\n")
			repo.Write("app/large.yaml", strings.Repeat("x", 5*limit.MiB+1))
			repo.Push("first")
			tree := repo.Git("rev-parse", "HEAD^{tree}")
			root := Local(arrange(repo), tree)
			if got, err := root.ReadFile("app/deployment.yaml"); string(got) != "kind: Deployment\n" || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
			if info, err := root.Stat("app/deployment.yaml"); err != nil || info.Size() != 17 {
				t.Errorf("got %+v, %v", info, err)
			}
			if entries, err := root.ReadDir("app"); err != nil || len(entries) != 2 {
				t.Errorf("the folder has %v, %v", entries, err)
			}
			_, err := root.ReadFile("app/large.yaml")
			sources.WantError(t, err, failure.ErrTooLarge, "app/large.yaml: the file is larger than the limit of 5 MiB")
			if _, err := root.ReadFile("app/none.yaml"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file that does not exist: %v", err)
			}
		})
	}
}

// TestALocalFileIsReadUpToALimit of its size.
func TestALocalFileIsReadUpToALimit(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "abc")
	repo.Push("first")
	objects, hash := localOf(filepath.Join(repo.Work, ".git")), plumbing.NewHash(repo.Git("rev-parse", "HEAD:a"))
	if content, err := objects.Blob(hash, 3); string(content) != "abc" || err != nil {
		t.Errorf("of the limit: %q, %v", content, err)
	}
	_, err := objects.Blob(hash, 2)
	sources.WantError(t, err, failure.ErrTooLarge, "a file of 3 bytes, at most 2")
}

// TestMissingLocalObjectsAreErrors, which name the object.
func TestMissingLocalObjectsAreErrors(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Push("first")
	missing := strings.Repeat("ab", 20)
	root := Local(filepath.Join(repo.Work, ".git"), missing)
	_, err := root.ReadDir(".")
	sources.WantError(t, err, plumbing.ErrObjectNotFound, "reading tree "+missing)
	hash := plumbing.NewHash(missing)
	objects := localOf(filepath.Join(repo.Work, ".git"))
	_, err = objects.Size(hash)
	sources.WantError(t, err, plumbing.ErrObjectNotFound, "reading file "+missing)
	_, err = objects.Blob(hash, limit.MiB)
	sources.WantError(t, err, plumbing.ErrObjectNotFound, "reading file "+missing)
}
