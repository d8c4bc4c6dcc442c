package controllers

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// setting is a policy of settings alone.
func setting(name string, set func(*v1alpha1.PolicySpec)) v1alpha1.Policy {
	policy := v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set(&policy.Spec)
	return policy
}

// resets changes a policy, and returns when the API server has the change.
func (n *team) resets(name string, set func(*v1alpha1.PolicySpec)) {
	n.t.Helper()
	policy := &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: n.name + "-" + name}}
	change(n, policy, func(p *v1alpha1.Policy) { set(&p.Spec) })
}

// mentions waits until a condition of a project or an app has texts in its message.
func (n *team) mentions(of conditions.Getter, condition string, want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
			return err
		}
		got := conditions.GetMessage(of, condition)
		for _, text := range want {
			if !strings.Contains(got, text) {
				return fmt.Errorf("%s says %q, want %q in it", condition, got, text)
			}
		}
		return nil
	})
}

// changesOf counts from now on how often a part of the objects of a kind changes in a namespace.
func (n *team) changesOf(list client.ObjectList, namespace string, part func(client.Object) any) func() int {
	n.t.Helper()
	watcher, err := client.NewWithWatch(env.Config, client.Options{Scheme: n.admin.Scheme()})
	if err != nil {
		n.t.Fatal(err)
	}
	found, err := watcher.Watch(n.t.Context(), list, client.InNamespace(namespace))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(found.Stop)
	var changes atomic.Int32
	go func() {
		last := map[string]any{}
		for event := range found.ResultChan() {
			o, ok := event.Object.(client.Object)
			if !ok {
				continue
			}
			now := part(o)
			if before, known := last[o.GetName()]; known && !equality.Semantic.DeepEqual(before, now) {
				changes.Add(1)
			}
			last[o.GetName()] = now
		}
	}()
	return func() int { return int(changes.Load()) }
}

// TestPoliciesLimitTheQuotasOfProjects: a commit does not get more than the strictest policy allows, a policy that becomes stricter lowers the quotas of the
// projects under it with one write each, and the API server holds them to that.
func TestPoliciesLimitTheQuotasOfProjects(t *testing.T) {
	t.Parallel()
	n, other := teamOf(t, "capped"), teamOf(t, "uncapped")
	other.push(withQuotas("shop: 3"))
	other.hasQuotas("shop: 3")
	limit := func(most, usually string) func(*v1alpha1.PolicySpec) {
		return func(s *v1alpha1.PolicySpec) {
			s.Quota = &v1alpha1.QuotaRules{}
			if most != "" {
				s.Quota.Max = cpus(most)
			}
			if usually != "" {
				s.Quota.Default = cpus(usually)
			}
		}
	}
	n.push(withQuotas("shop: 3"))
	n.hasQuotas("shop: 3")
	n.under(setting("wide", limit("12", "")), setting("strict", limit("8", "2")))
	files := withQuotas("shop: 8", "blog: 6")
	files["projects/docs/project.yaml"] = fmt.Sprintf(projectFile, "docs")
	n.push(files)
	n.hasQuotas("shop: 8", "blog: 6", "docs: 2")

	// More than the policies allow is refused at the line of the file; the project keeps what it had, and another one is not created.
	more := withQuotas("shop: 5", "blog: 9", "new: 12")
	problems := n.problemsOf(n.push(more))
	for _, want := range []string{
		"projects/blog/project.yaml:6:5: spec.quota requests requests.cpu 9, of which 8 is allowed; ask for less, or ask an administrator of the cluster for more with spec.quota.max of policies/capped-strict.yaml in the platform repository",
		"projects/new/project.yaml:6:5: spec.quota requests requests.cpu 12, of which 8 is allowed",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("the problems do not have %q:\n%s", want, problems)
		}
	}
	n.hasQuotas("shop: 5", "blog: 6", "docs: 2", "new: ")

	// The policy becomes stricter: the quotas are lowered, one write each, and nothing of other tenants is written.
	hard := func(o client.Object) any { return o.(*corev1.ResourceQuota).Spec.Hard }
	writes, others := n.changesOf(&corev1.ResourceQuotaList{}, n.namespace(), hard), n.changesOf(&corev1.ResourceQuotaList{}, other.namespace(), hard)
	n.resets("strict", limit("4", "1"))
	n.hasQuotas("shop: 4", "blog: 4", "docs: 1")
	shop := n.project("shop")
	n.until(shop, v1alpha1.GuardrailsReadyCondition, metav1.ConditionFalse, v1alpha1.QuotaExceededReason)
	n.mentions(shop, v1alpha1.GuardrailsReadyCondition, "the project has only as much as is allowed: spec.quota requests requests.cpu 5, of which 4 is allowed", "spec.quota.max of policies/capped-strict.yaml")
	n.ready(n.project("docs"))
	if got, of := writes(), others(); got != 1 || of != 0 {
		t.Errorf("the quotas of the project were written %d times, want once; those of a tenant under no policy %d times", got, of)
	}

	// It can be changed otherwise, and take less, and gets the rest back with the policy.
	kept := withQuotas("shop: 5", "blog: 3", "new: 12")
	kept["projects/shop/project.yaml"] += "  network: {allowFrom: [blog]}\n"
	n.push(kept)
	n.hasQuotas("shop: 4", "blog: 3", "new: ")
	n.mentions(shop, v1alpha1.GuardrailsReadyCondition, "requests.cpu 5, of which 4 is allowed")
	n.resets("strict", limit("", ""))
	n.hasQuotas("shop: 5", "blog: 3", "new: 12")
	n.ready(shop)
}

// TestAnAppIsHeldToTheQuotaOfAPolicy: the API server admits no more than the maximum, and what is there already stays.
func TestAnAppIsHeldToTheQuotaOfAPolicy(t *testing.T) {
	t.Parallel()
	n := teamOf(t, "allotted")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	namespace := n.namespace()
	for i := range 3 {
		n.create(serviceIn(namespace, fmt.Sprint("web-", i)))
	}
	n.under(setting("few", func(s *v1alpha1.PolicySpec) {
		s.Quota = &v1alpha1.QuotaRules{Max: corev1.ResourceList{"count/services": resource.MustParse("1")}}
	}))
	n.mentions(n.project("shop"), v1alpha1.ReadyCondition, "it uses more than its quota: count/services over by 2 (3 of 1); nothing is deleted, and nothing more of it is admitted")
	n.eventually(func() error {
		err := n.admin.Create(t.Context(), serviceIn(namespace, "one-more"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "exceeded quota: kubeop") {
			return errors.Join(errors.New("one more is admitted"), err)
		}
		return nil
	})
	services := &corev1.ServiceList{}
	if err := n.admin.List(t.Context(), services, client.InNamespace(namespace)); err != nil || len(services.Items) != 3 {
		t.Errorf("%d are there, want 3: %v", len(services.Items), err)
	}
}

func serviceIn(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// TestPoliciesLimitContainersAndClaims: one write of the LimitRange of each project under a policy, by which the API server fills in what a container
// does not say, and refuses what is too large. The App reports it.
func TestPoliciesLimitContainersAndClaims(t *testing.T) {
	t.Parallel()
	n, other := teamOf(t, "small"), teamOf(t, "unlimited")
	for _, team := range []*team{n, other} {
		team.push(shopFiles("shop", "web"))
		team.ready(team.app("shop", "web"))
	}
	limits := func(o client.Object) any { return o.(*corev1.LimitRange).Spec.Limits }
	writes, others := n.changesOf(&corev1.LimitRangeList{}, n.namespace(), limits), n.changesOf(&corev1.LimitRangeList{}, other.namespace(), limits)
	largest := resource.MustParse("1Gi")
	n.under(setting("limits", func(s *v1alpha1.PolicySpec) {
		s.Limits = &v1alpha1.LimitRules{Default: corev1.ResourceList{"memory": resource.MustParse("100Mi")}, Claims: &v1alpha1.ClaimSizes{Max: &largest}}
		s.Limits.Max = corev1.ResourceList{"cpu": resource.MustParse("1")}
	}))
	refused := func(text, want string) {
		t.Helper()
		n.eventually(func() error {
			err := n.admin.Create(t.Context(), n.object(n.namespace(), text), client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), want) {
				return errors.Join(fmt.Errorf("it is not refused with %q", want), err)
			}
			return nil
		})
	}
	const claimOf = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}}"
	refused(fmt.Sprintf(claimOf, "2Gi"), "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi")
	n.passes(func() error {
		return n.admin.Create(t.Context(), n.object(n.namespace(), fmt.Sprintf(claimOf, "1Gi")), client.DryRunAll)
	})
	large := strings.Replace(placed("Pod", "hostname: a"), "image: ", "resources: {limits: {cpu: 2}}, image: ", 1)
	refused(large, "maximum cpu usage per Container is 1, but limit is 2")
	pod := n.object(n.namespace(), placed("Pod", "hostname: a"))
	n.passes(func() error { return n.admin.Create(t.Context(), pod, client.DryRunAll) })
	containers, _, err := unstructured.NestedSlice(pod.Object, "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	got := containers[0].(map[string]any)["resources"]
	want := map[string]any{
		"limits":   map[string]any{"cpu": "1", "memory": "100Mi", "ephemeral-storage": "10Gi"},
		"requests": map[string]any{"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "64Mi"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a container that says nothing (-want +got):\n%s", diff)
	}
	if got, of := writes(), others(); got != 1 || of != 0 {
		t.Errorf("the limits of the project were written %d times, want once; those of a tenant under no policy %d times", got, of)
	}

	// An app whose pods are too large is refused before they are.
	n.push(imageFile("big", "  image: {reference: registry.example.com/web:v1, resources: {limits: {cpu: 2}}}\n"))
	n.mentions(n.app("shop", "big"), v1alpha1.AllowedCondition,
		"Deployment/big has the container big with limits.cpu 2; at most 1 is allowed; change that in Git, or ask an administrator of the cluster to change spec.limits.max of policies/small-limits.yaml")

	// A policy that contradicts it.
	n.create(&v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "small-floor"}, Spec: v1alpha1.PolicySpec{Limits: &v1alpha1.LimitRules{Min: corev1.ResourceList{"cpu": resource.MustParse("3")}}}})
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = append(s.Policies, "small-floor") })
	n.mentions(n.project("shop"), v1alpha1.ReadyCondition,
		"limits contradict each other: spec.limits.min of policies/small-floor.yaml has cpu 3, and spec.limits.max of policies/small-limits.yaml has 1, which holds")
}
