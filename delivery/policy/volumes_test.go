package policy

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPodsMountOnlyWhatClaimsAndTheirNamespaceHave(t *testing.T) {
	const typed = "/web has the volume v of type %s, which is mounted past claims and their quotas"
	for name, c := range map[string]struct{ volume, want string }{
		"a claim":               {"persistentVolumeClaim: {claimName: data}", ""},
		"a claim of the pod":    {"ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}", ""},
		"memory":                {"emptyDir: {medium: Memory}", ""},
		"a ConfigMap":           {"configMap: {name: a}", ""},
		"fields of the pod":     {"downwardAPI: {items: []}", ""},
		"a path of the node":    {"hostPath: {path: /}", ""}, // Pod Security refuses it, in its own words.
		"a Secret":              {"secret: {secretName: a}", ""},
		"a token":               {"projected: {sources: [{serviceAccountToken: {path: token}}]}", ""},
		"an image":              {"image: {reference: web}", ""},
		"a field without one":   {"nfs: null, emptyDir: {}", ""},
		"a server":              {"nfs: {server: 10.0.0.1, path: /}", fmt.Sprintf(typed, "nfs")},
		"a block device":        {"iscsi: {targetPortal: 10.0.0.1}", fmt.Sprintf(typed, "iscsi")},
		"one yet unknown":       {"somethingNew: {}", fmt.Sprintf(typed, "somethingNew")},
		"an allowed driver":     {"csi: {driver: secrets-store.csi.k8s.io}", ""},
		"another driver":        {"csi: {driver: nfs.csi.k8s.io}", "/web has the volume v of the CSI driver nfs.csi.k8s.io, which is mounted past claims and their quotas: use a PersistentVolumeClaim in Git, or ask"},
		"a driver on two lines": {`csi: {driver: "a\nb"}`, "/web has the volume v of the CSI driver a?b, which"},
		"a driver of no name":   {"csi: {}", "/web has the volume v of the CSI driver , which"},
	} {
		for kind, of := range map[string]string{"Pod": podOf, "Deployment": deploymentOf, "CronJob": cronJobOf} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				want := c.want
				if want != "" {
					want = kind + want
				}
				judge(t, fmt.Sprintf(of, "volumes: [{name: first, emptyDir: {}}, {name: v, "+c.volume+"}]"), want)
			})
		}
	}
}

func TestClaimsGetVolumesOfTheirOwn(t *testing.T) {
	const named, selected, from = "/web has volumeName old; a claim gets a volume of its own", "/web selects a volume by its labels", "/web takes its data from namespace other"
	kinds := map[string]string{
		"PersistentVolumeClaim": `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}, spec: {%s}}`,
		"StatefulSet":           `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: {volumeClaimTemplates: [{spec: {}}, {spec: {%s}}]}}`,
		"Pod":                   fmt.Sprintf(podOf, "volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {%s}}}}]"),
		"Database":              `{apiVersion: example.com/v1, kind: Database, metadata: {name: web}, spec: {storage: {volumeClaimTemplate: {spec: {%s}}}}}`,
	}
	for name, c := range map[string]struct{ field, want string }{
		"nothing special":          {"storageClassName: fast", ""},
		"no name":                  {`volumeName: ""`, ""},
		"a volume":                 {"volumeName: old", named},
		"labels of volumes":        {"selector: {matchLabels: {tenant: other}}", selected},
		"any volume":               {"selector: {}", selected},
		"a snapshot":               {"dataSource: {kind: VolumeSnapshot, name: a}, dataSourceRef: {kind: VolumeSnapshot, name: a}", ""},
		"a snapshot of the same":   {"dataSourceRef: {kind: VolumeSnapshot, name: a, namespace: " + namespace + "}", ""},
		"a snapshot of another's":  {"dataSourceRef: {kind: VolumeSnapshot, name: a, namespace: other}", from},
		"a volume that is no text": {"volumeName: {}", "/web has volumeName"},
	} {
		for kind, of := range kinds {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				want := c.want
				if want != "" {
					want = kind + want
				}
				judge(t, fmt.Sprintf(of, c.field), want)
			})
		}
	}
}

func TestDisruptionBudgetsLetNodesBeDrained(t *testing.T) {
	const of = `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {%s}}`
	for field, want := range map[string]string{
		"maxUnavailable: 1":      "",
		"maxUnavailable: 10":     "",
		`maxUnavailable: "50%"`:  "",
		`maxUnavailable: "100%"`: "",
		"minAvailable: 0":        "",
		"minAvailable: 100":      "",
		`minAvailable: "99%"`:    "",
		"maxUnavailable: 0":      "PodDisruptionBudget/web has maxUnavailable 0, so that no node with its pods can be drained",
		`maxUnavailable: "0%"`:   "PodDisruptionBudget/web has maxUnavailable 0%, so",
		`maxUnavailable: "00%"`:  "PodDisruptionBudget/web has maxUnavailable 00%, so",
		`minAvailable: "100%"`:   "PodDisruptionBudget/web has minAvailable 100%, so",
		`minAvailable: "0100%"`:  "PodDisruptionBudget/web has minAvailable 100%, so",
		"selector: {}":           "",
	} {
		t.Run(field, func(t *testing.T) { judge(t, fmt.Sprintf(of, field), want) })
	}
	for _, other := range []string{"example.com/v1, kind: Database", "example.com/v1, kind: PodDisruptionBudget", "policy/v1, kind: Eviction"} {
		judge(t, `{apiVersion: `+other+`, metadata: {name: web}, spec: {maxUnavailable: 0}}`, "")
	}
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
