package app

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/build/scheduler"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
)

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
		"a killed process":           {about(build.ErrUnfit), step.Fail(v1alpha1.RenderFailedReason, about(build.ErrUnfit))},
		"a limit":                    {about(render.ErrTooLarge), step.Stop(v1alpha1.RenderFailedReason, about(render.ErrTooLarge))},
		"a build that took too long": {about(scheduler.ErrTimeout), step.Stop(v1alpha1.RenderFailedReason, about(scheduler.ErrTimeout))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := renderOutcome(tc.err); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v, want %#v", got, tc.want)
			}
		})
	}
}
