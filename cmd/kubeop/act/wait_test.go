package act

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestALaterCommitContainsAnEarlierOne as far as the clone knows.
func TestALaterCommitContainsAnEarlierOne(t *testing.T) {
	repo := sources.NewGitRepo(t)
	first := repo.Push("first")
	second := repo.Push("second")
	below := filepath.Join(repo.Work, "apps")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir, revision, commit string
		want                  bool
	}{
		"the commit itself":    {repo.Work, "main@sha1:" + first, first, true},
		"a later one":          {repo.Work, "main@sha1:" + second, first, true},
		"a later one, shorter": {repo.Work, "main@sha1:" + second, first[:8], true},
		"in a folder below":    {below, "main@sha1:" + second, first, true},
		"an earlier one":       {repo.Work, "main@sha1:" + first, second, false},
		"one that is unknown":  {repo.Work, "main@sha1:0123456789012345678901234567890123456789", first, false},
		"no commit yet":        {repo.Work, "", first, false},
		"outside of a clone":   {t.TempDir(), "main@sha1:" + second, first, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(tc.dir)
			if got := contains(t.Context(), tc.revision, tc.commit); got != tc.want {
				t.Errorf("contains: %t", got)
			}
		})
	}
}
