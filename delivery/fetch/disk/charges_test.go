package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// fileOf writes a file of so many KiB below a folder, and returns its path.
func fileOf(t *testing.T, dir, name string, kib int) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, kib*limit.KiB), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// single is a store of single files, which removes a file that was not changed for long enough.
type single struct {
	kept    []string
	keptErr error
	cleared []string
	err     error
	tidied  int
}

func (s *single) Kept() ([]string, error) { return s.kept, s.keptErr }

func (s *single) Clear(_ context.Context, path string, now time.Time, unused time.Duration) error {
	s.cleared = append(s.cleared, fmt.Sprint(filepath.Base(path), " ", unused))
	if about, err := os.Stat(path); err == nil && now.Sub(about.ModTime()) >= unused {
		_ = os.Remove(path)
	}
	return s.err
}

func (s *single) Tidy() { s.tidied++ }

// diskOf has a clock that is set forward.
func diskOf(stores ...Store) (d *Disk, later func(time.Duration)) {
	now := time.Now()
	d = New(func() time.Time { return now }, stores...)
	return d, func(by time.Duration) { now = now.Add(by) }
}

func TestAFileIsChargedByBlocksAndOneMore(t *testing.T) {
	for name, tc := range map[string]struct{ kib, want int }{
		"empty": {0, 8}, "less than a block": {1, 8}, "a block": {4, 8}, "more": {5, 9}, "much": {100, 104},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := diskOf()
			d.Claim("acme", fileOf(t, t.TempDir(), "a", tc.kib))
			if got := d.Used("acme"); got != int64(tc.want)*limit.KiB || d.Sum() != got {
				t.Errorf("%d bytes count, of all %d, want %d KiB", got, d.Sum(), tc.want)
			}
		})
	}
}

func TestAFileCountsForTheTenantThatClaimedItLast(t *testing.T) {
	d, _ := diskOf()
	dir := t.TempDir()
	a, b := fileOf(t, dir, "a", 12), fileOf(t, dir, "b", 16)
	want := func(acme, other, all int64) {
		t.Helper()
		if d.Used("acme") != acme*limit.KiB || d.Used("other") != other*limit.KiB || d.Sum() != all*limit.KiB {
			t.Errorf("%d, %d and together %d bytes count, want %d, %d, %d KiB", d.Used("acme"), d.Used("other"), d.Sum(), acme, other, all)
		}
	}
	d.Claim("acme", a, b, b)
	want(36, 0, 36)
	d.Claim("other", b)
	want(16, 20, 36)
	d.Claim("", a)
	want(16, 20, 36)
	d.Claim("other", filepath.Join(dir, "gone"))
	want(16, 20, 36)
	fileOf(t, dir, "a", 28)
	if !d.recount(a) {
		t.Error("a file that grew is not there")
	}
	want(32, 20, 52)
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if d.recount(a) {
		t.Error("a file that went is there")
	}
	want(0, 20, 20)
	if diff := cmp.Diff([]string{b}, d.Files()); diff != "" {
		t.Error(diff)
	}
	if d.shares["acme"] != nil {
		t.Error("a tenant for whom nothing counts is not forgotten")
	}
	if got := d.filesOf("acme"); got != nil {
		t.Errorf("files of a tenant without any: %v", got)
	}
}

func TestAnUnclaimedFileIsNotCountedAgain(t *testing.T) {
	d, _ := diskOf()
	if there := d.recount(fileOf(t, t.TempDir(), "a", 1)); !there || d.Sum() != 0 {
		t.Errorf("there: %v, %d bytes count", there, d.Sum())
	}
}

func TestFilesOfAnEarlierProcessCountForNoTenant(t *testing.T) {
	dir := t.TempDir()
	a := fileOf(t, dir, "git/source/a", 4)
	fileOf(t, dir, "charts/b", 4)
	if err := os.Symlink(a, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	d, _ := diskOf()
	d.Find(dir)
	d.Find(filepath.Join(dir, "gone"))
	if d.Sum() != 16*limit.KiB || d.Used("") != 16*limit.KiB {
		t.Errorf("%d bytes count, %d of them for no tenant", d.Sum(), d.Used(""))
	}
	d.Claim("acme", a)
	if d.Used("acme") != 8*limit.KiB || d.Used("") != 8*limit.KiB {
		t.Errorf("%d bytes count for the tenant, %d for none", d.Used("acme"), d.Used(""))
	}
}

func TestTheTenantWithMostIsFound(t *testing.T) {
	d, _ := diskOf()
	if got := d.most(); got != "" {
		t.Errorf("of none: %q, want none", got)
	}
	dir := t.TempDir()
	d.Find(filepath.Dir(fileOf(t, dir, "found/a", 100)))
	if got := d.most(); got != "" {
		t.Errorf("what counts for no tenant makes it %q, want none", got)
	}
	d.Claim("small", fileOf(t, dir, "b", 8))
	d.Claim("big", fileOf(t, dir, "c", 20))
	for range 20 { // Maps are walked in any order.
		if got := d.most(); got != "big" {
			t.Fatalf("got %q, want %q", got, "big")
		}
	}
	d.arrive("small", 30*limit.KiB)
	if got := d.most(); got != "small" {
		t.Errorf("what is on its way does not count: %q", got)
	}
}

func TestTheFoldersAboveAClaimedFileAreOwned(t *testing.T) {
	dir := t.TempDir()
	d, _ := diskOf()
	d.Find(filepath.Dir(filepath.Dir(fileOf(t, dir, "a/found/x", 1))))
	claimed := fileOf(t, dir, "a/claimed/x", 1)
	d.Claim("acme", claimed)
	got := d.owned()
	for path, want := range map[string]bool{claimed: true, filepath.Dir(claimed): true, filepath.Join(dir, "a"): true, filepath.Join(dir, "a/found"): false, filepath.Join(dir, "a/found/x"): false} {
		if got[path] != want {
			t.Errorf("%s: %v", path, got[path])
		}
	}
}

// download is a body that reports each call of Close by an error.
type download struct {
	io.Reader
	closed error
}

func (d *download) Close() error { return d.closed }

func TestADownloadCountsUntilItIsClosed(t *testing.T) {
	d, _ := diskOf()
	d.Limits.Bytes = 10
	closed := errors.New("it is closed")
	body := d.Meter(t.Context(), "acme", &download{strings.NewReader("0123456789a"), closed})
	piece := make([]byte, 10)
	if n, err := body.Read(piece); n != 10 || err != nil || d.Used("acme") != 10 {
		t.Errorf("what meets the limit: %d, %v, %d bytes count", n, err, d.Used("acme"))
	}
	n, err := body.Read(piece)
	sources.WantError(t, err, failure.ErrTooLarge, "the sources of tenant acme take 11 bytes on the operator's disk together, and the limit is 10 bytes")
	var exceeded *budget.Exceeded
	if n != 0 || !errors.As(err, &exceeded) || exceeded.Field.Name != budget.SourceBytes.Name {
		t.Errorf("got %d bytes beside %v", n, err)
	}
	for range 2 {
		if err := body.Close(); !errors.Is(err, closed) || d.Used("acme") != 0 || d.Sum() != 0 {
			t.Errorf("after it was closed %d bytes count, of all %d; %v", d.Used("acme"), d.Sum(), err)
		}
	}
	if len(d.shares) != 0 {
		t.Error("the tenant is not forgotten")
	}
}

func TestDownloadsForNoTenantAreNotMetered(t *testing.T) {
	d, _ := diskOf()
	d.Limits.Bytes, d.Limits.Total = 1, 1
	for name, of := range map[string]func(io.ReadCloser) io.ReadCloser{
		"no disk":   func(r io.ReadCloser) io.ReadCloser { return (*Disk)(nil).Meter(t.Context(), "acme", r) },
		"no tenant": func(r io.ReadCloser) io.ReadCloser { return d.Meter(t.Context(), "", r) },
	} {
		if text, err := io.ReadAll(of(io.NopCloser(strings.NewReader("text")))); string(text) != "text" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	(*Disk)(nil).Claim("acme", "a")
}

func TestATenantBeyondItsLimitsIsRefused(t *testing.T) {
	const refusedFiles = "the sources of tenant acme are as many files on disk as the limit of 2: remove what is not needed"
	for name, tc := range map[string]struct {
		files  []int
		limits Limits
		of     func(string) int64
		kind   error
		says   string
	}{
		"bytes, met":          {[]int{4, 8}, Limits{Bytes: 20 * limit.KiB, Files: 9, Total: limit.GiB}, nil, nil, ""},
		"bytes, over":         {[]int{4, 8}, Limits{Bytes: 20*limit.KiB - 1, Files: 9, Total: limit.GiB}, nil, failure.ErrTooLarge, "take 20 KiB on the operator's disk together, and the limit is 20479 bytes"},
		"files, fewer":        {[]int{4}, Limits{Bytes: limit.MiB, Files: 2, Total: limit.GiB}, nil, nil, ""},
		"files, as many":      {[]int{4, 4}, Limits{Bytes: limit.MiB, Files: 2, Total: limit.GiB}, nil, failure.ErrTooLarge, refusedFiles},
		"its own limit, more": {[]int{4, 8}, Limits{Bytes: 1, Files: 9, Total: limit.GiB}, func(string) int64 { return 20 * limit.KiB }, nil, ""},
		"its own limit, less": {[]int{4}, Limits{Bytes: limit.MiB, Files: 9, Total: limit.GiB}, func(string) int64 { return 4 * limit.KiB }, failure.ErrTooLarge, "and the limit is 4 KiB"},
		"of all, met":         {[]int{4}, Limits{Bytes: limit.MiB, Files: 9, Total: 8 * limit.KiB}, nil, nil, ""},
		"of all, over":        {[]int{4}, Limits{Bytes: limit.MiB, Files: 9, Total: 8*limit.KiB - 1}, nil, Err, "the sources of all tenants take more disk together than the limit of 8191 bytes: nothing more is fetched for tenant acme"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := diskOf()
			d.Limits, d.LimitOf = tc.limits, tc.of
			dir := t.TempDir()
			for i, kib := range tc.files {
				d.Claim("acme", fileOf(t, dir, fmt.Sprint(i), kib))
			}
			err := d.Check(t.Context(), "acme")
			sources.WantError(t, err, tc.kind, tc.says)
			if tc.kind == nil && err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAFullDiskRefusesThoseWithMoreThanAnEvenShare, and everyone once a sixth more is there.
func TestAFullDiskRefusesThoseWithMoreThanAnEvenShare(t *testing.T) {
	d, _ := diskOf()
	dir := t.TempDir()
	d.Claim("big", fileOf(t, dir, "a", 56))
	d.Claim("small", fileOf(t, dir, "b", 4))
	d.Limits.Total = 68 * limit.KiB
	if err := d.Check(t.Context(), "big"); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	d.Limits.Total = 60 * limit.KiB // 68 KiB are there, and an even share is 30 KiB.
	sources.WantError(t, d.Check(t.Context(), "big"), Err, "nothing more is fetched for tenant big")
	for _, tenant := range []string{"small", "new"} {
		if err := d.Check(t.Context(), tenant); err != nil {
			t.Errorf("%s: %v", tenant, err)
		}
	}
	d.arrive("small", 2*limit.KiB) // 70 KiB: a sixth more.
	if err := d.Check(t.Context(), "new"); err != nil {
		t.Errorf("at a sixth more: %v", err)
	}
	d.arrive("small", 1)
	sources.WantError(t, d.Check(t.Context(), "new"), Err, "nothing more is fetched for tenant new until others need less")
}

func TestUnusedFilesOfATenantAreDeletedWhenItNeedsTheSpace(t *testing.T) {
	store := &single{}
	d, later := diskOf(store)
	d.Limits.Bytes = 10 * limit.KiB
	dir := t.TempDir()
	mine, others := fileOf(t, dir, "mine", 4), fileOf(t, dir, "others", 4)
	d.Claim("acme", mine, fileOf(t, dir, "more", 4))
	d.Claim("other", others)
	sources.WantError(t, d.Check(t.Context(), "acme"), failure.ErrTooLarge, "10 KiB")
	if len(store.cleared) != 2 || slices.Contains(store.cleared, "others 1h0m0s") {
		t.Errorf("looked at %v", store.cleared)
	}
	later(clearEvery - 1)
	sources.WantError(t, d.Check(t.Context(), "acme"), failure.ErrTooLarge, "10 KiB")
	if len(store.cleared) != 2 {
		t.Errorf("it looks again at once: %v", store.cleared)
	}
	later(1)
	_ = d.Check(t.Context(), "acme")
	if len(store.cleared) != 4 {
		t.Errorf("it does not look again after %s: %v", clearEvery, store.cleared)
	}
	if err := d.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = d.Check(t.Context(), "acme")
	if len(store.cleared) != 6 {
		t.Errorf("it does not look again after a sweep: %v", store.cleared)
	}
	later(IdleFor)
	if err := d.Check(t.Context(), "acme"); err != nil {
		t.Errorf("what it did not use made no room: %v", err)
	}
	if _, err := os.Stat(others); err != nil {
		t.Errorf("what counts for another tenant went: %v", err)
	}
	if d.Used("acme") != 0 {
		t.Errorf("%d bytes count of what went", d.Used("acme"))
	}
}

// TestAFileThatWentMakesRoomAtOnce: somebody else deleted it, so no store is asked to.
func TestAFileThatWentMakesRoomAtOnce(t *testing.T) {
	store := &single{}
	d, _ := diskOf(store)
	d.Limits.Bytes = 10 * limit.KiB
	dir := t.TempDir()
	gone := fileOf(t, dir, "gone", 4)
	d.Claim("acme", gone, fileOf(t, dir, "left", 4))
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"left 1h0m0s"}, store.cleared); diff != "" {
		t.Errorf("cleared: %s", diff)
	}
}

func TestAFullDiskLosesUnownedFilesAndThoseOfTheLargestTenant(t *testing.T) {
	store := &single{}
	d, later := diskOf(store)
	dir := t.TempDir()
	d.Find(filepath.Dir(fileOf(t, dir, "found/found", 4)))
	d.Claim("big", fileOf(t, dir, "big", 40))
	d.Claim("small", fileOf(t, dir, "small", 4))
	d.Limits.Total = 10 * limit.KiB
	later(IdleFor + time.Minute)
	if err := d.Check(t.Context(), "small"); err != nil {
		t.Errorf("got %v", err)
	}
	slices.Sort(store.cleared)
	if diff := cmp.Diff([]string{"big 1h0m0s", "found 1h0m0s"}, store.cleared); diff != "" {
		t.Errorf("cleared: %s", diff)
	}
	if d.Sum() != 8*limit.KiB {
		t.Errorf("%d bytes are left, want %d", d.Sum(), 8*limit.KiB)
	}
}

func TestASweepKeepsFilesUsedSinceTheStartLongest(t *testing.T) {
	dir := t.TempDir()
	claimed, found := fileOf(t, dir, "claimed", 4), fileOf(t, dir, "found", 4)
	broken := errors.New("it cannot be removed")
	store := &single{kept: []string{claimed, found}, err: broken, keptErr: errors.New("it cannot be listed")}
	d, later := diskOf(store)
	d.Find(dir)
	d.Claim("acme", claimed)
	for _, tc := range []struct {
		after time.Duration
		want  []string
	}{
		{IdleFor - 1, []string{"claimed 168h0m0s", "found 168h0m0s"}},
		{1, []string{"claimed 168h0m0s", "found 1h0m0s"}},
	} {
		store.cleared = nil
		later(tc.after)
		err := d.Sweep(t.Context())
		if diff := cmp.Diff(tc.want, store.cleared); diff != "" || !errors.Is(err, broken) || !errors.Is(err, store.keptErr) {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	if store.tidied != 2 {
		t.Errorf("tidied %d times, want 2", store.tidied)
	}
	if err := os.Remove(claimed); err != nil {
		t.Fatal(err)
	}
	_ = d.Sweep(t.Context())
	if d.Used("acme") != 0 {
		t.Error("what went still counts after a sweep")
	}
}

func TestChargesMayBeCountedAtTheSameTime(t *testing.T) {
	d, _ := diskOf()
	dir := t.TempDir()
	var all sync.WaitGroup
	for n := range 8 {
		path := fileOf(t, dir, fmt.Sprint(n), 4)
		all.Go(func() {
			for i := range 50 {
				d.Claim(fmt.Sprint("tenant", (n+i)%3), path)
				_ = d.Check(t.Context(), "tenant1")
			}
			d.Claim("last", path)
		})
	}
	all.Wait()
	if d.Used("last") != 64*limit.KiB || d.Sum() != 64*limit.KiB || len(d.shares) != 1 {
		t.Errorf("%d bytes count for the last, %d for all, of %d tenants", d.Used("last"), d.Sum(), len(d.shares))
	}
}

// TestFilesAreClaimedDuringASweep: the sweep looks at who owns what while downloads end. Go ends a process that changes a map under a reader.
func TestFilesAreClaimedDuringASweep(t *testing.T) {
	d, _ := diskOf()
	dir := t.TempDir()
	var paths []string
	for n := range 50 {
		paths = append(paths, fileOf(t, dir, fmt.Sprint(n, "/x"), 1))
		d.Claim("acme", paths[n])
	}
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(ended)
		for i := range 200 {
			for _, path := range paths {
				d.Claim(fmt.Sprint("tenant", i%2), path)
			}
		}
	})
	sweeps := 0
	for going := true; going; sweeps++ {
		select {
		case <-ended:
			going = false
		default:
		}
		if owned := d.owned(); !owned[paths[0]] && going {
			t.Error("a file that a tenant claims again counts as unused meanwhile")
		}
	}
	all.Wait()
	if owned := d.owned(); len(owned) < 2*len(paths) || sweeps < 2 {
		t.Errorf("%d files and folders are owned after %d looks", len(owned), sweeps)
	}
}
