package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestFinalizersAreRemovedFromEveryKindThatHasThem: a CustomResourceDefinition hangs in its deletion while one of its objects has a finalizer. The
// kinds that are reconciled have one, and conditions.
func TestFinalizersAreRemovedFromEveryKindThatHasThem(t *testing.T) {
	files, err := filepath.Glob("../charts/kubeop/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		if _, reconciled := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]; reconciled {
			want = append(want, crd.Spec.Names.Plural)
		}
	}
	slices.Sort(want)
	loops := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, loop := range regexp.MustCompile(`(?m)^for kind in (.*); do$`).FindAllStringSubmatch(string(text), -1) {
			loops++
			got := strings.Fields(loop[1])
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", page, diff)
			}
		}
	}
	if loops != 2 || len(want) < 5 {
		t.Errorf("found %d loops and the kinds %v", loops, want)
	}
}
