package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// TestLimitsAreJudgedAsTheAPIServerDoes asks the API server, which has the LimitRange of the project, about pods and claims, and package guardrails, which has the
// Guardrails: both refuse the same.
func TestLimitsAreJudgedAsTheAPIServerDoes(t *testing.T) {
	n, _ := limited(t, "doubly")
	amounts := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	size := resource.MustParse("2Gi")
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: v1alpha1.PolicySpec{Limits: &v1alpha1.LimitRules{
		Max: amounts("1", "512Mi"), Min: amounts("10m", "32Mi"), Ratio: amounts("4", "3"), Claims: &v1alpha1.ClaimSizes{Max: &size},
	}}})
	rules := &v1alpha1.Guardrails{}
	n.eventually(func() error {
		err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName}, rules)
		if err == nil && len(rules.Spec.Limits) == 0 {
			err = errors.New("the Guardrails have no limits")
		}
		return err
	})
	objects, refused := map[string]string{}, 0
	for _, resources := range []string{
		"", "limits: {memory: 512Mi}", "limits: {memory: 513Mi}", "requests: {memory: 600Mi}, limits: {memory: 600Mi}", "limits: {cpu: 1.5}", "limits: {cpu: 1000m}", "limits: {cpu: 9m}",
		"requests: {cpu: 5m}", "requests: {memory: 31Mi}", "requests: {memory: 64Mi}", "requests: {memory: 100Mi}", "limits: {memory: 31Mi}", "requests: {cpu: 100m}, limits: {cpu: 400m}",
		"requests: {cpu: 100m}, limits: {cpu: 401m}", "requests: {cpu: 300m}, limits: {cpu: 1}", "requests: {cpu: 0}", "requests: {memory: 100Mi}, limits: {memory: 300Mi}",
		"requests: {memory: 100Mi}, limits: {memory: 301Mi}", "requests: {memory: 0}", "requests: {memory: 257Mi}", "requests: {memory: 256Mi}", "requests: {cpu: 333m}, limits: {cpu: 999m}",
	} {
		for _, field := range []string{"containers", "initContainers"} {
			text := fmt.Sprintf(markedPlace, "v1", "Pod", strings.Replace(podSpec, "{name: a,", "{name: a, resources: {"+resources+"},", 1))
			if field == "initContainers" {
				text = strings.Replace(text, "containers: ", "initContainers: ", 1)
				text = strings.Replace(text, "spec: {", "spec: {containers: [{name: b, image: b, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}}], ", 1)
			}
			objects[field+" with "+resources] = text
		}
	}
	for _, storage := range []string{"1Gi", "2048Mi", "3Gi"} {
		objects["a claim of "+storage] = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: " + storage + "}}}}"
	}
	for name, text := range objects {
		object := n.object(n.namespace(), text)
		found := guardrails.Check(object, &rules.Spec)
		if len(found) > 0 {
			refused++
		}
		n.eventually(func() error { // The API server may see the LimitRange a moment later.
			err := n.admin.Create(t.Context(), object.DeepCopy(), client.DryRunAll)
			byLimits := err != nil && (strings.Contains(err.Error(), " per ") || strings.Contains(err.Error(), "must be less than or equal to memory limit"))
			if byLimits != (len(found) > 0) {
				return fmt.Errorf("%s: kubeop finds %v, and the API server says: %w", name, found, err)
			}
			return nil
		})
	}
	if refused < 15 || refused > len(objects)-15 {
		t.Errorf("%d of %d are refused", refused, len(objects))
	}
}
