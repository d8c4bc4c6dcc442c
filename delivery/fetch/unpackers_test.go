package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// smallRepo serves a repository of one small file.
func smallRepo(t *testing.T) *gitServer {
	t.Helper()
	repo := newGitRepo(t)
	repo.write("web.yaml", "a: 1\n")
	repo.push("small")
	return serve(t, repo, httptest.NewServer)
}

// TestPacksThatAreNeverDoneLeavePlaces has the apps of three tenants, and their Repositories, unpack for ever.
func TestPacksThatAreNeverDoneLeavePlaces(t *testing.T) {
	store, server := NewGitStore(t.TempDir(), loopback), smallRepo(t)
	waits := 0
	for _, tenant := range []string{"one", "two", "three"} {
		for _, whose := range []string{tenant, RepositoryTenant(tenant)} {
			for range 4 {
				ctx, cancel := context.WithTimeout(onBehalfOf(t.Context(), whose), 10*time.Millisecond)
				if _, err := store.unpacking.enter(ctx); errors.Is(err, context.DeadlineExceeded) {
					waits++
				} else if err != nil {
					t.Fatal(err)
				}
				cancel()
			}
		}
	}
	if want := 2 * 3 * 3; waits != want {
		t.Errorf("%d packs wait, want %d: one of each unpacks", waits, want)
	}
	for _, whose := range []string{"few", RepositoryTenant("few")} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if _, err := store.Fetch(ctx, Git{URL: server.url(), Tenant: whose, Auth: transport.Auth{Username: whose, Password: "x"}}); err != nil {
			t.Errorf("%s: %v", whose, err)
		}
		cancel()
	}
}

// TestLargePacksAreUnpackedOneByOne has two packs take much memory, and one little.
func TestLargePacksAreUnpackedOneByOne(t *testing.T) {
	u := newUnpackers()
	enter := func(tenant string) *unpackPlace {
		t.Helper()
		p, err := u.enter(onBehalfOf(t.Context(), tenant))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, second := enter("one"), enter("two")
	for range 2 {
		if err := first.enlarge(); err != nil {
			t.Fatal(err)
		}
	}
	large := make(chan error)
	go func() { large <- second.enlarge() }()
	enter("three").leave()
	select {
	case err := <-large:
		t.Fatalf("a second large pack is unpacked beside the first: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	first.leave()
	if err := <-large; err != nil {
		t.Error(err)
	}
	second.leave()
	if n := u.apps.all.Taken() + u.apps.large.Taken(); n != 0 {
		t.Errorf("%d places are not given back", n)
	}
}

// TestPacksThatInflateDelayNobodyElse has the apps and Repositories of three tenants fetch, again and again, small packs that inflate to
// 480 MiB, and another tenant fetch a small one meanwhile.
func TestPacksThatInflateDelayNobodyElse(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	repo := newGitRepo(t)
	repo.fastImport(func(file func(string, int64, io.Reader)) {
		for i := range 16 {
			text := fmt.Sprint(i, "\n")
			file(fmt.Sprintf("f%d", i), 30*limit.MiB, io.MultiReader(strings.NewReader(text), zeros{}))
		}
	})
	repo.run(filepath.Join(repo.root, "app.git"), "config", "core.bigFileThreshold", "1m") // It looks for no differences.
	hostile, small := serve(t, repo, httptest.NewServer), smallRepo(t)
	store := NewGitStore(t.TempDir(), loopback)
	fetch := func(ctx context.Context, server *gitServer, whose string, n int) (time.Duration, error) {
		began := time.Now() // Each has a store of its own, as those of other repositories have.
		_, err := store.Fetch(ctx, Git{URL: server.url(), Tenant: whose, Auth: transport.Auth{Username: fmt.Sprint(whose, n), Password: "x"}})
		return time.Since(began), err
	}
	alone, err := fetch(t.Context(), hostile, "alone", 0)
	if err != nil {
		t.Fatal(err)
	}

	ctx, end := context.WithCancel(t.Context())
	var attack sync.WaitGroup
	var unpacked atomic.Int64
	for _, tenant := range []string{"one", "two", "three"} {
		for _, whose := range []string{tenant, RepositoryTenant(tenant)} {
			attack.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if _, err := fetch(ctx, hostile, whose, n); err == nil {
						unpacked.Add(1)
					} else if ctx.Err() == nil {
						t.Errorf("the pack of %s: %v", whose, err)
					}
				}
			})
		}
	}
	busy := func() int { return store.unpacking.apps.all.Taken() + store.unpacking.repositories.all.Taken() }
	for began := time.Now(); busy() < 6; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d packs are unpacked at once, want 6", busy())
		}
	}
	var took []time.Duration
	for n := range 10 {
		for _, whose := range []string{"few", RepositoryTenant("few")} {
			d, err := fetch(ctx, small, whose, n)
			if err != nil {
				t.Fatal(err)
			}
			took = append(took, d)
		}
	}
	end()
	attack.Wait()
	slices.Sort(took)
	t.Logf("a hostile pack alone took %s; during the attack, %d of them, a small one took %s at the median, %s at most",
		alone, unpacked.Load(), took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > time.Second {
		t.Errorf("another tenant's fetch took %s at the median", median)
	}
}
