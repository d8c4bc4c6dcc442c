package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestAParameterHasTheTypeThatHelmGivesIt (helm, pkg/strvals, typedVal): a text "False" would be true in a template.
func TestAParameterHasTheTypeThatHelmGivesIt(t *testing.T) {
	for text, want := range map[string]any{
		"true": true, "True": true, "false": false, "FALSE": false, "null": nil, "Null": nil, "0": int64(0), "7": int64(7), "-7": int64(-7), "007": "007", "00": "00", "1.5": "1.5", "": "", "yes": "yes",
	} {
		if got := typed(text, false); got != want {
			t.Errorf("%q is %#v, want %#v", text, got, want)
		}
		if got := typed(text, true); got != text {
			t.Errorf("%q as a text is %#v", text, got)
		}
	}
}

// TestAppsOfAProjectHaveDifferentNames, none of which is too long.
func TestAppsOfAProjectHaveDifferentNames(t *testing.T) {
	long := strings.Repeat("a", 53)
	m := newMigration("acme")
	for _, c := range []struct{ project, name, want string }{
		{"shop", "web", "web"}, {"shop", "web", "web-2"}, {"shop", "web", "web-3"}, {"blog", "web", "web"}, {"shop", long, long}, {"shop", long, long[:51] + "-2"},
	} {
		got := m.free(c.project, c.name)
		if m.apps = append(m.apps, &app{project: c.project, name: got}); got != c.want {
			t.Errorf("%s of %s becomes %s, want %s", c.name, c.project, got, c.want)
		}
	}
}

// TestAnEntryOfAnInventoryNamesItsObject: the name may have colons, which Flux writes as two underscores.
func TestAnEntryOfAnInventoryNamesItsObject(t *testing.T) {
	m, by := newMigration("acme"), &object{Unstructured: named(kustomizeGroup, "v1", "Kustomization", "flux-system", "all")}
	child := &object{Unstructured: named(helmGroup, "v2", "HelmRelease", "shop", "web")}
	m.objects = []*object{by, child}
	for _, id := range []string{"_system__reader_rbac.authorization.k8s.io_ClusterRole", "shop_settings__ConfigMap", "shop_web_helm.toolkit.fluxcd.io_HelmRelease", "flux-system_all_kustomize.toolkit.fluxcd.io_Kustomization", "a_b_c"} {
		m.applied(by, id, "v1")
	}
	want := []*unstructured.Unstructured{named("rbac.authorization.k8s.io", "v1", "ClusterRole", "", "system:reader"), named("", "v1", "ConfigMap", "shop", "settings")}
	if diff := cmp.Diff(want, by.held); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if child.parent != by || by.parent != nil || len(by.children) != 2 || by.children[0].GroupVersionKind() != (schema.GroupVersionKind{Group: helmGroup, Version: "v1", Kind: "HelmRelease"}) {
		t.Errorf("the release is of %v, the Kustomization of %v, with %d children", child.parent, by.parent, len(by.children))
	}
}

// TestVariablesOfSecretsReachWhatIsBelow the Kustomization that takes them, however deep, but no text of a file.
func TestVariablesOfSecretsReachWhatIsBelow(t *testing.T) {
	taking := func(kind string) *object {
		o := named(kustomizeGroup, "v1", "Kustomization", "flux-system", "all")
		o.Object["spec"] = map[string]any{"postBuild": map[string]any{"substituteFrom": []any{map[string]any{"kind": kind, "name": "vars"}}}}
		return &object{Unstructured: o}
	}
	below := func(parent *object) *object {
		return &object{Unstructured: named(kustomizeGroup, "v1", "Kustomization", "flux-system", "below"), parent: parent}
	}
	loop := below(nil)
	loop.parent = loop
	for name, c := range map[string]struct {
		of   *object
		want bool
	}{
		"itself":                {taking("Secret"), false},
		"of a Secret":           {below(taking("Secret")), true},
		"of a Secret, deeper":   {below(below(taking("Secret"))), true},
		"of a ConfigMap":        {below(taking("ConfigMap")), false},
		"one that holds itself": {loop, false},
	} {
		if got := fromSecrets(c.of); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
