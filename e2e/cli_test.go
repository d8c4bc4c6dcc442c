//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// TestTheCommandsOfTheCLIPageRun runs the commands of docs/cli.md, in the shell that `make run` sets up, as an owner of the tenant and as an administrator.
func TestTheCommandsOfTheCLIPageRun(t *testing.T) {
	blocks, err := stage.Commands("../docs/cli.md")
	must(t, err)
	env, err := platform.Env(samples)
	must(t, err)
	until(t, "web is ready", func(ctx context.Context) error { return platform.Ready(ctx, &v1alpha1.App{}, shop, "web") })
	for name, user := range map[string]string{"administrator": "", "owner": " --as lead@acme.example"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			said := map[string]string{}
			for _, block := range blocks {
				text := block.Text
				if user != "" { // Each line is one command.
					text = "kubeop() { command kubeop \"$@\"" + user + "; }\n" + text
				}
				out, err := platform.Shell(t.Context(), dir, text, env...)
				if err != nil {
					t.Fatalf("%s: %v", block.Heading, err)
				}
				said[block.Heading] += out
			}
			for heading, wants := range map[string][]string{
				"Names":                     {"App acme/shop/web", "Declared in  projects/shop/apps/web/app.yaml", "\nSteps\n"},
				"See what is there":         {"acme/shop/web", "kind: Project", "Repository acme", "└─ Service web", "Pod web-", "Succeeded", "App          acme/shop/web"},
				"Request something":         {"The repository acme was reconciled and is ready.", "The app acme/shop/web continues.", "holds nothing that waits for a confirmation"},
				"Begin a repository":        {"Wrote projects/shop/apps/web/app.yaml.", "No problems in ", "origin/main", "The app acme/shop/web is ready"},
				"See what a commit changes": {"Plan: no changes", "~ App kubeop-acme-shop/web", "~ Deployment/web", "good evening", "Plan: 2 to update", "Plan: 1 to update"},
				"Check before a push":       {"No problems in ", "projects/shop/apps/web/app.yaml:", "spec.typo"},
			} {
				for _, want := range wants {
					if !strings.Contains(said[heading], want) {
						t.Errorf("the commands below %q do not print %q:\n%s", heading, want, said[heading])
					}
				}
			}
		})
	}
	// The page has committed to the repository.
	_, err = samples.Acme.Git(t.Context(), "pull", "--quiet", "--rebase")
	must(t, err)
}
