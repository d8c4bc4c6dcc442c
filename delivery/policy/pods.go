package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/command"
)

// priorityClass: a pod of the object would push pods of others off their nodes. Custom kinds create pods, too, and the API server checks these.
func (b Bounds) priorityClass(object *unstructured.Unstructured, _ string) (refused string) {
	eachPod(object, func(pod map[string]any) {
		class, _ := pod["priorityClassName"].(string)
		if class == "" || slices.Contains(b.PriorityClasses, class) || refused != "" {
			return
		}
		allowed := "none is allowed"
		if len(b.PriorityClasses) > 0 {
			allowed = "allowed are " + strings.Join(b.PriorityClasses, ", ")
		}
		refused = fmt.Sprintf("has priorityClassName %s, with which its pods would push others off their nodes; %s: change that in Git, or ask an administrator of the cluster to list the class in %s",
			oneLine(class), allowed, command.OfTenant("spec.priorityClasses"))
	})
	return refused
}

// gracePeriod: a pod of the object could serve traffic for longer after its deletion than administrators allow. The removal of its project waits for it.
func (b Bounds) gracePeriod(object *unstructured.Unstructured, _ string) (refused string) {
	most := int64(b.GracePeriod.Seconds())
	eachPod(object, func(pod map[string]any) {
		if seconds := whole(pod["terminationGracePeriodSeconds"]); most > 0 && seconds > most && refused == "" {
			refused = fmt.Sprintf("has terminationGracePeriodSeconds %d, of which %d are allowed: change that in Git, or ask an administrator of the cluster to allow more with %s",
				seconds, most, command.OfTenant("spec.maxTerminationGracePeriod"))
		}
	})
	return refused
}
