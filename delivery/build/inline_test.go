package build

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/internal/testkeys"
)

// inlineManifest is a manifest that SOPS encrypted, as the API server keeps it: with its keys sorted.
func inlineManifest(t *testing.T, name string) []runtime.RawExtension {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return []runtime.RawExtension{{Raw: []byte(`{"kind":"ConfigMap"}`)}, {Raw: sorted}}
}

func TestInlineManifestsAreDecrypted(t *testing.T) {
	decrypter, err := opened(keys(testkeys.First))
	if err != nil {
		t.Fatal(err)
	}
	files := decrypt.Open(nil, decrypter)
	manifests := inlineManifest(t, "sorted.json")
	if err := decryptInline(files, manifests); err != nil {
		t.Fatal(err)
	}
	var secret map[string]any
	if err := json.Unmarshal(manifests[1].Raw, &secret); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": "hunter22-inline", "z": "another"}
	if diff := cmp.Diff(want, secret["stringData"]); diff != "" || secret["sops"] != nil || string(manifests[0].Raw) != `{"kind":"ConfigMap"}` {
		t.Errorf("-want +got:\n%s%s", diff, manifests)
	}
	if diff := cmp.Diff([]string{"hunter22-inline", "another"}, files.Secrets()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}

	err = decryptInline(files, inlineManifest(t, "unsorted.json"))
	for _, want := range []string{"spec.raw.manifests[1]: its MAC is not that of its values", "keys in alphabetical order"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	err = decryptInline(decrypt.Open(nil, nil), inlineManifest(t, "sorted.json"))
	if !errors.Is(err, decrypt.ErrKeys) || strings.Contains(err.Error(), "alphabetical") {
		t.Errorf("without keys: %v", err)
	}
}
