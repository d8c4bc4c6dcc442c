package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/opened"
)

// own is a project.yaml whose apps have NetworkPolicies.
func own(files map[string]string, network string) map[string]string {
	files["projects/shop/project.yaml"] += "spec: {network: {policies: Own" + network + "}}\n"
	return files
}

// opens waits until the Guardrails of the project let NetworkPolicies open this.
func (n *team) opens(want *v1alpha1.AllowedNetwork) {
	n.t.Helper()
	n.eventually(func() error {
		rules := &v1alpha1.Guardrails{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName}, rules); err != nil {
			return err
		}
		if diff := cmp.Diff(want, rules.Spec.Network); diff != "" {
			return fmt.Errorf("what NetworkPolicies may open (-want +got):\n%s", diff)
		}
		return nil
	})
}

// networkPolicy returns a network policy of the project; nil if there is none.
func (n *team) networkPolicy(name string) *networkingv1.NetworkPolicy {
	n.t.Helper()
	found := &networkingv1.NetworkPolicy{}
	err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: name}, found)
	if client.IgnoreNotFound(err) != nil {
		n.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return found
}

// TestTheAPIServerJudgesNetworkPolicies asks the API server about the cases of package isolation: it accepts and refuses what kubeop does, from everybody
// who has the right to write NetworkPolicies, and keeps the platform's own.
func TestTheAPIServerJudgesNetworkPolicies(t *testing.T) {
	n, bot := limited(t, "narrow")
	network, cases := opened.Read(t, "../delivery/isolation/testdata/cases.yaml")
	x := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "x"}}
	create := func(as client.Client, name string, spec networkingv1.NetworkPolicySpec) func() error {
		policy := x.DeepCopy()
		policy.Name, policy.Spec = name, spec
		return func() error { return as.Create(t.Context(), policy.DeepCopy(), client.DryRunAll) }
	}
	closed := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}
	n.denied(create(bot, "x", closed), "NetworkPolicies: NetworkPolicy/x is refused: the platform sets the network policies of a project")
	n.passes(create(n.admin, "x", closed)) // As before there was such a policy, administrators may.

	files := own(shopFiles("shop"), ", allowFrom: [web]")
	files["projects/web/project.yaml"] = fmt.Sprintf(projectFile, "web")
	files["projects/billing/project.yaml"] = fmt.Sprintf(projectFile, "billing") + "spec: {network: {allowFrom: [shop]}}\n"
	n.push(files)
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "out"}, Spec: v1alpha1.PolicySpec{Egress: &v1alpha1.EgressRules{
		CIDRs: []string{"203.0.112.0/22", "100.0.0.0/8", "2001:db8::/32"}, Ports: []v1alpha1.EgressPort{{Port: 443}, {Protocol: "UDP", Port: 8000, EndPort: 8999}},
	}}})
	n.opens(network)
	refused := networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{}}}
	n.denied(create(bot, "x", refused), "lets pods connect to everything") // The Guardrails are in force from here on.
	n.passes(create(bot, "x", closed))
	for _, c := range cases {
		err := create(bot, "x", c.Policy.Spec)()
		byPolicy := err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'kubeop-network-policies'")
		switch {
		case c.Refused == "" && err != nil:
			t.Errorf("%s is refused: %v", c.Name, err)
		case c.Refused != "" && err == nil:
			t.Errorf("%s is not refused", c.Name)
		case c.Refused != "" && (!byPolicy || !strings.Contains(err.Error(), "NetworkPolicies: NetworkPolicy/x ") || !strings.Contains(err.Error(), c.Refused)):
			if !strings.Contains(err.Error(), "is invalid") { // The API server refuses it anyway.
				t.Errorf("%s: the message does not contain %q: %v", c.Name, c.Refused, err)
			}
		}
	}
	n.denied(create(n.admin, "x", refused), "lets pods connect to everything") // Also from administrators: kubeop would take it out again.
	n.passes(create(n.admin, "kubeop-x", refused))
	n.denied(create(bot, "kubeop-x", closed), "PlatformObject: NetworkPolicy/kubeop-x")
	n.changesOfNetworkPoliciesAreJudged(bot, x, refused)
	// One after the other: of several denials, the API server reports any one.
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "kinds"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Kinds: &v1alpha1.KindRules{Deny: []string{"NetworkPolicy.networking.k8s.io"}},
	}}})
	n.denied(create(bot, "x", closed), "Kinds: NetworkPolicy/x is of kind NetworkPolicy.networking.k8s.io, which is among the refused ones")
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "marks"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Metadata: &v1alpha1.MetadataRules{ForbiddenLabels: []string{"forbidden"}},
	}}})
	n.denied(func() error {
		marked := x.DeepCopy()
		marked.Labels = map[string]string{"forbidden": "a"}
		return bot.Create(t.Context(), marked, client.DryRunAll)
	}, "spec.metadata.forbiddenLabels of policy narrow-marks")
	n.theRightIsOfTheDeployerOfTheProject()
}

// changesOfNetworkPoliciesAreJudged: what an update leaves as it is does not matter.
func (n *team) changesOfNetworkPoliciesAreJudged(bot client.Client, policy *networkingv1.NetworkPolicy, refused networkingv1.NetworkPolicySpec) {
	n.t.Helper()
	ctx := n.t.Context()
	n.create(policy)
	changed := policy.DeepCopy()
	changed.Spec = refused
	n.denied(func() error { return bot.Update(ctx, changed.DeepCopy(), client.DryRunAll) }, "lets pods connect to everything")
	for name, try := range map[string]func(*networkingv1.NetworkPolicy) error{
		"update": func(p *networkingv1.NetworkPolicy) error { return bot.Update(ctx, p, client.DryRunAll) },
		"delete": func(p *networkingv1.NetworkPolicy) error { return bot.Delete(ctx, p, client.DryRunAll) },
	} {
		platforms := n.networkPolicy("kubeop")
		platforms.Spec.Egress = nil
		n.denied(func() error { return try(platforms.DeepCopy()) }, "PlatformObject: NetworkPolicy/kubeop is the platform's")
		if err := try(policy.DeepCopy()); err != nil {
			n.t.Errorf("%s of one's own: %v", name, err)
		}
	}
	if err := n.admin.Delete(ctx, policy); err != nil {
		n.t.Error(err)
	}
}

// theRightIsOfTheDeployerOfTheProject: in a project without such policies, no Role of an app can give it.
func (n *team) theRightIsOfTheDeployerOfTheProject() {
	n.t.Helper()
	for project, want := range map[string]bool{"shop": true, "web": false} {
		namespace := v1alpha1.ProjectNamespace(n.name, project)
		binding := &rbacv1.RoleBinding{}
		err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: namespace, Name: "kubeop-deployer-network-policies"}, binding)
		if client.IgnoreNotFound(err) != nil || (err == nil) != want {
			n.t.Errorf("project %s has the binding: %v, want %t", project, err, want)
		}
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: []string{"create", "deletecollection"},
		}}}
		deployer := n.as("system:serviceaccount:" + namespace + ":" + v1alpha1.Deployer)
		n.eventually(func() error {
			if err := deployer.Create(n.t.Context(), role.DeepCopy(), client.DryRunAll); (err == nil) != want {
				return fmt.Errorf("project %s grants it: %v, want %t: %w", project, err == nil, want, errors.Join(err))
			}
			return nil
		})
	}
}

// TestNetworkPoliciesOfAppsOpenAndAreNarrowed: with spec.network.policies Own everything is closed but DNS, and NetworkPolicies of apps open more. What a
// policy of the tenant no longer allows is closed at once, also in those that exist. The app says so, and has its policy back when it is allowed again.
func TestNetworkPoliciesOfAppsOpenAndAreNarrowed(t *testing.T) {
	t.Parallel()
	n := teamOf(t, "opening")
	const manifest = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], " +
		"egress: [{to: [{podSelector: {matchLabels: {app: db}}}, {ipBlock: {cidr: 203.0.113.0/24}}]}]}}"
	file := "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: {type: Raw, retryInterval: 1s, raw: {manifests: [" + manifest + "]}}\n"
	files := shopFiles("shop")
	files["projects/shop/apps/web/app.yaml"] = file
	n.push(files)
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Egress = []string{"203.0.112.0/22"} })
	app := n.app("shop", "web")
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		return nil
	})
	message := n.until(app, v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
	if want := "With spec.network.policies: Own in project.yaml they open what the project may have"; !strings.Contains(message, want) {
		t.Errorf("it says %q, want %q in it", message, want)
	}
	if platforms := n.networkPolicy("kubeop"); len(platforms.Spec.Ingress) == 0 || len(platforms.Spec.Egress) != 3 {
		t.Errorf("the platform's policy is %+v", platforms.Spec)
	}

	n.push(own(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")}, ""))
	n.ready(app)
	platforms := n.networkPolicy("kubeop").Spec
	if len(platforms.Ingress) > 0 || len(platforms.Egress) != 1 || platforms.Egress[0].To[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "kube-system" ||
		len(platforms.PolicyTypes) != 2 || len(platforms.PodSelector.MatchLabels) > 0 {
		t.Errorf("the platform's policy opens more than DNS: %+v", platforms)
	}
	reaches := func(want ...string) {
		t.Helper()
		n.eventually(func() error {
			var got []string
			for _, rule := range n.networkPolicy("web").Spec.Egress {
				for _, peer := range rule.To {
					if peer.IPBlock != nil {
						got = append(got, strings.Join(append([]string{peer.IPBlock.CIDR}, peer.IPBlock.Except...), "-"))
					} else {
						got = append(got, "pods")
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("-want +got:\n%s", diff)
			}
			return nil
		})
	}
	reaches("pods", "203.0.113.0/24")

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Egress = []string{"198.18.0.0/15"} })
	reaches("pods")
	n.happened(n.project("shop"), "Warning", v1alpha1.NetworkPolicyNarrowedReason, "NetworkPolicy web lets pods connect in spec.egress[0] to 203.0.113.0/24, or at ports there, "+
		"which is not allowed; that was taken out of it, and what is left is in force: correct it in Git")
	n.until(app, v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		message := n.until(app, v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
		const want = "NetworkPolicy/web lets pods connect in spec.egress[0] to 203.0.113.0/24, or at ports there, which is not allowed: 198.18.0.0/15; change that in Git, " +
			"or ask an administrator of the cluster to change spec.egress of the tenant's tenant.yaml or of its policies in the platform repository"
		if !strings.Contains(message, want) {
			return fmt.Errorf("it says %q, want %q in it", message, want)
		}
		return nil
	})
	reaches("pods") // The app does not undo it.

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Egress = []string{"203.0.113.0/24"} })
	reaches("pods", "203.0.113.0/24")
	n.ready(app)

	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	n.until(app, v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
	n.eventually(func() error {
		if platforms := n.networkPolicy("kubeop"); len(platforms.Spec.Ingress) == 0 || len(platforms.Spec.Egress) != 3 {
			return fmt.Errorf("the platform's policy is %+v", platforms.Spec)
		}
		return nil
	})
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Egress = nil })
	reaches("pods") // It stays within what is allowed.
	n.push(map[string]string{"projects/shop/apps/web/app.yaml": strings.Replace(file, manifest, "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}", 1)})
	n.ready(app)
	n.eventually(func() error { // The deployer may still remove it.
		if n.networkPolicy("web") != nil {
			return errors.New("it is still there")
		}
		return nil
	})
}
