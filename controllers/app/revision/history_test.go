package revision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
)

// TestHistoryFollowsStorage: it has what Helm keeps, with the status that Helm has.
func TestHistoryFollowsStorage(t *testing.T) {
	recorded := []v1alpha1.ReleaseSnapshot{{Revision: 3, Status: "deployed", Chart: "web"}, {Revision: 2, Status: "superseded"}, {Revision: 1, Status: "superseded"}}
	made := []v1alpha1.ReleaseSnapshot{{Revision: 4, Status: "deployed", Chart: "web"}, {Revision: 9, Status: "failed"}}
	want := []v1alpha1.ReleaseSnapshot{{Revision: 4, Status: "deployed", Chart: "web"}, {Revision: 3, Status: "superseded", Chart: "web"}, {Revision: 2, Status: "superseded"}}
	if diff := cmp.Diff(want, History(recorded, made, map[int]string{4: "deployed", 3: "superseded", 2: "superseded", 5: "failed"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlainDigestsOfAHistoryAreSealed(t *testing.T) {
	recorded := []v1alpha1.ReleaseSnapshot{{Revision: 1, Digest: "sha256:1", ValuesDigest: "sha256:2"}}
	seal := digest.Seal(func(plain string) string { return "f" + plain })
	want := []v1alpha1.ReleaseSnapshot{{Revision: 1, Digest: seal.Of("sha256:1"), ValuesDigest: seal.Of("sha256:2")}}
	if diff := cmp.Diff(want, Sealed(recorded, seal)); diff != "" || want[0].Digest == "sha256:1" || recorded[0].Digest != "sha256:1" {
		t.Errorf("recorded are %+v (-want +got):\n%s", recorded, diff)
	}
}
