package revision

import (
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
)

// Sealed returns a recorded history with sealed digests: an earlier version recorded plain ones.
func Sealed(recorded []v1alpha1.ReleaseSnapshot, seal digest.Seal) []v1alpha1.ReleaseSnapshot {
	sealed := slices.Clone(recorded)
	for i := range sealed {
		sealed[i].Digest, sealed[i].ValuesDigest = seal.Of(sealed[i].Digest), seal.Of(sealed[i].ValuesDigest)
	}
	return sealed
}

// History updates a recorded history to the revisions that Helm keeps, newest first. made are the revisions of the last actions, and statuses those that
// Helm keeps, with their status.
func History(recorded, made []v1alpha1.ReleaseSnapshot, statuses map[int]string) []v1alpha1.ReleaseSnapshot {
	known := map[int]v1alpha1.ReleaseSnapshot{}
	for _, snapshot := range slices.Concat(recorded, made) {
		known[snapshot.Revision] = snapshot
	}
	var history []v1alpha1.ReleaseSnapshot
	for revision, state := range statuses {
		if snapshot, ok := known[revision]; ok {
			snapshot.Status = state
			history = append(history, snapshot)
		}
	}
	slices.SortFunc(history, func(a, b v1alpha1.ReleaseSnapshot) int { return b.Revision - a.Revision })
	return history
}
