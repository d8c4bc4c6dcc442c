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
