package git

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestTheMessagesOfTheLastCommitsAreReadUpToALimit, or up to a commit, from a server that leaves out their files and from one that does
// not.
func TestTheMessagesOfTheLastCommitsAreReadUpToALimit(t *testing.T) {
	for name, filter := range map[string]string{"with files": "false", "without files": "true"} {
		t.Run(name, func(t *testing.T) {
			repo := pushable(t)
			repo.Run(filepath.Join(repo.Root, repo.Name), "config", "uploadpack.allowFilter", filter)
			first := repo.Git("rev-parse", "HEAD")
			repo.Write("c", "c")
			second := repo.Push("second\n\nIts body.")
			repo.Git("switch", "--quiet", "--create", "side", first)
			repo.Write("d", "d")
			side := repo.Push("side")
			repo.Git("switch", "--quiet", "main")
			repo.Git("merge", "--quiet", "--no-ff", "--message", "merge", "side")
			repo.PushAll()
			store, src := NewStore(t.TempDir(), loopback), Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()}
			merge := fetchOK(t, store, src)
			all := map[string]string{first: "first", second: "second\n\nIts body.", side: "side", merge.Hash: "merge"}
			for name, tc := range map[string]struct {
				since string
				most  int
				want  []string
			}{
				"all":          {"", 10, []string{merge.Hash, second, side, first}},
				"the newest":   {"", 1, []string{merge.Hash}},
				"up to one":    {first, 10, []string{merge.Hash, second, side}},
				"after a side": {side, 10, []string{merge.Hash, second}},
			} {
				got, err := store.Messages(t.Context(), src, merge, tc.since, tc.most)
				want := map[string]string{}
				for _, hash := range tc.want {
					want[hash] = all[hash] + "\n"
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
				}
			}
			repo.Write("e", "e")
			repo.Push("newer")
			_, err := store.Messages(t.Context(), src, merge, "", 10)
			sources.WantError(t, err, ErrMoved, "the ref moved on to")
			if left, err := filepath.Glob(filepath.Join(store.dir, "*", "tmp-*")); len(left) > 0 || err != nil {
				t.Errorf("it leaves %q, %v", left, err)
			}
		})
	}
}

// TestAHistoryThatIsTooLarge is an error, and one of fewer commits is not.
func TestAHistoryThatIsTooLarge(t *testing.T) {
	repo := pushable(t)
	repo.Write("large", noiseLines(4_000))
	repo.Push("large")
	repo.Git("rm", "--quiet", "large")
	repo.Push("small\n\n" + strings.Repeat("x", 100))
	store, src := NewStore(t.TempDir(), loopback), Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()}
	store.limits.history = 10 * limit.KiB
	newest := fetchOK(t, store, src)
	_, err := store.Messages(t.Context(), src, newest, "", 10)
	sources.WantError(t, err, failure.ErrTooLarge, "reading the last commits of http://127.0.0.1")
	if got, err := store.Messages(t.Context(), src, newest, "", 1); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
}
