package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnObjectOfAnotherToolIsAnsweredWithWhatToWriteHere(t *testing.T) {
	for object, want := range map[string]string{
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n": "2: kind HelmRelease is of another tool; instead of it, kubeop has " +
			"spec.type Helm, with repository, chart, version and values in spec.helm",
		"apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: HelmRepository\n": "2: kind HelmRepository is of another tool; instead of it, kubeop has " +
			"the address as spec.helm.repository of each app that uses it",
		"kind: Application\napiVersion: argoproj.io/v1alpha1\n": "1: kind Application is of another tool; instead of it, kubeop has " +
			"spec.type Helm with spec.helm, or spec.type Git with spec.git",
		"apiVersion: apps/v1\nkind: Deployment\n": `2: kind is "Deployment"; at this path it must be "App"; manifests belong in a folder beside it, which an App of spec.type Raw names in spec.raw.path`,
	} {
		_, got := findings(t, anApp, object+"metadata: {name: web}\n", false)
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if _, got := findings(t, aProject, "apiVersion: apps/v1\nkind: Deployment\n", false); len(got) != 1 || got[0] != `2: kind is "Deployment"; at this path it must be "Project"` {
		t.Errorf("in the place of a project: %q", got)
	}
}
