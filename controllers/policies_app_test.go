package controllers

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	testsources "github.com/kubeop/kubeop/internal/testenv/sources"
)

// policy returns a policy whose rule about images has an action.
func policy(name string, action v1alpha1.PolicyAction, allow ...string) v1alpha1.Policy {
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images: &v1alpha1.ImageRules{Action: action, Allow: allow},
	}}}
}

// states waits until a condition has the status and its message contains the text.
func (n *team) states(o step.Object, condition string, status metav1.ConditionStatus, texts ...string) {
	n.t.Helper()
	n.eventually(func() error {
		got := n.until(o, condition, status, "")
		for _, text := range texts {
			if !strings.Contains(got, text) {
				return fmt.Errorf("%s of %s does not say %q: %s", condition, o.GetName(), text, got)
			}
		}
		return nil
	})
}

// TestAppsAreUnderThePoliciesOfTheirTenant: an app that breaks a rule is refused before anything is applied, and delivered as soon as the policy
// allows it. What a rule only warns about is delivered, and the App says so.
func TestAppsAreUnderThePoliciesOfTheirTenant(t *testing.T) {
	n := newTeam(t, "policed")
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	n.under(policy("registry", v1alpha1.DenyAction, "registry.example.com"), policy("wish", v1alpha1.WarnAction, "registry.example.com/good"))
	n.push(imageFile("web", "  image: {reference: evil.org/web:v1, replicas: 0}\n"))
	web := n.app("shop", "web")
	n.states(web, v1alpha1.AllowedCondition, metav1.ConditionFalse, "Deployment/web has the image evil.org/web:v1, which is not among the allowed ones: "+
		"registry.example.com; change that in Git, or ask an administrator of the cluster to change spec.images.allow of policies/policed-registry.yaml "+
		"in the platform repository")
	warning := "Deployment/web has the image evil.org/web:v1, which is not among the allowed ones: registry.example.com/good; see spec.images.allow of policies/policed-wish.yaml"
	n.states(web, v1alpha1.PolicyWarningCondition, metav1.ConditionTrue, warning)

	// The policy changes, not the app.
	live := &v1alpha1.Policy{}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKey{Name: "policed-registry"}, live); err != nil {
			return err
		}
		live.Spec.Images.Allow = []string{"registry.example.com", "evil.org"}
		return n.admin.Update(t.Context(), live)
	})
	n.ready(web)
	n.states(web, v1alpha1.PolicyWarningCondition, metav1.ConditionTrue, warning)
	n.push(imageFile("web", "  image: {reference: registry.example.com/good/web:v1, replicas: 0}\n"))
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		if c := conditions.Get(web, v1alpha1.PolicyWarningCondition); c != nil {
			return fmt.Errorf("still warned: %s", c.Message)
		}
		return nil
	})
	n.ready(web)
}

// TestNobodyElseChangesGuardrails: neither an account with all rights in the namespace nor an owner can change the rules. They stay as they are
// while a policy is missing, and without them nothing may start.
func TestNobodyElseChangesGuardrails(t *testing.T) {
	n, bot := limited(t, "fenced")
	n.serveRoutes()
	n.own(v1alpha1.Owner{Kind: "User", Name: "fenced-lead", Role: "admin"})
	n.under(policy("registry", v1alpha1.DenyAction, "registry.example.com"))
	pod := func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), placed("Pod", "hostname: a")), client.DryRunAll)
	}
	n.denied(pod, "Images: Pod/x has the image a, which is not among the allowed ones: registry.example.com")

	key := client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName}
	guardrails := &v1alpha1.Guardrails{}
	lead := n.as("fenced-lead")
	n.passes(func() error { return lead.Get(t.Context(), key, guardrails) })
	for name, try := range map[string]func(client.Client) error{
		"change": func(c client.Client) error {
			return c.Patch(t.Context(), guardrails.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":null}`)), client.DryRunAll)
		},
		"delete": func(c client.Client) error { return c.Delete(t.Context(), guardrails.DeepCopy(), client.DryRunAll) },
		"create": func(c client.Client) error {
			return c.Create(t.Context(), &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, client.DryRunAll)
		},
	} {
		for who, c := range map[string]client.Client{"the lead": lead, "the deployer": n.as("system:serviceaccount:" + n.namespace() + ":kubeop-deployer"), "an account with all rights": bot} {
			if err := try(c); err == nil || !strings.Contains(err.Error(), "forbidden") {
				t.Errorf("%s may %s guardrails: %v", who, name, err)
			}
		}
	}

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = []string{"fenced-registry", "fenced-gone"} })
	n.states(n.project("shop"), v1alpha1.GuardrailsReadyCondition, metav1.ConditionFalse, "spec.policies of tenant fenced names what does not exist: fenced-gone")
	n.denied(pod, "Images: Pod/x has the image a")
	n.eventually(func() error {
		if err := n.admin.Delete(t.Context(), guardrails.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := pod(); err == nil || !strings.Contains(err.Error(), "no params found") {
			return errors.Join(errors.New("a pod may start without guardrails"), err)
		}
		return nil
	})
	for _, text := range []string{fmt.Sprintf(service, ""), ingressOf("x", "web.fenced.example"), "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: x}, spec: {hostnames: [web.fenced.example]}}"} {
		n.denied(func() error { return bot.Create(t.Context(), n.object(n.namespace(), text), client.DryRunAll) }, "'kubeop-guardrails-present'", "no params found")
	}
	claim := "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	if err := n.admin.Create(t.Context(), n.object(n.namespace(), claim), client.DryRunAll); err != nil {
		t.Errorf("a claim cannot be restored before the guardrails: %v", err)
	}
	namespace := &corev1.Namespace{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: n.namespace()}, namespace); err != nil || namespace.Labels[v1alpha1.GuardrailsLabel] != v1alpha1.GuardrailsEnforced {
		t.Errorf("labels %v, %v", namespace.Labels, err)
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = []string{"fenced-registry"} })
	n.denied(pod, "Images: Pod/x has the image a")
}

// TestATenantsHostsAreBelowItsDomains: kubeop refuses others before anything is applied, and the API server from everybody.
func TestATenantsHostsAreBelowItsDomains(t *testing.T) {
	n, bot := limited(t, "domained")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Domains = []string{"domained.example"} })
	n.reserve("web.domained.example", "*.domained.example")
	ingress := func(host string) error {
		return bot.Create(t.Context(), n.object(n.namespace(), "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {rules: [{host: '"+host+
			"', http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}}"), client.DryRunAll)
	}
	n.denied(func() error { return ingress("web.other.example") }, "Hostnames: Ingress/x has the host web.other.example, which is not below the allowed domains: domained.example. See spec.domains of the Tenant")
	n.denied(func() error { return ingress("") }, "Hostnames: Ingress/x serves every host name", "See spec.domains of the Tenant")
	for _, host := range []string{"web.domained.example", "*.domained.example"} {
		if err := ingress(host); err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Error(err)
		}
	}
	spec := "  image: {reference: registry.example/web:v1, replicas: 0, ports: [{name: http, port: 8080, servicePort: 80}]}\n  host: "
	n.push(imageFile("site", spec+"web.other.example\n"))
	site := n.app("shop", "site")
	n.states(site, v1alpha1.AllowedCondition, metav1.ConditionFalse, "has the host web.other.example, which is not below the allowed domains: domained.example; "+
		"change that in Git, or ask an administrator of the cluster to change spec.domains of the tenant's tenant.yaml in the platform repository")
	n.push(imageFile("site", spec+"web.domained.example\n"))
	n.until(site, v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
}

// TestAppsAreMadeFromTheSourcesThatTheirPolicyAllows: nothing is fetched from another one, by an app or for the dependencies of a chart, and the app is
// delivered as soon as the policy allows it.
func TestAppsAreMadeFromTheSourcesThatTheirPolicyAllows(t *testing.T) {
	n := newTeam(t, "sourced")
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	repo := testsources.NewGitRepo(t)
	repo.Write("a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: fetched}}")
	repo.Push("first")
	server := testsources.ServeGit(t, repo, httptest.NewServer)
	rules := &v1alpha1.SourceRules{Action: v1alpha1.DenyAction, Git: &v1alpha1.URLPatterns{Allow: []string{"git.example.com"}}}
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "from"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Sources: rules}}})
	n.push(map[string]string{"projects/shop/apps/web/app.yaml": fmt.Sprintf(
		"apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec:\n  type: Git\n  git: {url: %q}\n", server.RepoURL())})
	web := n.app("shop", "web")
	n.states(web, v1alpha1.SourceReadyCondition, metav1.ConditionFalse, fmt.Sprintf("App/web is fetched from %s, which is not among the allowed sources: git.example.com; "+
		"change that in Git, or ask an administrator of the cluster to change spec.sources.git.allow of policies/sourced-from.yaml in the platform repository", server.RepoURL()))
	n.states(web, v1alpha1.ReadyCondition, metav1.ConditionFalse, "App/web is fetched from")
	live := &v1alpha1.Policy{}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKey{Name: "sourced-from"}, live); err != nil {
			return err
		}
		live.Spec.Sources.Git.Allow = []string{"git.example.com", strings.Replace(server.URL, "127.0.0.1", "*", 1)}
		return n.admin.Update(t.Context(), live)
	})
	n.ready(web)
}
