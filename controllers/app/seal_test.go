package app

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/release"
)

// sealing stands for a key.
func sealing(digest string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte("key"+digest))) }

// TestAReleaseWithAnUnsealedDigestIsRecognized: the digest that an earlier version recorded still matches, and is written sealed from now on.
func TestAReleaseWithAnUnsealedDigestIsRecognized(t *testing.T) {
	const content, values = "c0ffee", "sha256:beef"
	seal := digest.Seal(sealing)
	app := &v1alpha1.App{Spec: v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{ReleaseName: "web"}}}
	app.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Revision: 2, Deployed: 2, Content: content, Proven: true}
	app.Status.History = []v1alpha1.ReleaseSnapshot{{Revision: 2, Digest: content, ValuesDigest: values}, {Revision: 1, Digest: "cafe", ValuesDigest: values}}
	r := &releaser{seal: seal}
	s := scopeOf(app, r)
	if got := s.recordedRevision(); got != (deployed{2, seal.Of(content)}) {
		t.Errorf("the recorded revision is %+v", got)
	}
	s.release.outcome = &release.Outcome{
		Release: release.Info{Name: "web", Revision: 2, Status: "deployed"}, Deployed: release.Deployed{Revision: 2, Content: seal.Of(content)},
		Records: release.Records{Statuses: map[int]string{2: "deployed", 1: "superseded"}},
	}
	s.release.record(app)
	if !app.Status.Release.Proven || app.Status.Release.Content != seal.Of(content) {
		t.Errorf("the release in the status is %+v", app.Status.Release)
	}
	want := []v1alpha1.ReleaseSnapshot{
		{Revision: 2, Status: "deployed", Digest: seal.Of(content), ValuesDigest: seal.Of(values)},
		{Revision: 1, Status: "superseded", Digest: seal.Of("cafe"), ValuesDigest: seal.Of(values)},
	}
	if diff := cmp.Diff(want, app.Status.History); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	s.release.outcome.Deployed.Content = seal.Of("another")
	if s.release.record(app); app.Status.Release.Proven {
		t.Error("another revision of the same number is taken for the recorded one")
	}
}
