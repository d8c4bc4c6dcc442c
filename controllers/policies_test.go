package controllers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/signed"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/internal/testenv/ruled"
)

// under creates policies whose names begin with the team's, puts the tenant under them, and waits until the Guardrails of its project have their rules.
func (n *team) under(policies ...v1alpha1.Policy) {
	n.t.Helper()
	var names []string
	for i := range policies {
		policy := policies[i].DeepCopy()
		policy.Name = n.name + "-" + policy.Name
		policies[i].Name = policy.Name
		names = append(names, policy.Name)
		n.create(policy)
		n.t.Cleanup(func() { _ = n.admin.Delete(n.t.Context(), policy) })
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = names })
	n.guarded(guardrails.Of(policies))
}

// guarded waits until the Guardrails of the project have the rules.
func (n *team) guarded(want v1alpha1.GuardrailsSpec) {
	n.t.Helper()
	n.eventually(func() error {
		got := &v1alpha1.Guardrails{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName}, got); err != nil {
			return err
		}
		for _, list := range [][]v1alpha1.AppliedPolicy{want.Deny, want.Warn, want.Audit} {
			for i := range list {
				withActions(&list[i].PolicyRules)
			}
		}
		got.Spec.Hostnames, got.Spec.PodSecurity, got.Spec.Network = want.Hostnames, want.PodSecurity, want.Network // These are of the Tenant and the Project, too.
		got.Spec.PodSecurityNotices = want.PodSecurityNotices
		got.Spec.Added = want.Added // No rule.
		got.Spec.Signed, got.Spec.Limits = want.Signed, want.Limits
		if !equality.Semantic.DeepEqual(got.Spec, want) {
			return fmt.Errorf("the guardrails are %+v, want %+v", got.Spec, want)
		}
		return nil
	})
}

// withActions sets the action that the API server fills in.
func withActions(rules *v1alpha1.PolicyRules) {
	if r := rules.Images; r != nil && r.Action == "" {
		r.Action = v1alpha1.DenyAction
	}
	if r := rules.Services; r != nil && r.Action == "" {
		r.Action = v1alpha1.DenyAction
	}
	if r := rules.Hostnames; r != nil && r.Action == "" {
		r.Action = v1alpha1.DenyAction
	}
	if r := rules.Classes; r != nil && r.Action == "" {
		r.Action = v1alpha1.DenyAction
	}
	if r := rules.Nodes; r != nil && r.Action == "" {
		r.Action = v1alpha1.DenyAction
	}
	if r := rules.Kinds; r != nil && r.Action == "" {
		r.Action = v1alpha1.DenyAction
	}
	if r := rules.Metadata; r != nil && r.Action == "" {
		r.Action = v1alpha1.DenyAction
	}
	if r := rules.Sources; r != nil && r.Action == "" {
		r.Action = v1alpha1.DenyAction
	}
}

// TestTheAPIServerJudgesByPolicies asks the API server about the cases of package guardrails: it refuses what kubeop refuses, names a policy
// and field that kubeop names, and allows everything else.
func TestTheAPIServerJudgesByPolicies(t *testing.T) {
	n, _ := limited(t, "ruled")
	n.serveRoutes()
	groups := ruled.Read(t, "../delivery/guardrails/testdata/cases.yaml")
	var hosts []string
	for _, group := range groups {
		for _, c := range group.Cases {
			hosts = append(hosts, guardrails.Hosts(c.Object)...)
		}
	}
	n.reserve(hosts...)
	taints := []string{"pool", "gpu", "lone", "zone", "node.kubernetes.io/memory-pressure"} // Others are refused without a policy.
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Taints = taints })
	for i, group := range groups {
		for j := range group.Policies {
			group.Policies[j].Name = fmt.Sprintf("%d-%s", i, group.Policies[j].Name)
		}
		n.under(group.Policies...)
		n.sign(group)
		// What is refused comes first: once the API server refuses it, the rules of this group are in force there.
		slices.SortStableFunc(group.Cases, func(a, b ruled.Case) int { return cmp.Compare(min(len(b.Refused), 1), min(len(a.Refused), 1)) })
		for _, c := range group.Cases {
			n.judged(c, fmt.Sprintf("%s-%d-", n.name, i))
		}
	}
}

// sign lists the signed images of a group in the Guardrails of the project.
func (n *team) sign(group ruled.Group) {
	n.t.Helper()
	var all []signed.Verified
	rules := guardrails.Of(group.Policies)
	for _, applied := range rules.Deny {
		_, name, _ := strings.Cut(strings.TrimPrefix(applied.Policy, n.name+"-"), "-")
		for _, image := range group.Signed[name] {
			all = append(all, signed.Verified{Signatures: applied.Signatures, Image: image})
		}
	}
	list := &signed.Images{Client: n.masterful(operatorAccount)}
	n.eventually(func() error {
		done, err := list.Add(n.t.Context(), n.namespace(), all)
		if err == nil && !done {
			err = errors.New("the guardrails do not have the signed images")
		}
		return err
	})
}

// judged checks what the API server says about a case. The names of the policies begin with the prefix.
func (n *team) judged(c ruled.Case, prefix string) {
	n.t.Helper()
	c.Object.SetNamespace(n.namespace())
	n.eventually(func() error {
		err := n.admin.Create(n.t.Context(), c.Object.DeepCopy(), client.DryRunAll)
		byPolicy := err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'kubeop-guardrails-")
		switch {
		case meta.IsNoMatchError(err):
			return err
		case len(c.Refused) == 0 && byPolicy && env.OlderThan(36) && strings.Contains(err.Error(), "selects nodes with any "):
			return nil // A newer API server writes the labels of nodes into the pod.
		case len(c.Refused) == 0 && byPolicy:
			return fmt.Errorf("%s is refused: %w", c.Name, err)
		case len(c.Refused) == 0:
			return nil // It may lack what Kubernetes itself requires, such as a quota.
		case err == nil && env.OlderThan(35) && strings.Contains(c.Name, "imageVolume"):
			return nil // The API server drops the volume.
		case !byPolicy:
			return fmt.Errorf("%s is not refused by a policy: %w", c.Name, err)
		}
		for _, refused := range c.Refused {
			policy, field, _ := strings.Cut(refused, ": ")
			if strings.Contains(err.Error(), fmt.Sprintf("spec.%s of policy %s%s", field, prefix, policy)) {
				return nil
			}
		}
		return fmt.Errorf("%s: the message names none of %v: %w", c.Name, c.Refused, err)
	})
}

// TestPoliciesOfServicesSpareObjectsWithoutASpec: the rules of all families are in one admission policy, which also judges objects that have no spec. An
// expression that fails for these would refuse what no rule refuses. It would not do so to who may create Services everywhere, so the account of the project asks.
func TestPoliciesOfServicesSpareObjectsWithoutASpec(t *testing.T) {
	n, bot := limited(t, "specless")
	const kept = "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, labels: {old.example.org/a: b}}}"
	config := n.object(n.namespace(), kept)
	if err := n.admin.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "marks"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Metadata: &v1alpha1.MetadataRules{ForbiddenLabels: []string{"*.example.org/*"}},
		Classes:  &v1alpha1.ClassRules{Storage: []string{"fast"}},
		Services: &v1alpha1.ServiceRules{LoadBalancerClasses: []string{"inner"}},
	}}})
	create := func(o *unstructured.Unstructured) func() error {
		return func() error { return bot.Create(t.Context(), o.DeepCopy(), client.DryRunAll) }
	}
	another := config.DeepCopy()
	another.SetName("another")
	another.SetResourceVersion("")
	n.denied(create(another), "spec.metadata.forbiddenLabels of policy specless-marks") // The rules are in force from here on.
	n.passes(func() error {
		return bot.Patch(t.Context(), config.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"b"}}`)), client.DryRunAll)
	})
	const template = "{apiVersion: v1, kind: PodTemplate, metadata: {name: x}, template: {metadata: {labels: {a: b}}, spec: {" +
		"containers: [{name: x, image: registry.example.com/x}], volumes: [{name: x, ephemeral: {volumeClaimTemplate: {spec: {" +
		"accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: 1Gi}}}}}}]}}}"
	n.denied(create(n.object(n.namespace(), fmt.Sprintf(template, "slow"))), "spec.classes.storage of policy specless-marks")
	n.passes(create(n.object(n.namespace(), fmt.Sprintf(template, "fast"))))
}

// TestManyPoliciesAreAffordable: the API server ends the evaluation of an expression that costs too much, and then refuses the object. Many policies with rules of
// all families, which one admission policy judges, have to be cheap enough for a large pod and a large CronJob with many labels.
func TestManyPoliciesAreAffordable(t *testing.T) {
	n, _ := limited(t, "crowded")
	var policies []v1alpha1.Policy
	for i := range 8 {
		rules := &v1alpha1.ImageRules{Allow: []string{"registry.example.com/acme"}}
		for j := range 63 {
			rules.Allow = append(rules.Allow, fmt.Sprintf("registry-%d.example.com/team-%d/group", j, i))
			rules.Deny = append(rules.Deny, fmt.Sprintf("registry.example.com/acme/forbidden-%d", j))
		}
		others := everyFamily().Spec.PolicyRules
		others.Images, others.Metadata.RequiredLabels = rules, nil
		for j := range 30 {
			pattern := fmt.Sprintf("team-%d.example.com/*", j)
			if j < 8 { // Every key passes the cheap test of the condition.
				pattern = fmt.Sprintf("*%s-%d*", strings.Repeat("a", 24), j)
			}
			others.Metadata.ForbiddenLabels = append(others.Metadata.ForbiddenLabels, pattern)
			others.Metadata.ForbiddenAnnotations = append(others.Metadata.ForbiddenAnnotations, pattern)
			others.Nodes.Tolerations = append(others.Nodes.Tolerations, v1alpha1.AllowedToleration{Key: fmt.Sprintf("pool-%d", j)})
		}
		policies = append(policies, v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}, Spec: v1alpha1.PolicySpec{PolicyRules: others}})
	}
	n.under(policies...)
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Taints = []string{"pool-29"} })
	marks := map[string]any{}
	for i := range 40 {
		marks[fmt.Sprintf("app-%d.example.com/%s", i, strings.Repeat("a", 60))] = "web"
	}
	// large returns an object with marks at all places that have metadata; the last of them is that of the pod.
	large := func(kind, image string, places ...[]string) *unstructured.Unstructured {
		object := n.object(n.namespace(), placed(kind, "tolerations: [{key: pool-29, operator: Exists}]")) // The variables judge it, not only the conditions.
		for _, place := range places {
			for _, field := range []string{"labels", "annotations"} {
				if err := unstructured.SetNestedMap(object.Object, runtime.DeepCopyJSON(marks), slices.Concat(place, []string{"metadata", field})...); err != nil {
					t.Fatal(err)
				}
			}
		}
		path := slices.Concat(places[len(places)-1], []string{"spec", "containers"})
		containers, _, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		var all []any
		for i := range 20 {
			container := runtime.DeepCopyJSON(containers[0].(map[string]any))
			container["name"], container["image"] = fmt.Sprintf("c%d", i), fmt.Sprintf("registry.example.com/acme/applications/of/a/long/path/web-%d:1.2.3", i)
			all = append(all, container)
		}
		all[19].(map[string]any)["image"] = image
		if err := unstructured.SetNestedSlice(object.Object, all, path...); err != nil {
			t.Fatal(err)
		}
		return object
	}
	create := func(image string) func() error {
		return func() error { return n.admin.Create(t.Context(), large("Pod", image, nil), client.DryRunAll) }
	}
	n.denied(create("evil.org/web"), "Images: Pod/x has the image evil.org/web, which is not among the allowed ones")
	n.denied(create("registry.example.com/acme/forbidden-62/web"), "Images: Pod/x has the image registry.example.com/acme/forbidden-62/web, which is among the refused ones")
	if err := create("registry.example.com/acme/web")(); err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Error(err)
	}
	job := []string{"spec", "jobTemplate"}
	schedule := large("CronJob", "registry.example.com/acme/web", nil, job, slices.Concat(job, []string{"spec", "template"}))
	if err := n.admin.Create(t.Context(), schedule, client.DryRunAll); err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Error(err)
	}
}

// TestEveryKindIsJudged: what no other rule is about is judged by its kind alone, but what Kubernetes and kubeop need is let in.
func TestEveryKindIsJudged(t *testing.T) {
	n, _ := limited(t, "kindly")
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Kinds: &v1alpha1.KindRules{Allow: []string{"Pod"}}}}})
	create := func(text string) func() error {
		object := n.object(n.namespace(), text)
		return func() error { return n.admin.Create(t.Context(), object.DeepCopy(), client.DryRunAll) }
	}
	n.denied(create("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: x}, addressType: IPv4, endpoints: []}"),
		"'kubeop-guardrails-kinds-deny' denied request: Kinds: EndpointSlice/x is of kind EndpointSlice.discovery.k8s.io, which is not among the allowed ones: Pod")
	n.denied(create("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"), "'kubeop-guardrails-deny' denied request: Kinds: ConfigMap/x is of kind ConfigMap, which is not among the allowed ones: Pod")
	for _, text := range []string{
		"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}}",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: x}}",
		"{apiVersion: v1, kind: Event, metadata: {name: x}, involvedObject: {namespace: " + n.namespace() + "}}",
	} {
		if err := create(text)(); err != nil {
			t.Error(err)
		}
	}
}

// TestMessagesNameTheRuleAlsoOfLongLists: the API server leaves a message of more than 5 KiB out, and says only that an expression failed.
func TestMessagesNameTheRuleAlsoOfLongLists(t *testing.T) {
	n, _ := limited(t, "wordy")
	long := func(entries int, form string) (all []string) {
		for i := range entries {
			all = append(all, fmt.Sprintf(form, strings.Repeat("a", 60)+fmt.Sprintf("-%d", i)))
		}
		return all
	}
	key := long(32, strings.Repeat("b.", 60)+"com/%s")
	rules := v1alpha1.PolicyRules{
		Images:    &v1alpha1.ImageRules{Allow: long(64, "registry.example.com/%s"), Deny: long(64, "registry.example.com/%s/old")},
		Hostnames: &v1alpha1.HostnameRules{Suffixes: long(64, "%s.wordy.example.com")},
		Classes:   &v1alpha1.ClassRules{Storage: long(32, strings.Repeat("c", 120)+"%s")},
		Kinds:     &v1alpha1.KindRules{Deny: append(long(63, "Widget.%s.example.com"), "ConfigMap")},
		Metadata:  &v1alpha1.MetadataRules{ForbiddenLabels: append(key[:31:31], "evil"), ForbiddenAnnotations: append(key[:31:31], "evil")},
	}
	for _, key := range key[1:] {
		rules.Nodes = cmp.Or(rules.Nodes, &v1alpha1.NodeRules{})
		rules.Nodes.Tolerations = append(rules.Nodes.Tolerations, v1alpha1.AllowedToleration{Key: key})
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Taints = []string{"gpu"} })
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "long"}, Spec: v1alpha1.PolicySpec{PolicyRules: rules}})
	pod := func(image, more string) string {
		return fmt.Sprintf(markedPlace, "v1", "Pod", strings.Replace(podSpec, "image: a,", "image: "+image+",", 1)+more)
	}
	for field, text := range map[string]string{
		"images.allow":                  pod("evil.org/web", ""),
		"images.deny":                   pod(rules.Images.Deny[63], ""),
		"nodes.tolerations":             pod(rules.Images.Allow[0], ", tolerations: [{key: gpu, operator: Exists}]"),
		"hostnames.suffixes":            "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {rules: [{host: evil.org}]}}",
		"classes.storage":               "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {storageClassName: slow, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
		"kinds.deny":                    "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}",
		"metadata.forbiddenLabels":      "{apiVersion: v1, kind: Service, metadata: {name: x, labels: {evil: x}}, spec: {ports: [{port: 80}]}}",
		"metadata.forbiddenAnnotations": "{apiVersion: v1, kind: Service, metadata: {name: x, annotations: {evil: x}}, spec: {ports: [{port: 80}]}}",
	} {
		object := n.object(n.namespace(), text)
		n.denied(func() error { return n.admin.Create(t.Context(), object.DeepCopy(), client.DryRunAll) }, "'kubeop-guardrails-deny' denied request: ", "See spec."+field+" of policy wordy-long")
	}
}
