package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestEgressExcludesTheNetworksOfTheCluster: whatever egress a tenant may have, its pods cannot reach metadata services, nodes or the other
// networks of the cluster. A new node is excluded at once.
func TestEgressExcludesTheNetworksOfTheCluster(t *testing.T) {
	n := newTeam(t, "egress")
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "egress"}}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
		t.Fatal(err)
	}
	before := tenant.DeepCopy()
	tenant.Spec.Egress = []string{"0.0.0.0/0", "::/0", "198.18.7.0/24", "169.254.169.254/32"}
	if err := n.admin.Patch(t.Context(), tenant, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	n.push(shopFiles("shop"))
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-egress", Name: "shop"}}
	n.ready(project)
	blocks := func() map[string][]string {
		policy := &networkingv1.NetworkPolicy{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-egress-shop", Name: "kubeop"}, policy); err != nil {
			t.Fatal(err)
		}
		all := map[string][]string{}
		for _, peer := range policy.Spec.Egress[len(policy.Spec.Egress)-1].To {
			all[peer.IPBlock.CIDR] = peer.IPBlock.Except
		}
		return all
	}
	found := blocks()
	for within, out := range map[string][]string{
		"0.0.0.0/0": {"10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "168.63.129.16/32"}, "::/0": {"fc00::/7", "fe80::/10"},
	} {
		for _, network := range out {
			if !slices.Contains(found[within], network) {
				t.Errorf("%s is not excluded from %s, only %v", network, within, found[within])
			}
		}
	}
	if _, all := found["169.254.169.254/32"]; all || len(found["198.18.7.0/24"]) > 0 || len(found) != 3 {
		t.Errorf("egress is allowed to %v", found)
	}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(project), project); err != nil {
		t.Fatal(err)
	}
	if message, want := conditions.GetMessage(project, v1alpha1.ReadyCondition), "to 169.254.169.254/32 is not let through"; !strings.Contains(message, want) {
		t.Errorf("the project says %q, want %q in it", message, want)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "egress"}}
	n.create(node)
	made := node.DeepCopy() // Other controllers write to nodes, too.
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "198.18.7.9"}}
	if err := n.admin.Status().Patch(t.Context(), node, client.MergeFrom(made)); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		if got := blocks()["198.18.7.0/24"]; !slices.Equal(got, []string{"198.18.7.9/32"}) {
			return fmt.Errorf("of the network of a node %v is excluded", got)
		}
		return nil
	})
}

// TestPoliciesDecideWhereAllProjectsOfATenantConnect: a connection has to be in every policy. A change of one is written once to each project of the
// tenants under it, and not to other projects.
func TestPoliciesDecideWhereAllProjectsOfATenantConnect(t *testing.T) {
	t.Parallel()
	n, other := teamOf(t, "outward"), teamOf(t, "inward")
	for _, team := range []*team{n, other} {
		team.push(shopFiles("shop"))
		team.ready(team.project("shop"))
	}
	policyOf := func(name string, ports []v1alpha1.EgressPort, ranges ...string) v1alpha1.Policy {
		return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{Egress: &v1alpha1.EgressRules{CIDRs: ranges, Ports: ports}}}
	}
	egress := func(of *team) (*networkingv1.NetworkPolicy, string) {
		found := &networkingv1.NetworkPolicy{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: of.namespace(), Name: "kubeop"}, found); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, rule := range found.Spec.Egress {
			for _, peer := range rule.To {
				if peer.IPBlock != nil {
					all = append(all, peer.IPBlock.CIDR)
				}
			}
			for _, port := range rule.Ports {
				if len(rule.To) > 0 && rule.To[0].IPBlock != nil {
					all = append(all, fmt.Sprint(*port.Protocol, port.Port))
				}
			}
		}
		return found, strings.Join(all, " ")
	}
	reaches := func(want string) {
		t.Helper()
		n.eventually(func() error {
			if _, got := egress(n); got != want {
				return fmt.Errorf("pods reach %q, want %q", got, want)
			}
			return nil
		})
	}
	https := []v1alpha1.EgressPort{{Port: 443}}
	n.under(policyOf("web", https, "198.18.0.0/15", "2001:db8::/32"), policyOf("office", nil, "198.18.7.0/24", "203.0.113.0/24"))
	reaches("198.18.7.0/24 TCP443")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Egress = []string{"192.0.2.0/24"} })
	reaches("")
	n.until(n.project("shop"), v1alpha1.ReadyCondition, metav1.ConditionTrue, "")
	n.eventually(func() error {
		project := n.project("shop")
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(project), project); err != nil {
			return err
		}
		want := "nothing outside of the cluster can be reached, because no address and port is in spec.egress of all of: tenant.yaml, policies/outward-office.yaml, policies/outward-web.yaml"
		if got := conditions.GetMessage(project, v1alpha1.ReadyCondition); !strings.Contains(got, want) {
			return fmt.Errorf("it says %q, want %q in it", got, want)
		}
		return nil
	})
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Egress = nil })
	reaches("198.18.7.0/24 TCP443")

	before, _ := egress(n)
	others, _ := egress(other)
	office := &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "outward-office"}}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(office), office); err != nil {
			return err
		}
		office.Spec.Egress.CIDRs = []string{"198.18.8.0/24"}
		return n.admin.Update(t.Context(), office)
	})
	reaches("198.18.8.0/24 TCP443")
	after, _ := egress(n)
	if after.Generation != before.Generation+1 {
		t.Errorf("one change made %d writes", after.Generation-before.Generation)
	}
	if same, _ := egress(other); same.ResourceVersion != others.ResourceVersion {
		t.Error("the network policy of a tenant under no policy was written")
	}
}

// TestProjectsOfATenantConnectWhenOneAllowsIt, and those of another tenant never do, also if they have the name.
func TestProjectsOfATenantConnectWhenOneAllowsIt(t *testing.T) {
	t.Parallel()
	n, other := teamOf(t, "neighbours"), teamOf(t, "strangers")
	other.push(shopFiles("web"))
	other.ready(other.project("web"))
	files := shopFiles("shop")
	files["projects/shop/project.yaml"] += "spec: {network: {allowFrom: [web, none]}}\n"
	n.push(files)
	n.ready(n.project("shop"))
	peers := func(of *team, project string) (from, to string) {
		found := &networkingv1.NetworkPolicy{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(of.name, project), Name: "kubeop"}, found); err != nil {
			return err.Error(), ""
		}
		names := func(peers []networkingv1.NetworkPolicyPeer) (text string) {
			for _, peer := range peers {
				if peer.NamespaceSelector != nil {
					text += " " + peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]
				}
			}
			return text
		}
		for _, rule := range found.Spec.Ingress {
			from += names(rule.From)
		}
		for _, rule := range found.Spec.Egress {
			to += names(rule.To)
		}
		return from, to
	}
	connects := func(project, from, to string) {
		t.Helper()
		n.eventually(func() error {
			if gotFrom, gotTo := peers(n, project); gotFrom != " ingress"+from || gotTo != " kube-system"+to {
				return fmt.Errorf("%s: from%s, to%s; want from ingress%s, to kube-system%s", project, gotFrom, gotTo, from, to)
			}
			return nil
		})
	}
	connects("shop", "", "")
	n.eventually(func() error {
		project := n.project("shop")
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(project), project); err != nil {
			return err
		}
		want := "; spec.network.allowFrom names projects that tenant neighbours does not have: web, none; each can connect once it is in Git"
		if got := conditions.GetMessage(project, v1alpha1.ReadyCondition); !strings.HasSuffix(got, want) {
			return fmt.Errorf("it says %q, want %q at its end", got, want)
		}
		return nil
	})
	n.push(shopFiles("web"))
	n.ready(n.project("web"))
	connects("web", "", " kubeop-neighbours-shop")
	connects("shop", " kubeop-neighbours-web", "")
	if from, to := peers(other, "web"); from != " ingress" || to != " kube-system" {
		t.Errorf("the other tenant's project connects from%s, to%s", from, to)
	}
	n.push(shopFiles("shop"))
	connects("shop", "", "")
	connects("web", "", "")
}
