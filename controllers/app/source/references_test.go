package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/references"
)

func TestReferencesOfAHelmSourceAreItsSecretsAndValues(t *testing.T) {
	ref := func(name string) *v1alpha1.LocalSecretReference { return &v1alpha1.LocalSecretReference{Name: name} }
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}
	app.Spec.Helm = &v1alpha1.HelmSource{
		SecretRef: ref("registry"), Git: &v1alpha1.ChartGitSource{SecretRef: ref("git")},
		ValuesFrom: []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "values"}, {Kind: "Secret", Name: "passwords", Optional: true}},
	}
	want := []references.Object{{Namespace: "a", Kind: "Secret", Name: "registry"}, {Namespace: "a", Kind: "Secret", Name: "git"}, {Namespace: "a", Kind: "ConfigMap", Name: "values"}, {Namespace: "a", Kind: "Secret", Name: "passwords"}}
	if diff := cmp.Diff(want, referencesOf(app)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReferencesOfAGitSourceAreItsSecrets(t *testing.T) {
	ref := func(name string) *v1alpha1.LocalSecretReference { return &v1alpha1.LocalSecretReference{Name: name} }
	for name, c := range map[string]struct {
		spec v1alpha1.GitSource
		want []references.Object
	}{
		"a repository": {v1alpha1.GitSource{SecretRef: ref("git"), Verify: &v1alpha1.GitVerification{SecretRef: *ref("people")}},
			[]references.Object{{Namespace: "a", Kind: "Secret", Name: "git"}, {Namespace: "a", Kind: "Secret", Name: "people"}}},
		"an artifact":    {v1alpha1.GitSource{OCI: &v1alpha1.OCISource{SecretRef: ref("registry")}}, []references.Object{{Namespace: "a", Kind: "Secret", Name: "registry"}}},
		"one of Flux":    {v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{Kind: "Bucket", Name: "web"}}, []references.Object{{Namespace: "a", Kind: "Bucket", Name: "web"}}},
		"a public one":   {v1alpha1.GitSource{}, nil},
		"the tenant key": {v1alpha1.GitSource{Build: v1alpha1.Build{Decryption: &v1alpha1.Decryption{Provider: "sops"}}}, nil},
	} {
		app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}, Spec: v1alpha1.AppSpec{Git: &c.spec}}
		if diff := cmp.Diff(c.want, referencesOf(app)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReferencesOfABuildAreItsKeysAndVariables(t *testing.T) {
	keys := &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.LocalSecretReference{Name: "keys"}}
	git, raw := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	git.Spec.Git = &v1alpha1.GitSource{Build: v1alpha1.Build{Decryption: keys, SubstituteFrom: []v1alpha1.SubstituteReference{{Kind: "ConfigMap", Name: "words"}}}}
	raw.Spec.Raw = &v1alpha1.RawSource{Decryption: keys}
	if diff := cmp.Diff([]references.Object{{Namespace: "a", Kind: "ConfigMap", Name: "words"}, {Namespace: "a", Kind: "Secret", Name: "keys"}}, referencesOf(git)); diff != "" {
		t.Errorf("git (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]references.Object{{Namespace: "a", Kind: "Secret", Name: "keys"}}, referencesOf(raw)); diff != "" {
		t.Errorf("raw (-want +got):\n%s", diff)
	}
}

// TestALocalAppReadsNothingFromElsewhere: without a change of the app, nothing has to be read again.
func TestALocalAppReadsNothingFromElsewhere(t *testing.T) {
	keys := &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.LocalSecretReference{Name: "keys"}}
	for name, tc := range map[string]struct {
		spec  v1alpha1.AppSpec
		local bool
	}{
		"manifests":              {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}, true},
		"encrypted manifests":    {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Decryption: keys}}, false},
		"a chart in the folder":  {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Path: "chart"}}, true},
		"with values elsewhere":  {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Path: "chart", ValuesFrom: []v1alpha1.ValuesReference{{Kind: "Secret", Name: "a"}}}}, false},
		"a chart of a registry":  {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Repository: "oci://a"}}, false},
		"a chart in Git":         {v1alpha1.AppSpec{Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{}}}, false},
		"an image":               {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Reference: "web:1"}}, true},
		"an image by a policy":   {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Policy: &v1alpha1.ImagePolicy{}}}, false},
		"a repository elsewhere": {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{}}, false},
	} {
		if got := Local(&v1alpha1.App{Spec: tc.spec}); got != tc.local {
			t.Errorf("%s: got %t, want %t", name, got, tc.local)
		}
	}
}
