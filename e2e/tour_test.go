//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/e2e/stage"
)

// TestTheTourWorks runs the commands of docs/tour.md, in the shell that `make run` sets up.
func TestTheTourWorks(t *testing.T) {
	dir := follow(t, "../docs/tour.md", map[string][]string{
		"Look around": {"acme"}, "Ship an app": {"main@sha1:"}, "Change it": {"Succeeded"}, "Make a mistake": {"projects/shop/apps/tour/app.yaml:"},
		"A second team": {"\nno\n"},
	})
	// What `make run` writes for a shell sets the same.
	file, err := platform.WriteEnv(samples)
	must(t, err)
	text, err := os.ReadFile(file)
	must(t, err)
	out, err := platform.Shell(t.Context(), dir, ". "+filepath.Clean(file)+` && git ls-remote "$GIT_URL/acme.git" && kubectl get tenants`)
	if err != nil || !strings.Contains(out, "refs/heads/main") || !strings.Contains(out, "acme") {
		t.Errorf("the shell of make run does not work: %v\n%s\n%s", err, out, text)
	}
}

// TestTheTutorialWorks runs a newcomer's first hour.
func TestTheTutorialWorks(t *testing.T) {
	follow(t, "../docs/tutorial.md", map[string][]string{
		"Get a repository":          {"Wrote tenants/gamma/tenant.yaml.", "No problems in "},
		"Begin":                     {"Wrote projects/shop/apps/web/app.yaml."},
		"Ship":                      {"Pod web-"},
		"See what a commit will do": {"~ Deployment/web", "good morning"},
		"Make a mistake in a file":  {"refused, exit code 1", "projects/shop/apps/web/app.yaml:", "spec.typo"},
		"Break the app":             {"not ready, exit code 3", "hello:v7", "The app gamma/shop/web is not ready since a delivery failed"},
		"Repair it":                 {"~ Deployment/web", "Succeeded", "Failed"},
		"Leave":                     {"tenant.paas.kubeop.io/gamma condition met"},
	})
}

// follow runs the commands of a page in a new folder, and checks for each heading what they print. It returns the folder.
func follow(t *testing.T, page string, wants map[string][]string) (dir string) {
	t.Helper()
	blocks, err := stage.Commands(page)
	must(t, err)
	env, err := platform.Env(samples)
	must(t, err)
	dir = t.TempDir()
	env = append(env, "TOUR="+dir, "TUTORIAL="+dir) // As the first commands of the pages do.
	t.Cleanup(func() {                              // The other stories push from these clones.
		for _, r := range []*stage.Repository{samples.Acme, samples.Platform} {
			if _, err := platform.Shell(context.WithoutCancel(t.Context()), r.Dir, "git pull -q --rebase origin main", env...); err != nil {
				t.Error(err)
			}
		}
	})
	said := map[string]string{}
	for _, block := range blocks {
		out, err := platform.Shell(t.Context(), dir, block.Text, env...)
		if err != nil {
			t.Fatalf("%s: %v\nthe operator's log ends:\n%s", block.Heading, err, platform.OperatorLog(context.WithoutCancel(t.Context())))
		}
		said[block.Heading] += out
	}
	for heading, texts := range wants {
		for _, want := range texts {
			if !strings.Contains(said[heading], want) {
				t.Errorf("the commands below %q do not print %q:\n%s", heading, want, said[heading])
			}
		}
	}
	return dir
}
