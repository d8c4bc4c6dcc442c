package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Snapshot returns the entry of the status for a revision.
func Snapshot(rel *helm.Release, labels map[string]string) v1alpha1.ReleaseSnapshot {
	snap := v1alpha1.ReleaseSnapshot{
		Revision:      rel.Version,
		Status:        rel.Info.Status.String(),
		ValuesDigest:  valuesDigest(rel.Config),
		FirstDeployed: metav1.NewTime(rel.Info.FirstDeployed.Time),
		LastDeployed:  metav1.NewTime(rel.Info.LastDeployed.Time),
		Test:          labels[TestLabel],
		Digest:        labels[ContentLabel],
	}
	if snap.Digest == "" {
		// A person's revision has no digest, and neither has content that cannot be digested.
		snap.Digest, _ = Content(rel)
	}
	if c := rel.Chart; c != nil && c.Metadata != nil {
		snap.Chart, snap.ChartVersion, snap.AppVersion = c.Metadata.Name, c.Metadata.Version, c.Metadata.AppVersion
	}
	return snap
}

// valuesDigest is the digest of the values as JSON, which sorts keys.
func valuesDigest(values map[string]any) string {
	if values == nil {
		values = map[string]any{}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	hash := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(hash[:])
}
