package project

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/delivered"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

func reaching(ranges ...string) *v1alpha1.Tenant {
	return acme(func(t *v1alpha1.Tenant) { t.Spec.Egress = ranges })
}

func TestEgressLeavesOutTheClustersOwnNetworks(t *testing.T) {
	node := netip.MustParsePrefix("10.0.1.5/32")
	for name, c := range map[string]struct {
		egress []string
		err    error
		want   []isolation.Range
		closed []string
		fails  string
	}{
		"none":                              {},
		"nothing of the cluster's networks": {egress: []string{"203.0.113.0/24"}, want: []isolation.Range{{CIDR: "203.0.113.0/24"}}},
		"a part of the cluster's networks":  {egress: []string{"10.0.0.0/8"}, want: []isolation.Range{{CIDR: "10.0.0.0/8", Except: []string{"10.0.1.5/32"}}}},
		"all of the cluster's networks":     {egress: []string{"10.96.0.0/12", "203.0.113.0/24"}, want: []isolation.Range{{CIDR: "203.0.113.0/24"}}, closed: []string{"10.96.0.0/12"}},
		"no range":                          {egress: []string{"10.0.0.0/33"}, fails: `reading the egress of tenant acme: reading egress "10.0.0.0/33": netip.ParsePrefix("10.0.0.0/33"): prefix length out of range`},
		"networks are unknown":              {egress: []string{"10.0.0.0/8"}, err: errAway, fails: errAway.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.networks.except = map[string][]netip.Prefix{"10.0.0.0/8": {node}}
			b.networks.all, b.networks.err = map[string]bool{"10.96.0.0/12": true}, c.err
			s := b.with(shop(), reaching(c.egress...))
			s.network.closed = []string{"of before"}
			got, ports, err := b.egress(t.Context(), s)
			if (err != nil) != (c.fails != "") || (err != nil && err.Error() != c.fails) {
				t.Fatalf("got %v, want %s", err, c.fails)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(ports) > 0 {
				t.Errorf("only ports %v", ports)
			}
			if diff := cmp.Diff(c.closed, s.network.closed); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPoliciesNarrowTheEgressOfATenant, and give one to a tenant that has none of its own.
func TestPoliciesNarrowTheEgressOfATenant(t *testing.T) {
	https := []v1alpha1.EgressPort{{Port: 443}}
	policy := func(name string, rule *v1alpha1.EgressRules) v1alpha1.Policy {
		return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{Egress: rule}}
	}
	web := policy("web", &v1alpha1.EgressRules{CIDRs: []string{"0.0.0.0/0"}, Ports: https})
	for name, c := range map[string]struct {
		egress   []string
		policies []v1alpha1.Policy
		want     []isolation.Range
		ports    []isolation.Ports
		summary  string
	}{
		"no rule about egress": {policies: []v1alpha1.Policy{policy("images", nil)}},
		"nothing in common": {egress: []string{"203.0.113.0/24"}, policies: []v1alpha1.Policy{policy("office", &v1alpha1.EgressRules{CIDRs: []string{"198.51.100.0/24"}})},
			summary: "; nothing outside of the cluster can be reached, because no address and port is in spec.egress of all of: tenant.yaml, policies/office.yaml"},
		"a policy, and a tenant that says nothing": {policies: []v1alpha1.Policy{web},
			want: []isolation.Range{{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8"}}}, ports: []isolation.Ports{{Protocol: "TCP", First: 443, Last: 443}}},
		"a policy and a tenant": {egress: []string{"203.0.113.0/24"}, policies: []v1alpha1.Policy{web},
			want: []isolation.Range{{CIDR: "203.0.113.0/24"}}, ports: []isolation.Ports{{Protocol: "TCP", First: 443, Last: 443}}},
		"the cluster's own": {policies: []v1alpha1.Policy{policy("wide", &v1alpha1.EgressRules{CIDRs: []string{"10.96.0.0/12"}})},
			summary: "; the egress of tenant acme to 10.96.0.0/12 is not let through, because all of it is the cluster's own"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.networks.except = map[string][]netip.Prefix{"0.0.0.0/0": {netip.MustParsePrefix("10.0.0.0/8")}}
			b.networks.all = map[string]bool{"10.96.0.0/12": true}
			s := b.with(shop(), reaching(c.egress...))
			s.rules.policies = c.policies
			got, ports, err := b.egress(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.ports, ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
			if got, want := s.Summary(), "Apps live in namespace kubeop-acme-shop"+c.summary; got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}

func amounts(list corev1.ResourceList) map[string]string {
	all := map[string]string{}
	for name, amount := range list {
		all[string(name)] = amount.String()
	}
	return all
}

func TestGuardBoundsANamespace(t *testing.T) {
	project := shop(func(p *v1alpha1.Project) {
		p.Spec.Quota = corev1.ResourceList{"requests.cpu": resource.MustParse("3")}
		p.Spec.Limits.Default = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		p.Spec.Limits.DefaultRequest = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m")}
	})
	b := newFixture(t)
	if got := steptest.Outcome(t, b.guard(t.Context(), b.with(project, reaching("203.0.113.0/24")))); got != "done" {
		t.Fatalf("got %q, want %q", got, "done")
	}
	meta := metav1.ObjectMeta{Namespace: shopNamespace, Name: guardName}
	quota, limits := &corev1.ResourceQuota{ObjectMeta: meta}, &corev1.LimitRange{ObjectMeta: meta}
	priority := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: guardName + "-priority"}}
	if !b.get(quota) || !b.get(limits) || !b.get(priority) {
		t.Fatal("not all is there")
	}
	hard := amounts(quota.Spec.Hard)
	if hard["requests.cpu"] != "3" || hard["count/pods"] == "" || hard["count/configmaps"] == "" {
		t.Errorf("the quota is %v", hard)
	}
	item := limits.Spec.Limits[0]
	if diff := cmp.Diff(map[string]string{"memory": "1Gi", "ephemeral-storage": "10Gi"}, amounts(item.Default)); diff != "" {
		t.Errorf("default limits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"cpu": "5m", "memory": "64Mi", "ephemeral-storage": "64Mi"}, amounts(item.DefaultRequest)); diff != "" {
		t.Errorf("default requests (-want +got):\n%s", diff)
	}
	if item.Type != corev1.LimitTypeContainer {
		t.Errorf("limits are of a %s, want %s", item.Type, corev1.LimitTypeContainer)
	}
	if diff := cmp.Diff(map[string]string{"pods": "0"}, amounts(priority.Spec.Hard)); diff != "" {
		t.Errorf("pods of the system's priorities (-want +got):\n%s", diff)
	}
	expression := priority.Spec.ScopeSelector.MatchExpressions[0]
	if diff := cmp.Diff([]string{"system-node-critical", "system-cluster-critical"}, expression.Values); diff != "" || expression.Operator != corev1.ScopeSelectorOpIn {
		t.Errorf("%s (-want +got):\n%s", expression.Operator, diff)
	}
	policies := &networkingv1.NetworkPolicyList{}
	if err := b.api.List(t.Context(), policies, client.InNamespace(shopNamespace)); err != nil || len(policies.Items) != 1 {
		t.Fatalf("%d network policies, %v", len(policies.Items), err)
	}
	if !slices.ContainsFunc(policies.Items[0].Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		return len(rule.To) > 0 && rule.To[0].IPBlock != nil && rule.To[0].IPBlock.CIDR == "203.0.113.0/24"
	}) {
		t.Errorf("egress is %v", policies.Items[0].Spec.Egress)
	}
}

// TestAProjectMadeAgainIsOpened: an earlier project of this name closed its namespace with a quota when it was removed.
func TestAProjectMadeAgainIsOpened(t *testing.T) {
	closed := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: namespace.ClosedQuota, Labels: shopLabels}}
	b := newFixture(t, closed)
	b.Watch = watchtest.New(t, b.api, quotaKind)
	b.Direct = interceptor.NewClient(b.api, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errAway }})
	if got := steptest.Outcome(t, b.guard(t.Context(), b.with(shop(), acme()))); got != "failed Failed: opening namespace kubeop-acme-shop: the API server is away" || !b.get(closed) {
		t.Errorf("got %q", got)
	}
	b.Direct = b.api
	if got := steptest.Outcome(t, b.guard(t.Context(), b.with(shop(), acme()))); got != "done" || b.get(closed) {
		t.Errorf("got %q", got)
	}
	b.Watch = watchtest.New(t, b.api)
	if got := steptest.Outcome(t, b.guard(t.Context(), b.with(shop(), acme()))); got == "done" {
		t.Error("it is done while quotas are not known")
	}
}

// TestAProjectSaysWhichOfItsLimitsDoNotFitTogether, and counts NetworkPolicies only if its apps may have such.
func TestAProjectSaysWhichOfItsLimitsDoNotFitTogether(t *testing.T) {
	for _, c := range []struct {
		project *v1alpha1.Project
		counts  bool
	}{{shop(), false}, {shop(opensItself), true}} {
		b := newFixture(t)
		s := b.ruled(c.project)
		cpu := func(amount string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
		}
		s.rules.policies = []v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: v1alpha1.PolicySpec{Limits: &v1alpha1.LimitRules{Max: cpu("1"), Min: cpu("2")}}}}
		if got := steptest.Outcome(t, b.guard(t.Context(), s)); got != "done" || !strings.Contains(s.Summary(), "; limits contradict each other: ") {
			t.Errorf("got %q, %q", got, s.Summary())
		}
		live := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: guardName}}
		b.get(live)
		if _, counts := live.Spec.Hard["count/networkpolicies.networking.k8s.io"]; counts != c.counts {
			t.Errorf("counted: %t, want %t: %v", counts, c.counts, amounts(live.Spec.Hard))
		}
	}
}

// TestTheNetworkPolicyOfAProjectOpensAllThatItMayHave: for pods of the platform, of other projects and addresses at a port.
func TestTheNetworkPolicyOfAProjectOpensAllThatItMayHave(t *testing.T) {
	b := newFixture(t, connecting("kubeop-acme", "web"), connecting("kubeop-acme", "billing", "shop"))
	b.Admitted = []map[string]string{{"purpose": "ingress"}}
	s := b.with(connecting("kubeop-acme", "shop", "web"), acme())
	s.rules.policies = []v1alpha1.Policy{{Spec: v1alpha1.PolicySpec{Egress: &v1alpha1.EgressRules{CIDRs: []string{"203.0.113.0/24"}, Ports: []v1alpha1.EgressPort{{Port: 443}}}}}}
	if got := steptest.Outcome(t, b.guard(t.Context(), s)); got != "done" {
		t.Fatal(got)
	}
	live := everything("kubeop")
	b.get(live)
	ingress, egress := live.Spec.Ingress, live.Spec.Egress
	for _, c := range []struct {
		of   any
		want string
	}{{ingress, `"purpose":"ingress"`}, {ingress, "kubeop-acme-web"}, {egress, "kubeop-acme-billing"}, {egress, "203.0.113.0/24"}, {egress, `"port":443`}} {
		text, err := json.Marshal(c.of)
		if err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("%s is not in %s, %v", c.want, text, err)
		}
	}
}

func TestGuardStopsWhereOnlyPeopleCanHelp(t *testing.T) {
	b := newFixture(t)
	larger := shop(func(p *v1alpha1.Project) { p.Spec.Quota = corev1.ResourceList{"requests.cpu": resource.MustParse("9")} })
	tenant := acme(func(a *v1alpha1.Tenant) { a.Spec.Quota = corev1.ResourceList{"requests.cpu": resource.MustParse("4")} })
	if got := steptest.Outcome(t, b.guard(t.Context(), b.with(larger, tenant))); got != "later steps run; stopped QuotaExceeded: the project has only as much as is allowed: spec.quota requests requests.cpu 9, of which 4 is allowed; ask for less, or ask an administrator of the cluster for more with spec.quota of the Tenant, in tenant.yaml of the platform repository" {
		t.Errorf("a quota above the tenant's: %q", got)
	}
	lowered := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: guardName}}
	if !b.get(lowered) || amounts(lowered.Spec.Hard)["requests.cpu"] != "4" {
		t.Errorf("the quota is %v", amounts(lowered.Spec.Hard))
	}
	theirs := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: guardName}}
	b = newFixture(t, theirs)
	if got := steptest.Outcome(t, b.guard(t.Context(), b.with(shop(), acme()))); got != "stopped ApplyFailed: LimitRange/kubeop: exists already; if nobody needs it, an administrator of the cluster may run: kubectl delete limitrange kubeop -n kubeop-acme-shop, or give this one another name in Git" {
		t.Errorf("limits of others: %q", got)
	}
	b = newFixture(t)
	b.networks.err = errAway
	if got := steptest.Outcome(t, b.guard(t.Context(), b.with(shop(), reaching("10.0.0.0/8")))); got != "failed Failed: the API server is away" {
		t.Errorf("networks that are not known: %q", got)
	}
}

func TestTheNamespaceIsHeldToTheTenantsPodSecurity(t *testing.T) {
	for level, want := range map[string]string{"": "restricted", "baseline": "baseline"} {
		b := newFixture(t)
		tenant := acme(func(a *v1alpha1.Tenant) { a.Spec.PodSecurity, a.Spec.PriorityClasses = level, []string{"high"} })
		if err := b.makeNamespace(t.Context(), b.with(shop(), tenant)); err != nil {
			t.Fatal(err)
		}
		ns := namespaceOf("")
		if !b.get(ns) || ns.Labels[v1alpha1.FrozenLabel]+ns.Labels[v1alpha1.StoppedLabel] != "" || ns.Labels[v1alpha1.GuardrailsLabel] == "" || ns.Labels["pod-security.kubernetes.io/enforce"] != want || ns.Labels["pod-security.kubernetes.io/enforce-version"] != "latest" || ns.Annotations[v1alpha1.PriorityClassesAnnotation] != "high" || ns.Annotations[v1alpha1.TenantUIDAnnotation] != "uid-1" {
			t.Errorf("of level %q the namespace is %v, %v", level, ns.Labels, ns.Annotations)
		}
	}
}

// TestWhereServicesLeadIsAlwaysOfThePolicies: a namespace from before the annotations is written once, also if somebody else put one there, and then no more.
func TestWhereServicesLeadIsAlwaysOfThePolicies(t *testing.T) {
	b := newFixture(t)
	writes := 0
	b.fault = func(verb string, o any, _ string) error {
		if of, is := o.(client.Object); (verb == "patch" || verb == "apply") && (!is || of.GetObjectKind().GroupVersionKind().Kind == "Namespace") {
			writes++
		}
		return nil
	}
	s := b.with(shop(), acme())
	before := namespace.Object(shopNamespace, s.ownedBy(s.tenant), namespace.Terms{PodSecurity: "restricted", Guardrails: true})
	if err := s.made.Apply(t.Context(), before); err != nil || writes != 1 {
		t.Fatalf("%d writes before the upgrade, %v", writes, err)
	}
	ns := namespaceOf("")
	if !b.get(ns) || len(ns.Annotations) != 1 {
		t.Fatalf("before the upgrade, the annotations are %v", ns.Annotations)
	}
	ns.Annotations["paas.kubeop.io/external-ips"] = "0.0.0.0/1"
	if err := b.api.Update(t.Context(), ns, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	for look := range 3 {
		s = b.again(s)
		if err := b.makeNamespace(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if writes != 2 {
			t.Errorf("%d writes after look %d, want 2", writes, look+1)
		}
		if !b.get(ns) {
			t.Fatal("the namespace is gone")
		}
		for _, annotation := range []string{"paas.kubeop.io/external-names", "paas.kubeop.io/external-ips"} {
			if value, there := ns.Annotations[annotation]; value != "" || !there {
				t.Errorf("%s is %q, there: %t", annotation, value, there)
			}
		}
	}
	s = b.again(s)
	s.rules.spec.Deny = []v1alpha1.AppliedPolicy{{Policy: "lists", PolicyRules: v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{ExternalIPs: []string{"192.0.2.0/28"}}}}}
	if err := b.makeNamespace(t.Context(), s); err != nil || !b.get(ns) || ns.Annotations["paas.kubeop.io/external-ips"] != "192.0.2.0/28" || ns.Annotations["paas.kubeop.io/external-names"] != "" {
		t.Errorf("with a policy, the annotations are %v, %v", ns.Annotations, err)
	}
}

func TestAFrozenTenantFreezesItsProjects(t *testing.T) {
	b := newFixture(t)
	tenant := acme(func(a *v1alpha1.Tenant) {
		a.Spec.Frozen, a.Annotations = true, map[string]string{v1alpha1.FolderAnnotation: "tenants/acme", v1alpha1.RevisionAnnotation: "main@sha1:1"}
	})
	s := b.with(shop(), tenant)
	if err := b.makeNamespace(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if ns := namespaceOf(""); !b.get(ns) || ns.Labels[v1alpha1.FrozenLabel] != "true" || ns.Labels[v1alpha1.StoppedLabel] != "" {
		t.Errorf("the labels of the namespace are %v", ns.Labels)
	}
	versioned := newFixture(t)
	ruled := versioned.with(shop(), acme())
	ruled.rules.spec.PodSecurity = &v1alpha1.AppliedPodSecurity{PodSecurityRules: v1alpha1.PodSecurityRules{Level: "restricted", Version: "v1.30"}}
	if err := versioned.makeNamespace(t.Context(), ruled); err != nil {
		t.Fatal(err)
	}
	if ns := namespaceOf(""); !versioned.get(ns) || ns.Labels["pod-security.kubernetes.io/enforce-version"] != "v1.30" {
		t.Errorf("with a version of a policy, the labels of the namespace are %v", ns.Labels)
	}
	warned := newFixture(t)
	ruled = warned.with(shop(), acme(func(a *v1alpha1.Tenant) { a.Spec.PodSecurity = "baseline" }))
	ruled.rules.spec.PodSecurityNotices = []v1alpha1.AppliedPodSecurity{{PodSecurityRules: v1alpha1.PodSecurityRules{Action: v1alpha1.AuditAction, Level: "restricted", Version: "v1.30"}}}
	if err := warned.makeNamespace(t.Context(), ruled); err != nil {
		t.Fatal(err)
	}
	if ns := namespaceOf(""); !warned.get(ns) || ns.Labels["pod-security.kubernetes.io/enforce"] != "baseline" || ns.Labels["pod-security.kubernetes.io/warn"] != "baseline" || ns.Labels["pod-security.kubernetes.io/audit"] != "restricted" || ns.Labels["pod-security.kubernetes.io/audit-version"] != "v1.30" {
		t.Errorf("with a level that is only recorded, the labels of the namespace are %v", ns.Labels)
	}
	halted := newFixture(t)
	if err := halted.makeNamespace(t.Context(), halted.with(shop(), acme(stopped))); err != nil {
		t.Fatal(err)
	}
	if ns := namespaceOf(""); !halted.get(ns) || ns.Labels[v1alpha1.FrozenLabel] != "" || ns.Labels[v1alpha1.StoppedLabel] != "true" {
		t.Errorf("of a stopped tenant, the labels of the namespace are %v", ns.Labels)
	}
	const want = "only administrators of the cluster change anything of tenant acme, until an administrator of the cluster removes spec.frozen from " +
		"tenants/acme/tenant.yaml of the platform repository in Git; that file is of main@sha1:1"
	if !slices.ContainsFunc(s.Notes(), func(n step.Note) bool {
		return n.Condition == v1alpha1.FrozenCondition && n.Status == metav1.ConditionTrue && n.Reason == v1alpha1.FrozenReason && n.Message == want
	}) || s.Heading() != "Frozen by administrators; " {
		t.Errorf("the notes are %+v, the heading is %q", s.Notes(), s.Heading())
	}
}

func TestTheSummaryNamesClosedAndLoweredGuardrails(t *testing.T) {
	b := newFixture(t)
	s := b.with(shop(), acme())
	for _, c := range []struct {
		network network
		lowered bool

		conflicts, contradictions []string

		want string
	}{
		{want: "Apps live in namespace kubeop-acme-shop"},
		{network: network{closed: []string{"10.0.0.0/16", "fd00::/8"}}, want: "Apps live in namespace kubeop-acme-shop; the egress of tenant acme to 10.0.0.0/16, fd00::/8 is not let through, because all of it is the cluster's own"},
		{lowered: true, want: "Apps live in namespace kubeop-acme-shop; its quota lets fewer objects be made than usual, because those of tenant acme are near spec.limits.storeBytes of the Tenant"},
		{conflicts: []string{"a", "b", "c", "d"}, want: "Apps live in namespace kubeop-acme-shop; limits contradict each other: a; b; c; and 1 more"},
		{contradictions: []string{"label x"}, want: "Apps live in namespace kubeop-acme-shop; policies contradict each other about labels and annotations, which no object gets until an administrator of the cluster changes one of them in Git: label x"},
	} {
		s.network, s.lowered, s.conflicts, s.rules.contradictions = c.network, c.lowered, c.conflicts, c.contradictions
		if got := s.Summary(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// woken collects what is added to a queue.
type woken struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	names chan string
}

func newWoken() *woken { return &woken{names: make(chan string, 20)} }

func (w *woken) Add(r reconcile.Request) { w.names <- r.String() }
func (w *woken) AddAfter(r reconcile.Request, after time.Duration) {
	w.names <- r.String() + " after " + after.String()
}

// all returns so many names, sorted.
func (w *woken) all(n int) []string {
	var names []string
	for range n {
		select {
		case name := <-w.names:
			names = append(names, name)
		case <-time.After(time.Minute):
		}
	}
	slices.Sort(names)
	return names
}

func labelled(o client.Object, tenant, project, app string) client.Object {
	labels := map[string]string{}
	for label, value := range map[string]string{v1alpha1.TenantLabel: tenant, v1alpha1.ProjectLabel: project, v1alpha1.AppLabel: app} {
		if value != "" {
			labels[label] = value
		}
	}
	o.SetLabels(labels)
	return o
}

func TestAnObjectWakesTheProjectItWasMadeForWhereItsLabelsFit(t *testing.T) {
	in := func(namespace, name string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "kubeop-acme", Name: "shop"}}}
	for name, c := range map[string]struct {
		object client.Object
		want   []reconcile.Request
	}{
		"in the project's namespace":     {labelled(in(shopNamespace, "kubeop"), "acme", "shop", ""), want},
		"the namespace itself":           {labelled(in("", shopNamespace), "acme", "shop", ""), want},
		"its rights in the cluster":      {labelled(in("", "kubeop-cluster-acme-shop"), "acme", "shop", ""), want},
		"another object of the cluster":  {labelled(in("", "something"), "acme", "shop", ""), nil},
		"of an app":                      {labelled(in(shopNamespace, "web"), "acme", "shop", "web"), nil},
		"in the namespace of another":    {labelled(in("kubeop-rival-shop", "kubeop"), "acme", "shop", ""), nil},
		"labels of a tenant alone":       {labelled(in("kubeop-acme", "kubeop"), "acme", "", ""), nil},
		"labels of a project alone":      {labelled(in("kubeop--shop", "kubeop"), "", "shop", ""), nil},
		"labels that name nobody at all": {in(shopNamespace, "kubeop"), nil},
	} {
		if diff := cmp.Diff(c.want, madeFor(t.Context(), c.object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAppsThatComeGoOrChangeWakeTheirProject(t *testing.T) {
	queue, counting := newWoken(), rollup.Handler(requestOf)
	app := labelled(appOf(shopNamespace, "web"), "acme", "shop", "")
	counting.Create(t.Context(), event.CreateEvent{Object: app}, queue)
	counting.Delete(t.Context(), event.DeleteEvent{Object: app}, queue)
	counting.Update(t.Context(), event.UpdateEvent{ObjectOld: app, ObjectNew: app}, queue)
	if diff := cmp.Diff([]string{"kubeop-acme/shop after 1s", "kubeop-acme/shop after 2s", "kubeop-acme/shop after 2s"}, queue.all(3)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATenantsProjectsAndOnlyTheseAreWoken(t *testing.T) {
	blog, rivals := shop(func(p *v1alpha1.Project) { p.Name = "blog" }), shop(func(p *v1alpha1.Project) { p.Namespace = "kubeop-rival" })
	b := newFixture(t, acme(), shop(), blog, rivals)
	queue := newWoken()
	if err := b.onNetworks().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	b.networks.change()
	if diff := cmp.Diff([]string{"kubeop-acme/blog", "kubeop-acme/shop", "kubeop-rival/shop"}, queue.all(3)); diff != "" {
		t.Errorf("by other networks (-want +got):\n%s", diff)
	}
	var names []string
	for _, request := range b.projectsOf(context.Background(), acme()) {
		names = append(names, request.String())
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"kubeop-acme/blog", "kubeop-acme/shop"}, names); diff != "" {
		t.Errorf("by the tenant (-want +got):\n%s", diff)
	}
}

// TestAPolicyAndARegistryWakeTheProjectsOfTheirTenants, and of no others.
func TestAPolicyAndARegistryWakeTheProjectsOfTheirTenants(t *testing.T) {
	policy := func(name string, usual bool) *v1alpha1.Policy {
		return &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{Default: usual}}
	}
	registry := func(spec v1alpha1.RegistrySpec) *v1alpha1.Registry {
		return &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "hub"}, Spec: spec}
	}
	rival := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "rival"}}
	b := newFixture(t, acme(func(a *v1alpha1.Tenant) { a.Spec.Policies = []string{"strict"} }), rival, policy("strict", false), policy("base", true),
		shop(), shop(func(p *v1alpha1.Project) { p.Namespace = "kubeop-rival" }))
	for name, c := range map[string]struct {
		woken func() []reconcile.Request
		want  []string
	}{
		"a policy that a tenant names": {func() []reconcile.Request { return b.under(t.Context(), policy("strict", false)) }, []string{"kubeop-acme/shop"}},
		"a default policy":             {func() []reconcile.Request { return b.under(t.Context(), policy("base", true)) }, []string{"kubeop-rival/shop"}},
		"a policy for nobody":          {func() []reconcile.Request { return b.under(t.Context(), policy("other", false)) }, nil},
		"a registry of a tenant": {func() []reconcile.Request {
			return b.using(t.Context(), registry(v1alpha1.RegistrySpec{Tenants: []string{"rival"}}))
		}, []string{"kubeop-rival/shop"}},
		"a registry of a policy": {func() []reconcile.Request {
			return b.using(t.Context(), registry(v1alpha1.RegistrySpec{Policies: []string{"strict"}}))
		}, []string{"kubeop-acme/shop"}},
		"a registry that nobody may use": {func() []reconcile.Request { return b.using(t.Context(), registry(v1alpha1.RegistrySpec{})) }, nil},
	} {
		var names []string
		for _, request := range c.woken() {
			names = append(names, request.String())
		}
		if diff := cmp.Diff(c.want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	queue := newWoken()
	if err := b.Tier.Source(b.wakeAll).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(b.Tier.Kind, meta.RESTScopeRoot)
	b.Tier.Mapper = mapper
	b.Tier.Look()
	if diff := cmp.Diff([]string{"kubeop-acme/shop", "kubeop-rival/shop"}, queue.all(2)); diff != "" {
		t.Errorf("a cluster that begins to serve ClusterNetworkPolicies (-want +got):\n%s", diff)
	}
}

// TestTheNotesOfAProjectAreOfItsAppsAndOfWhatTheyDelivered, as far as they are known.
func TestTheNotesOfAProjectAreOfItsAppsAndOfWhatTheyDelivered(t *testing.T) {
	b := newFixture(t, acme(), shop())
	s := b.with(shop(), acme())
	s.current.Notes = []step.Note{{Condition: v1alpha1.CurrentCondition}}
	kinds := func() (all []string) {
		for _, note := range s.Notes() {
			all = append(all, note.Condition)
		}
		return all
	}
	if diff := cmp.Diff([]string{v1alpha1.CurrentCondition, v1alpha1.PromotionPendingCondition, v1alpha1.FrozenCondition}, kinds()); diff != "" || s.Again() != 0 {
		t.Errorf("before the apps are known, again after %s (-want +got):\n%s", s.Again(), diff)
	}
	s.apps = &rollup.Apps{}
	s.delivered = &delivered.Report{Notes: []step.Note{{Condition: "Delivered"}}, Again: time.Minute}
	if diff := cmp.Diff([]string{v1alpha1.CurrentCondition, v1alpha1.PromotionPendingCondition, v1alpha1.FrozenCondition, s.apps.Note().Condition, "Delivered"}, kinds()); diff != "" || s.Again() != time.Minute {
		t.Errorf("again after %s (-want +got):\n%s", s.Again(), diff)
	}
	if s.Record(); len(s.project.Status.Promoted) != 1 || s.project.Status.Promoted[0].App != s.project.Name+"-web" {
		t.Errorf("promoted is %+v", s.project.Status.Promoted)
	}
	if len(s.current.Notes) != 1 {
		t.Errorf("the notes of the version have become %v", s.current.Notes)
	}
}

// TestNoQuotaIsSetWhileItsKindsAreUnknown: it would leave out kinds, and objects of these would not be counted.
func TestNoQuotaIsSetWhileItsKindsAreUnknown(t *testing.T) {
	b := newFixture(t)
	b.fault = func(_ string, o any, _ string) error {
		switch o.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleList:
			return errAway
		}
		return nil
	}
	if got := steptest.Outcome(t, b.guard(t.Context(), b.with(shop(), acme()))); !strings.Contains(got, errAway.Error()) {
		t.Errorf("got %q, want %q in it", got, errAway)
	}
	uncounted := newFixture(t)
	uncounted.Store.Quota = func(string) (*corev1.ResourceQuota, error) { return nil, errAway }
	if got := steptest.Outcome(t, uncounted.guard(t.Context(), uncounted.with(shop(), acme()))); got != "failed Failed: the API server is away" {
		t.Errorf("while it is not known what is used: %q", got)
	}
	if b.get(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: guardName}}) {
		t.Error("a quota was set")
	}
}
