//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// TestTheCommandsOfTheOperationsPagesWork runs the commands of docs/operations as an administrator does: an upgrade that has to upgrade a definition, a backup, an
// uninstallation and another installation, and the removal of all of kubeop but what runs, followed by an installation on the cluster that is
// left. No pod restarts.
func TestTheCommandsOfTheOperationsPagesWork(t *testing.T) {
	n := newTeam(t, "steady")
	n.deliver("web", image("v1"), "still here")
	n.deliver("api", image("v1"), "here too")
	n.push("Ship")
	n.appReady("web")
	n.appReady("api")
	n.answers("web", "still here")
	registered(t)
	before := n.pods()
	o := newOffice(t)

	forgetAField(t)
	o.follow("upgrade", "Upgrading")
	if got := columns(t); !strings.Contains(got, "Hook closed") {
		t.Errorf("the upgrade did not upgrade the definition; its columns are %s", got)
	}
	o.follow("upgrade", "What happens", "Check it")
	n.unnoticed("after the upgrade", before)

	o.follow("backup", "What to back up")
	o.follow("uninstall", "Uninstalling")
	n.unnoticed("without kubeop", before)
	if may := kubectl(t, "auth", "can-i", "list", "pods", "-n", n.namespace(), "--as", n.name+"-viewer"); may != "yes" {
		t.Errorf("without kubeop a viewer may list pods: %s, want %q", may, "yes")
	}
	o.follow("uninstall", "Installing again")
	n.appReady("web")
	n.unnoticed("with kubeop again", before)

	o.follow("uninstall", "Removing kubeop and keeping what runs")
	n.unnoticed("without anything of kubeop", before)
	o.follow("install", "The credentials")
	o.follow("backup", "Restoring the Secrets") // Those of the tenants.
	o.follow("install", "The chart")
	n.ready(&v1alpha1.Tenant{}, "", n.name)
	n.appReady("web")
	n.unnoticed("after a new installation", before)
	n.deliver("web", image("v1"), "and moving on")
	n.push("Move on")
	n.answers("web", "and moving on")
}

// registered declares a Registry, so that there is an object of every kind with a finalizer.
func registered(t *testing.T) {
	t.Helper()
	const registry = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Registry\nmetadata: {name: steady}\n" +
		"spec: {host: registry.steady.example, secretRef: {name: steady-pull}, tenants: [steady]}\n"
	kubectl(t, "create", "secret", "docker-registry", "steady-pull", "-n", stage.Namespace, "--docker-server=registry.steady.example", "--docker-username=robot", "--docker-password=secret")
	must(t, samples.Platform.Write("registries/steady.yaml", []byte(registry)))
	must(t, samples.Platform.Push(t.Context(), "Give steady a registry"))
	until(t, "the Registry is ready", func(ctx context.Context) error {
		return platform.Ready(ctx, &v1alpha1.Registry{}, "", "steady")
	})
}

// office is where an administrator works: a folder with the chart and the settings, and the credentials.
type office struct {
	t   *testing.T
	dir string
	env []string
}

// newOffice has the settings of the installation that runs, and keeps the address of its push hook.
func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, dir: t.TempDir(), env: []string{
		"GIT_USER=" + samples.Platform.User, "GIT_PASSWORD=" + samples.Platform.Password, "HOOK_TOKEN=until-the-backup-is-applied",
	}}
	charts, err := filepath.Abs("../charts")
	must(t, err)
	must(t, os.Symlink(charts, filepath.Join(o.dir, "charts")))
	settings, err := platform.Helm(t.Context(), "get", "values", "kubeop", "-n", stage.Namespace, "-o", "yaml")
	must(t, err)
	address := kubectl(t, "get", "service", "kubeop", "-n", stage.Namespace, "-o", "jsonpath={.spec.clusterIP}")
	settings = strings.Replace(settings, `clusterIP: ""`, "clusterIP: "+address, 1)
	must(t, os.WriteFile(filepath.Join(o.dir, "kubeop-values.yaml"), []byte(settings+"\n"), 0o600))
	return o
}

// follow runs the commands of a page below the headings.
func (o *office) follow(page string, headings ...string) {
	o.t.Helper()
	blocks, err := stage.Commands(filepath.Join("..", "docs", "operations", page+".md"))
	must(o.t, err)
	for _, heading := range headings {
		found := false
		for _, block := range blocks {
			if block.Heading != heading {
				continue
			}
			found = true
			if _, err := platform.Shell(o.t.Context(), o.dir, block.Text, o.env...); err != nil {
				o.t.Fatalf("%s.md, %s: %v\nthe operator's log ends:\n%s", page, heading, err, platform.OperatorLog(context.WithoutCancel(o.t.Context())))
			}
		}
		if !found {
			o.t.Fatalf("%s.md has no commands below %q", page, heading)
		}
	}
}

const definition = "repositories.paas.kubeop.io"

// forgetAField makes a definition like that of an earlier version.
func forgetAField(t *testing.T) {
	t.Helper()
	crd := readDefinition(t)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	must(t, err)
	versions[0].(map[string]any)["additionalPrinterColumns"] = []any{}
	must(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	must(t, platform.Client.Update(t.Context(), crd))
}

// columns returns the printed columns of a definition.
func columns(t *testing.T) string {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(readDefinition(t).Object, "spec", "versions")
	must(t, err)
	return fmt.Sprint(versions[0].(map[string]any)["additionalPrinterColumns"])
}

func readDefinition(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	must(t, platform.Client.Get(t.Context(), client.ObjectKey{Name: definition}, crd))
	return crd
}
