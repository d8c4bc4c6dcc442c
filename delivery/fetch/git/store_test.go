package git

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestADamagedStoreIsFetchedAgain(t *testing.T) {
	damage := map[string]func(t *testing.T, dir string){
		"pack cut short": func(t *testing.T, dir string) {
			if err := os.Truncate(sources.OnlyFile(t, dir, "*", "1", "objects", "pack", "*.pack"), 20); err != nil {
				t.Fatal(err)
			}
		},
		"pack overwritten": func(t *testing.T, dir string) {
			path := sources.OnlyFile(t, dir, "*", "1", "objects", "pack", "*.pack")
			if err := os.WriteFile(path, []byte(strings.Repeat("x", 300)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"index empty": func(t *testing.T, dir string) {
			if err := os.Truncate(sources.OnlyFile(t, dir, "*", "1", "objects", "pack", "*.idx"), 0); err != nil {
				t.Fatal(err)
			}
		},
		"index gone": func(t *testing.T, dir string) {
			if err := os.Remove(sources.OnlyFile(t, dir, "*", "1", "objects", "pack", "*.idx")); err != nil {
				t.Fatal(err)
			}
		},
		"pack gone": func(t *testing.T, dir string) {
			if err := os.Remove(sources.OnlyFile(t, dir, "*", "1", "objects", "pack", "*.pack")); err != nil {
				t.Fatal(err)
			}
		},
		"commits made up": func(t *testing.T, dir string) {
			path := sources.OnlyFile(t, dir, "*", "1", commitsFile)
			if err := os.WriteFile(path, []byte("no hash\n"+strings.Repeat("ab", 20)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"everything gone": func(t *testing.T, dir string) {
			if err := os.RemoveAll(sources.OnlyFile(t, dir, "*")); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, spoil := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := sources.NewGitRepo(t)
			repo.Write("a", "1")
			repo.Write("dir/b", "1")
			repo.Push("first")
			src := Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()}
			dir := t.TempDir()
			running := NewStore(dir, loopback)
			fetchOK(t, running, src)
			spoil(t, dir)
			for _, store := range []*Store{running, NewStore(dir, loopback)} {
				repo.Write("a", name)
				repo.Push("next")
				// The process that runs while the files are damaged notices it when it reads them, and not while it still has the objects in memory.
				err := hasPushed(t, store, src, name)
				if err != nil {
					err = hasPushed(t, store, src, name)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// hasPushed fetches, and reads each file of the commit once.
func hasPushed(t *testing.T, store *Store, src Source, a string) error {
	commit, err := store.Fetch(t.Context(), src)
	if err != nil {
		return err
	}
	for path, want := range map[string]string{"a": a, "dir/b": "1"} {
		got, err := commit.Root.ReadFile(path)
		if err != nil {
			return err
		}
		if string(got) != want {
			return fmt.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	return nil
}

func TestFetchRemovesUnfinishedFiles(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("a", "1")
	repo.Push("first")
	src := Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()}
	dir := t.TempDir()
	fetchOK(t, NewStore(dir, loopback), src)
	key := filepath.Dir(sources.OnlyFile(t, dir, "*", "1"))
	packs := filepath.Join(key, "1", packFolder)
	for _, path := range []string{
		filepath.Join(key, "tmp-1", packFolder, "tmp-pack"), // an unfinished store
		filepath.Join(packs, "tmp-2"),                       // a partly received pack
		filepath.Join(packs, "pack-"+strings.Repeat("ab", 20)+".idx"),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repo.Write("a", "2")
	repo.Push("second")
	if commit := fetchOK(t, NewStore(dir, loopback), src); text(t, commit, "a") != "2" {
		t.Error("not the commit that was pushed")
	}
	left, _ := filepath.Glob(filepath.Join(key, disk.Temporary))
	inside, _ := filepath.Glob(filepath.Join(packs, disk.Temporary))
	if len(left)+len(inside) != 0 {
		t.Errorf("left behind: %v %v", left, inside)
	}
}

// TestAFetchContinuesFromTheFilesOfAKilledOne kills a process at different points of a fetch, and fetches again from the files that it left.
func TestAFetchContinuesFromTheFilesOfAKilledOne(t *testing.T) {
	if url := os.Getenv("FETCH_URL"); url != "" {
		for {
			_, _ = NewStore(os.Getenv("FETCH_DIR"), loopback).Fetch(context.Background(), Source{URL: url})
		}
	}
	repo := sources.NewGitRepo(t)
	for i := range 200 {
		repo.Write(fmt.Sprintf("d%d/f", i), strings.Repeat(fmt.Sprint(i), 100))
	}
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	server.Set(func() {
		server.Wrap = func(w http.ResponseWriter, req *http.Request, backend http.Handler) bool {
			whole := httptest.NewRecorder()
			backend.ServeHTTP(whole, req)
			w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
			for chunk := whole.Body.Next(2000); len(chunk) > 0; chunk = whole.Body.Next(2000) {
				_, _ = w.Write(chunk)
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
			return true
		}
	})
	dir := t.TempDir()
	for i := range 6 {
		child := exec.Command(os.Args[0], "-test.run=^TestAFetchContinuesFromTheFilesOfAKilledOne$")
		child.Env = append(os.Environ(), "FETCH_URL="+server.RepoURL(), "FETCH_DIR="+dir)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(60+i*45) * time.Millisecond)
		_ = child.Process.Signal(syscall.SIGKILL)
		_ = child.Wait()
		repo.Write("round", fmt.Sprint(i))
		repo.Push("next")
	}
	commit := fetchOK(t, NewStore(dir, loopback), Source{URL: server.RepoURL()})
	for i := range 200 {
		if got := text(t, commit, fmt.Sprintf("d%d/f", i)); got != strings.Repeat(fmt.Sprint(i), 100) {
			t.Fatalf("d%d: %q", i, got)
		}
	}
	if text(t, commit, "round") != "5" {
		t.Error("not the last commit")
	}
}

func TestAFullDiskFailsAFetch(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("needs to mount a small file system: ", err)
	}
	defer unmount(t, dir)
	repo := sources.NewGitRepo(t)
	repo.Write("small", "1")
	repo.Push("first")
	src := Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()}
	store := NewStore(dir, loopback)
	first := fetchOK(t, store, src)
	var random strings.Builder
	for i := range 30000 {
		fmt.Fprintf(&random, "%x", i*i*7919)
	}
	repo.Write("large", random.String())
	repo.Push("second")

	_, err := store.Fetch(t.Context(), src)
	sources.WantError(t, err, syscall.ENOSPC, "no space left below "+dir)
	wantTransient(t, err)
	if text(t, first, "small") != "1" {
		t.Error("the first commit is not readable any more")
	}
	repo.Git("rm", "--quiet", "large")
	repo.Write("small", "2")
	repo.Push("third")
	if commit := fetchOK(t, store, src); text(t, commit, "small") != "2" {
		t.Error("not the commit that was pushed")
	}
}

// unmount waits until no file is open any more: packs are closed shortly after the last read.
func unmount(t *testing.T, dir string) {
	t.Helper()
	var err error
	for range 40 {
		if err = syscall.Unmount(dir, 0); !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(idle / 2)
	}
	if err != nil {
		t.Errorf("unmounting: %v; open are %v", err, openBelow(dir))
	}
}

// openBelow lists the files that this process has open below a folder.
func openBelow(dir string) (open []string) {
	descriptors, _ := filepath.Glob("/proc/self/fd/*")
	for _, d := range descriptors {
		if path, err := os.Readlink(d); err == nil && strings.HasPrefix(path, dir) {
			open = append(open, path)
		}
	}
	return open
}

func TestCommitFindsOtherFolders(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Write("apps/web/app.yaml", "1")
	repo.Push("first")
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := NewStore(t.TempDir(), loopback)
	first := fetchOK(t, store, Source{URL: server.RepoURL()})
	was, err := first.Root.Digest("apps/web")
	if err != nil {
		t.Fatal(err)
	}
	repo.Write("apps/web/app.yaml", "2")
	repo.Push("second")
	second := fetchOK(t, store, Source{URL: server.RepoURL()})
	folder, err := second.Folder(was)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := folder.ReadFile("app.yaml"); string(got) != "1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = second.Folder(strings.Repeat("a", 40))
	sources.WantError(t, err, failure.ErrNotFound, "is not in the store")
	_, err = second.Folder("../../etc")
	sources.WantError(t, err, failure.ErrInvalid, "not a hash")
	_, err = Commit{}.Folder(was)
	sources.WantError(t, err, failure.ErrNotFound, "is not in the store")
}

func TestADamagedIndexShowsWhenTheStoreIsOpened(t *testing.T) {
	dir := t.TempDir()
	pack := filepath.Join(dir, packFolder, "pack-"+strings.Repeat("0a", 20))
	if err := os.MkdirAll(filepath.Dir(pack), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{".pack", ".idx"} {
		if err := os.WriteFile(pack+part, []byte("no such thing"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openGeneration(dir, limits{}, nil); err == nil {
		t.Error("no error")
	}
}
