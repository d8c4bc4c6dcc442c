package apply

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	flowcontrol "k8s.io/client-go/applyconfigurations/flowcontrol/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"
	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"
)

// TestApplyConfigurationsEqualTheirJSON: digests of objects are of one and the same content, however it was read.
func TestApplyConfigurationsEqualTheirJSON(t *testing.T) {
	for name, o := range map[string]any{
		"a quota": core.ResourceQuota("a", "b").WithLabels(map[string]string{"c": "d"}).WithSpec(core.ResourceQuotaSpec().
			WithHard(corev1.ResourceList{"count/pods": *resource.NewQuantity(50, resource.DecimalSI), "limits.memory": resource.MustParse("1.5Gi")})),
		"ports": networking.NetworkPolicy("a", "b").WithSpec(networking.NetworkPolicySpec().WithEgress(networking.NetworkPolicyEgressRule().
			WithPorts(networking.NetworkPolicyPort().WithPort(intstr.FromInt32(53)), networking.NetworkPolicyPort().WithPort(intstr.FromString("dns"))))),
		"what is empty": networking.NetworkPolicy("a", "b").WithSpec(networking.NetworkPolicySpec().WithIngress(networking.NetworkPolicyIngressRule())),
		"numbers and switches": flowcontrol.FlowSchema("a").WithSpec(flowcontrol.FlowSchemaSpec().WithMatchingPrecedence(1000).
			WithRules(flowcontrol.PolicyRulesWithSubjects().WithResourceRules(flowcontrol.ResourcePolicyRule().WithClusterScope(true).WithVerbs(flowcontrolv1.VerbAll)))),
		"false":     core.ServiceAccount("a", "b").WithAutomountServiceAccountToken(false),
		"a binding": rbac.RoleBinding("a", "b").WithSubjects(rbac.Subject().WithKind("User").WithName("c")).WithRoleRef(rbac.RoleRef().WithName("d")),
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			want := &unstructured.Unstructured{}
			if err := want.UnmarshalJSON(data); err != nil {
				t.Fatal(err)
			}
			got, err := toUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("-JSON +got:\n%s", diff)
			}
		})
	}
}
