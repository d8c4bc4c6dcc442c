package definitions

import (
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/charts"
	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { testenv.Main(m, &env) }

const file = "kubeop/crds/paas.kubeop.io_projects.yaml"

// TestTheNewestDefinitionsReplaceEarlierOnes: Helm installed an earlier version, kubectl applied another one later, and people use the kind.
func TestTheNewestDefinitionsReplaceEarlierOnes(t *testing.T) {
	c, err := client.New(env.Config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	text, err := charts.CRDs.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const name = "projects.example.com"
	text = []byte(strings.ReplaceAll(string(text), "paas.kubeop.io", "example.com"))
	definition := func(old, fromHelm bool) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, u); err != nil {
			t.Fatal(err)
		}
		u.SetName(name)
		if old {
			field := map[string]any{"type": "string", "default": "old"}
			if fromHelm {
				field = map[string]any{"type": "string"}
			}
			spec := schema(t, u)["spec"].(map[string]any)["properties"].(map[string]any)
			spec["interval"].(map[string]any)["default"] = "17m"
			spec["gone"] = field
		}
		return u
	}
	first := definition(true, true)
	first.SetAnnotations(map[string]string{"team": "platform"})
	if err := c.Create(t.Context(), first, client.FieldOwner("helm")); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(definition(true, false)), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"crds/projects.yaml": &fstest.MapFile{Data: text}}
	live := definition(false, false)
	for _, time := range []string{"first", "second"} {
		if err := Apply(t.Context(), c, files, "crds/*.yaml"); err != nil {
			t.Fatalf("%s time: %v", time, err)
		}
		version := live.GetResourceVersion()
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, live); err != nil {
			t.Fatal(err)
		}
		if time == "second" && live.GetResourceVersion() != version {
			t.Error("the second time wrote the definition again")
		}
	}
	spec := schema(t, live)["spec"].(map[string]any)["properties"].(map[string]any)
	if _, there := spec["gone"]; there || spec["interval"].(map[string]any)["default"] != "10m" {
		t.Errorf("fields of the earlier version are still there: gone %v, interval %v", spec["gone"], spec["interval"])
	}
	if live.GetAnnotations()["team"] != "platform" {
		t.Errorf("annotations of others are gone: %v", live.GetAnnotations())
	}
	if !established(live) {
		t.Error("Apply did not wait until the kind is served")
	}
}

// schema returns the properties of the kind.
func schema(t *testing.T, definition *unstructured.Unstructured) map[string]any {
	t.Helper()
	versions, found, err := unstructured.NestedFieldNoCopy(definition.Object, "spec", "versions")
	if err != nil || !found {
		t.Fatal("the definition has no versions", err)
	}
	return versions.([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
}

func TestWithoutFilesNothingIsClaimed(t *testing.T) {
	err := Apply(t.Context(), nil, fstest.MapFS{}, "crds/*.yaml")
	if want := "finding the CustomResourceDefinitions: no file is called crds/*.yaml"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
