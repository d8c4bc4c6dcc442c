package app

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/jobs"
	"github.com/kubeop/kubeop/delivery/release"
)

// sealing stands for a key.
func sealing(digest string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte("key"+digest))) }

// TestAReleaseThatWasToldPlainlyIsKnown: what an earlier version recorded of a release is still its record, and is told sealed from now on.
func TestAReleaseThatWasToldPlainlyIsKnown(t *testing.T) {
	const content, values = "c0ffee", "sha256:beef"
	seal := digest.Seal(sealing)
	app := &v1alpha1.App{Spec: v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{ReleaseName: "web"}}}
	app.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Revision: 2, Deployed: 2, Content: content, Proven: true}
	app.Status.History = []v1alpha1.ReleaseSnapshot{{Revision: 2, Digest: content, ValuesDigest: values}, {Revision: 1, Digest: "cafe", ValuesDigest: values}}
	s := newScope(app, &memory{}, seal)
	if got := recordedRevision(s); got != (known{2, seal.Of(content)}) {
		t.Errorf("the recorded revision is %+v", got)
	}
	s.helm.outcome = &release.Outcome{
		Release: release.Info{Name: "web", Revision: 2, Status: "deployed"}, Deployed: 2, Content: seal.Of(content),
		Revisions: map[int]string{2: "deployed", 1: "superseded"},
	}
	s.helm.record(app)
	if !app.Status.Release.Proven || app.Status.Release.Content != seal.Of(content) {
		t.Errorf("the release is told as %+v", app.Status.Release)
	}
	want := []v1alpha1.ReleaseSnapshot{
		{Revision: 2, Status: "deployed", Digest: seal.Of(content), ValuesDigest: seal.Of(values)},
		{Revision: 1, Status: "superseded", Digest: seal.Of("cafe"), ValuesDigest: seal.Of(values)},
	}
	if diff := cmp.Diff(want, app.Status.History); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	s.helm.outcome.Content = seal.Of("another")
	if s.helm.record(app); app.Status.Release.Proven {
		t.Error("another revision of the same number is told to be proven")
	}
}

// TestHooksThatWereToldPlainlyDoNotRunAgain: what an earlier version told of a hook's run still holds for the same input.
func TestHooksThatWereToldPlainlyDoNotRunAgain(t *testing.T) {
	hook := v1alpha1.Hook{Name: "migrate", Image: "none.example/migrate"}
	app := &v1alpha1.App{}
	app.Spec.Type, app.Spec.Hooks.Pre = v1alpha1.AppRaw, []v1alpha1.Hook{hook}
	plain := func(s *scope) string {
		t.Helper()
		delivered, err := jobs.Digest(s.delivered())
		if err != nil {
			t.Fatal(err)
		}
		input, err := jobs.InputOf(delivered, jobs.Pre, &hook)
		if err != nil {
			t.Fatal(err)
		}
		return input
	}
	seal := digest.Seal(sealing)
	for name, again := range map[string]string{"once": "", "once more, by hand": ".12345678"} {
		s := newScope(app, &memory{}, seal)
		input := plain(s)
		ended := metav1.NewTime(time.Unix(1000, 0))
		app.Status.Hooks = []v1alpha1.HookStatus{{Phase: jobs.Pre, Name: "migrate", Input: input + again, Result: v1alpha1.HookSucceeded, FinishedAt: ended}}
		if err := planHooks(s); err != nil {
			t.Fatal(err)
		}
		if h := s.hooks[0]; h.told == nil || h.Input != seal.Short(input)+again {
			t.Errorf("%s: of the run for %s it is known %+v", name, h.Input, h.told)
		}
		s.recordHooks()
		want := []v1alpha1.HookStatus{{Phase: jobs.Pre, Name: "migrate", Input: seal.Short(input) + again, Result: v1alpha1.HookSucceeded, FinishedAt: ended}}
		if diff := cmp.Diff(want, app.Status.Hooks); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
