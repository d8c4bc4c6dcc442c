package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
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
	keys, err := decrypt.ReadKeys("keys", map[string][]byte{"x.agekey": []byte(testkeys.Age(testkeys.First))})
	if err != nil {
		t.Fatal(err)
	}
	files := decrypt.Open(nil, keys)
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

func TestReferencesOfABuild(t *testing.T) {
	keys := &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.LocalSecretReference{Name: "keys"}}
	git, raw := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	git.Spec.Git = &v1alpha1.GitSource{Build: v1alpha1.Build{Decryption: keys, SubstituteFrom: []v1alpha1.SubstituteReference{{Kind: "ConfigMap", Name: "words"}}}}
	raw.Spec.Raw = &v1alpha1.RawSource{Decryption: keys}
	if diff := cmp.Diff([]reference{{"a", "ConfigMap", "words"}, {"a", "Secret", "keys"}}, referencesOf(git), cmp.AllowUnexported(reference{})); diff != "" {
		t.Errorf("git (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]reference{{"a", "Secret", "keys"}}, referencesOf(raw), cmp.AllowUnexported(reference{})); diff != "" {
		t.Errorf("raw (-want +got):\n%s", diff)
	}
}

func TestWhatAFailedBuildIsCalled(t *testing.T) {
	about := func(err error) error { return fmt.Errorf("a.yaml: %w", err) }
	tests := map[string]struct {
		err  error
		want error
	}{
		"what ended the step":        {step.Soon(time.Second), step.Soon(time.Second)},
		"no Secret with keys yet":    {about(errNoKeys), step.Fail(v1alpha1.DecryptionFailedReason, about(errNoKeys))},
		"a missing variable object":  {about(render.ErrMissing), step.Fail(v1alpha1.ValuesFailedReason, about(render.ErrMissing))},
		"the API server's fault":     {about(errReading), step.Fail(v1alpha1.ValuesFailedReason, about(errReading))},
		"the wrong keys":             {about(decrypt.ErrKeys), step.Stop(v1alpha1.DecryptionFailedReason, about(decrypt.ErrKeys))},
		"a damaged file":             {about(decrypt.ErrDamaged), step.Stop(v1alpha1.DecryptionFailedReason, about(decrypt.ErrDamaged))},
		"a limit":                    {about(render.ErrTooLarge), step.Stop(v1alpha1.RenderFailedReason, about(render.ErrTooLarge))},
		"a build that took too long": {about(render.ErrTimeout), step.Stop(v1alpha1.RenderFailedReason, about(render.ErrTimeout))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := renderOutcome(tc.err); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v, want %#v", got, tc.want)
			}
		})
	}
}
