package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/command"
)

// podVolumes are the types of volumes that a pod may have: those of claims, whose size quotas limit, and those that hold what is in the
// namespace or in an image. Pod Security refuses hostPath, and says so itself.
var podVolumes = []string{
	"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "hostPath", "image", "persistentVolumeClaim", "projected", "secret",
}

// volumeType: a pod of the object would mount storage past claims, so past StorageClasses and quotas: a server that the node connects to, past
// the network isolation, or an inline volume of a CSI driver that administrators did not allow.
func (b Bounds) volumeType(object *unstructured.Unstructured, _ string) string {
	var refused string
	eachVolume(object, func(volume map[string]any) {
		for _, of := range sortedKeys(volume) {
			if of != "name" && volume[of] != nil && !slices.Contains(podVolumes, of) && refused == "" {
				refused = fmt.Sprintf("has the volume %v of type %s, which is mounted past claims and their quotas; use a PersistentVolumeClaim in Git",
					oneLine(fmt.Sprint(volume["name"])), oneLine(of))
			}
		}
		inline, _ := volume["csi"].(map[string]any)
		if driver, _ := inline["driver"].(string); inline != nil && !slices.Contains(b.CSIDrivers, driver) && refused == "" {
			refused = fmt.Sprintf("has the volume %v of the CSI driver %s, which is mounted past claims and their quotas: use a PersistentVolumeClaim in Git, or ask an administrator "+
				"of the cluster to list the driver in %s", oneLine(fmt.Sprint(volume["name"])), oneLine(driver), command.OfTenant("spec.csiDrivers"))
		}
	})
	return refused
}

// eachVolume calls see for every volume of a pod, at any depth of the object.
func eachVolume(object *unstructured.Unstructured, see func(volume map[string]any)) {
	eachPod(object, func(pod map[string]any) {
		volumes, _ := pod["volumes"].([]any)
		for _, one := range volumes {
			if volume, ok := one.(map[string]any); ok {
				see(volume)
			}
		}
	})
}

// foreignVolume: a claim would take a volume that was not made for it. Volumes belong to no namespace, and one that is released may still hold
// another tenant's data.
func foreignVolume(object *unstructured.Unstructured, namespace string) string {
	for _, claim := range claimsOf(object) {
		source, _ := claim["dataSourceRef"].(map[string]any)
		from, _ := source["namespace"].(string)
		switch {
		case notEmpty(claim["volumeName"]):
			return fmt.Sprintf("has volumeName %s; a claim gets a volume of its own, so leave that out in Git. For a volume that is there already, ask an administrator of the cluster to "+
				"name this claim in spec.claimRef of the volume", oneLine(fmt.Sprint(claim["volumeName"])))
		case claim["selector"] != nil:
			return "selects a volume by its labels; a claim gets a volume of its own, so leave spec.selector out in Git"
		case from != "" && from != namespace:
			return fmt.Sprintf("takes its data from namespace %s; name something of namespace %s in Git", oneLine(from), namespace)
		}
	}
	return ""
}

// claimsOf returns the specs of the claim that an object is, and of those that are made from its templates.
func claimsOf(object *unstructured.Unstructured) []map[string]any {
	var claims []map[string]any
	add := func(claim any) {
		holder, _ := claim.(map[string]any)
		if spec, ok := holder["spec"].(map[string]any); ok {
			claims = append(claims, spec)
		}
	}
	kind := object.GroupVersionKind()
	if kind.Group == "" && kind.Kind == "PersistentVolumeClaim" {
		add(object.Object)
	}
	visit(object.Object, func(field string, value any) {
		switch field {
		case "volumeClaimTemplate":
			add(value)
		case "volumeClaimTemplates":
			templates, _ := value.([]any)
			for _, template := range templates {
				add(template)
			}
		}
	})
	return claims
}

// blockedDrain: the disruption budget lets no pod be evicted, whatever runs, so no node with such a pod can be drained. How many pods run
// is not known here, so budgets that want as many as there are pass.
func blockedDrain(object *unstructured.Unstructured, _ string) string {
	kind := object.GroupVersionKind()
	if kind.Group != policyv1.GroupName || kind.Kind != "PodDisruptionBudget" {
		return ""
	}
	spec, _ := object.Object["spec"].(map[string]any)
	if most, set := spec["maxUnavailable"]; set && strings.Trim(fmt.Sprint(most), "0%") == "" {
		return fmt.Sprintf("has maxUnavailable %s, so that no node with its pods can be drained; allow at least 1 in Git", oneLine(fmt.Sprint(most)))
	}
	if strings.TrimLeft(fmt.Sprint(spec["minAvailable"]), "0") == "100%" {
		return "has minAvailable 100%, so that no node with its pods can be drained; use maxUnavailable in Git, with at least 1"
	}
	if share := percent(spec["minAvailable"]); share > mostAvailableShare && share < 100 {
		return fmt.Sprintf("has minAvailable %d%%, which Kubernetes rounds up, so that no node with its pods can be drained while fewer than %d run; above %d%%, use maxUnavailable in Git, with at least 1",
			share, (199-share)/(100-share), mostAvailableShare)
	}
	if least := whole(spec["minAvailable"]); least > mostAvailable {
		return fmt.Sprintf("has minAvailable %d, so that no node with its pods can be drained while fewer run; above %d, use maxUnavailable or a percentage in Git", least, mostAvailable)
	}
	return ""
}

// mostAvailable is the largest number of pods that a disruption budget may require. More than a quorum needs does not follow the number of pods that
// run, so it may require more than there ever are.
const mostAvailable = 10

// mostAvailableShare is the largest share of its pods, in percent, that a disruption budget may require. Kubernetes rounds the number up
// (getExpectedPodCount of its controller), so that share % of fewer than 100/(100-share) pods are all of them: 90 % need 10 pods before one
// can be evicted. It rounds maxUnavailable up, too, so each share of it but 0 % is at least one pod.
const mostAvailableShare = 90

// percent returns a percentage such as "90%"; 0 if the value is none.
func percent(value any) int {
	text, _ := value.(string)
	digits, is := strings.CutSuffix(text, "%")
	share, err := strconv.Atoi(digits)
	if !is || err != nil {
		return 0
	}
	return share
}

// whole returns a number of YAML or JSON; 0 if the value is none.
func whole(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}
