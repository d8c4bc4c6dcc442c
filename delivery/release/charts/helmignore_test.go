package charts

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/ignore"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// ignoring is a chart of many files, with patterns.
func ignoring(patterns string, files int, name string) map[string]string {
	chart := map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", ignore.HelmIgnore: patterns}
	for i := range files {
		chart[fmt.Sprintf("files/%s%d", name, i)] = "x"
	}
	return chart
}

// TestPatternsThatTakeTooMuchAreRefused before they are matched.
func TestPatternsThatTakeTooMuchAreRefused(t *testing.T) {
	stars := strings.Repeat(strings.Repeat("*a", 100)+"b\n", 300)
	name := strings.Repeat("a", 200)
	for title, test := range map[string]struct {
		chart map[string]string
		says  string
	}{
		"a large file":         {ignoring(strings.Repeat("a\n", 32<<10)+"b\n", 1, "a"), ".helmignore is larger than 64 KiB"},
		"patterns and files":   {ignoring(stars, 4000, name), "ignore folders as a whole"},
		"patterns on one file": {ignoring(stars, 1, name), ""},
		"usual ones":           {ignoring(strings.Repeat("*.swp\n", 60), 4000, "templates/some/folder/file"), ""},
	} {
		t.Run(title, func(t *testing.T) {
			began := time.Now()
			_, err := Chart{Files: sources.ChartFolder(test.chart)}.Read()
			t.Logf("it took %s", time.Since(began))
			if test.says == "" && err != nil || test.says != "" && (!errors.Is(err, fault.ErrTooLarge) || !errors.Is(err, fault.ErrRender) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}
