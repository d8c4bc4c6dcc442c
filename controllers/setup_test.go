package controllers

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runs matches code that adds something to a manager, creates a controller, or registers a metric.
var runs = regexp.MustCompile(`\b(mgr|manager|m)\.Add\(|\.AddReadyzCheck\(|\.AddHealthzCheck\(|\.AddMetricsServerExtraHandler\(|` +
	`\.NewControllerManagedBy\(|\bcontroller\.New(Typed|Unmanaged)?\(|\bmetrics\.Registry\b|ctrlmetrics\.Registry\b|\bpromauto\.`)

// TestAllRunnablesAreAddedByTheListOfParts reads the source: only the list of parts adds to the manager, and each
// controller is made by the package of its kind, which the list calls.
func TestAllRunnablesAreAddedByTheListOfParts(t *testing.T) {
	got := map[string]int{}
	root := os.DirFS("..")
	for _, dir := range []string{"api", "cmd", "controllers", "delivery", "gitops", "internal"} {
		err := fs.WalkDir(root, dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/testenv/") {
				return err
			}
			text, err := fs.ReadFile(root, name)
			if runs.Match(text) {
				if dir := path.Dir(name); dir != "controllers" && strings.HasPrefix(dir, "controllers/") {
					name = dir // Which of its files makes the controller is up to the package.
				}
				got[name]++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{
		"controllers/part.go": 1, "controllers/app": 1, "controllers/project": 1, "controllers/promotion": 1, "controllers/registry": 1, "controllers/report": 1, "controllers/repository": 1, "controllers/tenant": 1, "controllers/volumes": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files that start something (-want +got):\n%s", diff)
	}
}
