package apply

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	flowcontrol "k8s.io/client-go/applyconfigurations/flowcontrol/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"
	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
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

// TestWithdrawingDeletesOnlyObjectsOfTheApp, recorded or not, and also where the watch does not know the kind. What the watch knows to be absent costs no
// request.
func TestWithdrawingDeletesOnlyObjectsOfTheApp(t *testing.T) {
	away := errors.New("the API server is away")
	for name, c := range map[string]struct {
		seen, known bool
		failure     error
		owner       string
		gone, asked bool
		recorded    string
	}{
		"the watch shows it":                 {seen: true, known: true, owner: "web", gone: true, recorded: "ConfigMap/two"},
		"the watch shows that there is none": {known: true, owner: "web", recorded: "Role/one, ConfigMap/two"},
		"the watch does not know the kind":   {owner: "web", gone: true, asked: true, recorded: "ConfigMap/two"},
		"it has another owner":               {owner: "api", asked: true, recorded: "ConfigMap/two"},
		"the watch fails":                    {failure: away, owner: "web", recorded: "Role/one, ConfigMap/two"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "one", UID: "1"}}
			role.Labels = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: c.owner}
			api := fake.NewClientBuilder().WithObjects(role).Build()
			counted := interceptor.NewClient(api, interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					asked = true
					return api.Get(ctx, key, o, options...)
				},
			})
			watch := func(ctx context.Context, _ schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
				if !c.seen {
					return nil, c.known, c.failure
				}
				live := &rbacv1.Role{}
				return live, c.known, api.Get(ctx, key, live)
			}
			recorded := []v1alpha1.InventoryEntry{{ID: "a_one_rbac.authorization.k8s.io_Role", Version: "v1"}, {ID: "a_two__ConfigMap", Version: "v1"}}
			ledger := NewLedger(&Applier{Live: watch}, counted, v1alpha1.Inventory{Entries: recorded})
			if err := ledger.Withdraw(t.Context(), web, rbac.Role("one", "a")); !errors.Is(err, c.failure) {
				t.Errorf("got %v", err)
			}
			if gone := api.Get(t.Context(), client.ObjectKeyFromObject(role), &rbacv1.Role{}) != nil; gone != c.gone || asked != c.asked {
				t.Errorf("it is deleted: %t, want %t; it was asked for: %t, want %t", gone, c.gone, asked, c.asked)
			}
			if got := inventory.Names(ledger.Inventory().Entries); got != c.recorded {
				t.Errorf("recorded are %s, want %s", got, c.recorded)
			}
		})
	}
}
