package policy

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMessagesAboutVolumesSayWhatIsWrong, on one line. What the API server itself refuses is only here, the other cases are in testdata.
func TestMessagesAboutVolumesSayWhatIsWrong(t *testing.T) {
	const typed = "Pod/web has the volume v of type %s, which is mounted past claims and their quotas; use a PersistentVolumeClaim in Git"
	for volume, want := range map[string]string{
		"hostPath: {path: /}":                                        "", // Pod Security refuses it, in its own words.
		"nfs: {server: 10.0.0.1, path: /}":                           fmt.Sprintf(typed, "nfs"),
		"somethingNew: {}":                                           fmt.Sprintf(typed, "somethingNew"),
		"csi: {driver: nfs.csi.k8s.io}":                              "Pod/web has the volume v of the CSI driver nfs.csi.k8s.io, which is mounted past claims and their quotas: use a PersistentVolumeClaim in Git, or ask",
		`csi: {driver: "a\nb"}`:                                      "Pod/web has the volume v of the CSI driver a b, which",
		"nfs: {}}, {name: w, iscsi: {}":                              fmt.Sprintf(typed, "nfs"),
		"nfs: {}}, {name: w, csi: {driver: d}":                       fmt.Sprintf(typed, "nfs"),
		"csi: {driver: d}}, {name: w, nfs: {}":                       "Pod/web has the volume v of the CSI driver d, which",
		"csi: {}":                                                    "Pod/web has the volume v of the CSI driver , which",
		"ephemeral: {volumeClaimTemplate: {spec: {volumeName: {}}}}": "Pod/web has volumeName",
	} {
		judge(t, fmt.Sprintf(podOf, "volumes: [{name: first, emptyDir: {}}, {name: v, "+volume+"}]"), want)
	}
}

// TestOtherKindsAreNoDisruptionBudgets although they have the fields of one.
func TestOtherKindsAreNoDisruptionBudgets(t *testing.T) {
	for _, other := range []string{"example.com/v1, kind: Database", "example.com/v1, kind: PodDisruptionBudget", "policy/v1, kind: Eviction"} {
		judge(t, `{apiVersion: `+other+`, metadata: {name: web}, spec: {maxUnavailable: 0}}`, "")
	}
	judge(t, `{apiVersion: example.com/v1, kind: PersistentVolumeClaim, metadata: {name: web}, spec: {volumeName: old}}`, "")
	judge(t, `{apiVersion: v1, kind: Thing, metadata: {name: web}, spec: {type: ExternalName}}`, "")
	judge(t, `{apiVersion: example.com/v1, kind: Service, metadata: {name: web}, spec: {type: ExternalName}}`, "")
}

// TestAppsOfThePlatformMountWhatTheyNeed: they are agents of storage systems and nodes.
func TestAppsOfThePlatformMountWhatTheyNeed(t *testing.T) {
	for _, manifest := range []string{
		fmt.Sprintf(podOf, "volumes: [{name: v, nfs: {server: a, path: /}}]"),
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}, spec: {volumeName: old}}`,
	} {
		if err := Check([]*unstructured.Unstructured{object(t, manifest)}, Bounds{Namespace: namespace, Platform: &Platform{}}, scope); err != nil {
			t.Error(err)
		}
	}
}
