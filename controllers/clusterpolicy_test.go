package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var clusterPolicyKind = schema.GroupVersionKind{Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy"}

// clusterPolicy returns a project's ClusterNetworkPolicy; without content if there is none.
func (n *team) clusterPolicy(project string) (*unstructured.Unstructured, error) {
	policy := policyNamed(v1alpha1.ProjectNamespace(n.name, project))
	return policy, n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(policy), policy)
}

// confined waits until the ClusterNetworkPolicy of a project has all of the texts in its spec, and none of the others.
func (n *team) confined(project string, has []string, lacks ...string) *unstructured.Unstructured {
	n.t.Helper()
	var policy *unstructured.Unstructured
	n.eventually(func() (err error) {
		if policy, err = n.clusterPolicy(project); err != nil {
			return err
		}
		spec, err := json.Marshal(policy.Object["spec"])
		if err != nil {
			return err
		}
		contains := func(text string) bool { return strings.Contains(string(spec), text) }
		if slices.ContainsFunc(has, func(text string) bool { return !contains(text) }) || slices.ContainsFunc(lacks, contains) {
			return fmt.Errorf("the spec is %s, want %q in it, without %q", spec, has, lacks)
		}
		return nil
	})
	return policy
}

// defineClusterPolicies installs the kind. The function that it returns removes the kind, and waits until it is gone.
func (n *team) defineClusterPolicies() (remove func()) {
	n.t.Helper()
	text, err := os.ReadFile("testdata/clusternetworkpolicies.yaml")
	if err != nil {
		n.t.Fatal(err)
	}
	definition := n.object("", string(text))
	n.create(definition.DeepCopy())
	return func() {
		n.t.Helper()
		if err := n.admin.Delete(context.Background(), definition.DeepCopy()); client.IgnoreNotFound(err) != nil {
			n.t.Error(err)
		}
		for range 600 {
			if err := n.admin.Get(context.Background(), client.ObjectKeyFromObject(definition), definition.DeepCopy()); apierrors.IsNotFound(err) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		n.t.Error("the definition of ClusterNetworkPolicies is still there")
	}
}

const (
	tierAbsent = "the API server does not serve policy.networking.k8s.io/v1alpha2, or clusterNetworkPolicies is false in the values of kubeop's chart, so NetworkPolicies that administrators write into a project can open more than kubeop allows"
	tierThere  = "one of each project keeps NetworkPolicies from opening more connections with pods, or to addresses, than kubeop allows, and cannot refuse those from addresses; kubeop cannot see whether the network plugin of the cluster enforces it"
)

// TestProjectsAreConfinedWhereClusterNetworkPoliciesAreServed defines a kind that the operator then writes for every project, so no other test may run
// beside it.
func TestProjectsAreConfinedWhereClusterNetworkPoliciesAreServed(t *testing.T) {
	n := teamOf(t, "confined")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Egress = []string{"0.0.0.0/0", "198.18.9.0/24"} })
	n.push(shopFiles("shop", "web"))
	n.ready(n.project("shop"))
	n.reportsGuard("ClusterNetworkPolicy", v1alpha1.GuardAbsent, tierAbsent)

	remove := n.defineClusterPolicies()
	t.Cleanup(func() { remove() })
	n.reportsGuard("ClusterNetworkPolicy", v1alpha1.GuardRenderedOnly, tierThere)
	policy := n.confined("shop", []string{
		`"tier":"Admin"`, `"priority":99`, `"subject":{"namespaces":{"matchLabels":{"kubernetes.io/metadata.name":"kubeop-confined-shop"}}}`,
		`"matchLabels":{"kubernetes.io/metadata.name":"ingress"}`, `"values":["kube-system"]`, `"169.254.0.0/16"`, `"198.18.9.0/24"`,
	})
	if policy.GetLabels()[v1alpha1.TenantLabel] != "confined" || policy.GetLabels()[v1alpha1.ProjectLabel] != "shop" {
		t.Errorf("its labels are %v", policy.GetLabels())
	}
	rules, _, _ := unstructured.NestedSlice(policy.Object, "spec", "egress")
	if last := fmt.Sprint(rules[len(rules)-1]); last != "map[action:Deny name:other-addresses to:[map[networks:[0.0.0.0/0 ::/0]]]]" {
		t.Errorf("the last rule is %s", last)
	}
	n.ready(n.project("shop"))

	t.Run("it follows what is allowed", func(t *testing.T) {
		n.tenanted(func(s *v1alpha1.TenantSpec) { s.Egress = []string{"0.0.0.0/0"} })
		n.confined("shop", []string{`"other-addresses"`}, `"198.18.9.0/24"`)
		files := shopFiles("web")
		files["projects/web/project.yaml"] += "spec: {network: {allowFrom: [shop]}}\n"
		n.push(files)
		n.confined("web", []string{`"values":["kubeop-confined-web","kubeop-confined-shop"]`})
		n.confined("shop", []string{`"values":["kubeop-confined-shop","kubeop-confined-web"]`})
	})
	t.Run("a policy's change of egress is one write of it", func(t *testing.T) {
		to := func(cidr string) func(*v1alpha1.PolicySpec) {
			return func(s *v1alpha1.PolicySpec) { s.Egress = &v1alpha1.EgressRules{CIDRs: []string{cidr}} }
		}
		n.under(setting("out", to("198.18.8.0/24")))
		n.confined("shop", []string{`"198.18.8.0/24"`})
		n.written(0, "shop") // Until nothing before the change is left to be written.
		_, first := n.requests.since(0, "")
		n.resets("out", to("198.18.9.0/24"))
		n.confined("shop", []string{`"198.18.9.0/24"`}, `"198.18.8.0/24"`)
		objects, statuses := n.written(first, "shop")
		if diff := cmp.Diff([]string{"clusternetworkpolicies", "networkpolicies/kubeop"}, objects); diff != "" || statuses > 1 {
			t.Errorf("kubeop wrote %d statuses of the project, want 1 at most, and (-want +got):\n%s", statuses, diff)
		}
	})
	t.Run("an administrator's change of it is undone", func(t *testing.T) {
		for name, try := range map[string]func() error{
			"open": func() error {
				return n.admin.Patch(t.Context(), policy.DeepCopy(), client.RawPatch(client.Merge.Type(), []byte(`{"spec":{"priority":900,"egress":[]}}`)))
			},
			"delete": func() error { return n.admin.Delete(t.Context(), policy.DeepCopy()) },
		} {
			if err := try(); err != nil {
				t.Fatal(name, err)
			}
			n.confined("shop", []string{`"priority":99`, `"other-addresses"`})
		}
	})
	t.Run("a stolen token of the operator opens nothing with it", func(t *testing.T) {
		thief := n.as(operatorAccount)
		const spec = "{apiVersion: policy.networking.k8s.io/v1alpha2, kind: ClusterNetworkPolicy, metadata: {name: %s}, spec: {tier: %s, priority: %d, subject: {namespaces: {matchLabels: " +
			"{kubernetes.io/metadata.name: %s}}}, ingress: [{action: %s, from: [{namespaces: {}}]}]}}"
		of := func(name, tier string, priority int, subject, action string) func() error {
			return func() error {
				return thief.Create(t.Context(), n.object("", fmt.Sprintf(spec, name, tier, priority, subject, action)), client.DryRunAll)
			}
		}
		const x = "kubeop-confined-x"
		for name, try := range map[string]func() error{
			"of nobody": of("kubeop", "Admin", 99, "kubeop", "Pass"), "of kubeop itself": of("kubeop-system-x", "Admin", 99, "kubeop-system-x", "Pass"), "of other pods": of(x, "Admin", 99, "kube-system", "Deny"),
			"that comes first": of(x, "Admin", 0, x, "Pass"), "that opens": of(x, "Admin", 99, x, "Accept"), "of another tier": of(x, "Baseline", 99, x, "Pass"),
		} {
			t.Run(name, func(*testing.T) { n.denied(try, "TenantsOnly: ClusterNetworkPolicy/kubeop") })
		}
		if err := of(x, "Admin", 99, x, "Pass")(); err != nil {
			t.Errorf("one as the operator writes it: %v", err)
		}
	})
	t.Run("it goes with its project", func(t *testing.T) {
		n.push(map[string]string{"projects/web": "-"})
		n.gone(policyNamed("kubeop-confined-web"))
		n.confined("shop", []string{`"other-addresses"`}, `"kubeop-confined-web"`)
	})
	t.Run("it comes and goes with its kind", func(t *testing.T) {
		remove()
		n.reportsGuard("ClusterNetworkPolicy", v1alpha1.GuardAbsent, tierAbsent)
		said := len(n.log())
		n.reconcile(n.project("shop"))
		n.ready(n.project("shop"), n.tenant())
		time.Sleep(3 * time.Second)
		if log := n.log()[said:]; strings.Contains(strings.ToLower(log), "clusternetworkpolic") {
			t.Errorf("without the kind the operator goes on to say:\n%s", log)
		}
		remove = n.defineClusterPolicies()
		n.confined("shop", []string{`"other-addresses"`})
		n.reportsGuard("ClusterNetworkPolicy", v1alpha1.GuardRenderedOnly, tierThere)
	})
	t.Run("it goes with its tenant", func(*testing.T) {
		n.deleteOnPurpose(n.tenant())
		n.gone(n.tenant(), policyNamed("kubeop-confined-shop"))
	})
}

// policyNamed is a ClusterNetworkPolicy of which only the name is known.
func policyNamed(name string) *unstructured.Unstructured {
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(clusterPolicyKind)
	policy.SetName(name)
	return policy
}
