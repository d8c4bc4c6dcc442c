package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/references"
)

func TestReferencesOf(t *testing.T) {
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

func TestReferencesOfABuild(t *testing.T) {
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
