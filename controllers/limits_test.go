package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// limited returns a tenant with the owner "limiter". In its project the account bot may do everything in its namespace, like an app with
// extra rights from administrators.
func limited(t *testing.T, name string) (n *team, bot client.Client) {
	n = newTeam(t, name)
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	account := "system:serviceaccount:" + n.namespace() + ":bot"
	meta := metav1.ObjectMeta{Namespace: n.namespace(), Name: "bot"}
	n.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}})
	n.create(&rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "bot"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: n.namespace(), Name: "bot"}, {Kind: rbacv1.UserKind, Name: "jane-of-" + name}},
	})
	bot = n.as(account)
	n.passes(func() error { // The API server learns of a new role after a moment.
		return bot.Create(t.Context(), n.object(n.namespace(), configOfSize("rights", 1)), client.DryRunAll)
	})
	return n, bot
}

// tenanted changes the tenant's spec and waits until its namespaces say so.
func (n *team) tenanted(change func(*v1alpha1.TenantSpec)) {
	n.t.Helper()
	tenant := &v1alpha1.Tenant{}
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: n.name}, tenant); err != nil {
			return err
		}
		change(&tenant.Spec)
		return n.admin.Update(n.t.Context(), tenant)
	})
}

// passes retries until nothing refuses: it takes a moment until new rights are in force.
func (n *team) passes(try func() error) {
	n.t.Helper()
	n.eventually(try)
}

func configOfSize(name string, size int) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {x: %q}}", name, strings.Repeat("x", size))
}

func TestSizesOfObjectsNotFromGitAreLimited(t *testing.T) {
	n, bot := limited(t, "sizes")
	jane, deployer := n.as("jane-of-sizes"), n.as("system:serviceaccount:"+n.namespace()+":kubeop-deployer")
	text := func(size int) string { return strings.Repeat("x", size) }
	deployment := func(size int) string {
		return fmt.Sprintf(markedPlace, "apps/v1", "Deployment", "selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}, annotations: {note: "+text(size)+"}}, spec: {"+podSpec+"}}")
	}
	const lease = "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}, spec: {holderIdentity: %s}}"
	role := func(size int) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [{apiGroups: [''], resources: [pods], verbs: [get], resourceNames: [" + text(size) + "]}]}"
	}
	many := func(count int) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {" + strings.TrimSuffix(strings.Repeat("k%d: '', ", count), ", ") + "}}"
	}
	keys := make([]any, 60_000)
	for i := range keys {
		keys[i] = i
	}
	cases := map[string]struct {
		by     client.Client
		object string
		want   string // Empty if the object is admitted.
	}{
		"a ConfigMap":                         {bot, configOfSize("x", 30_000), ""},
		"one that is too large":               {bot, configOfSize("x", 34_000), "ObjectSize: ConfigMap/x is larger than the 32768 bytes"},
		"one of a person":                     {jane, configOfSize("x", 34_000), "32768 bytes that are allowed to what is not delivered from Git"},
		"one of many bytes in few characters": {bot, strings.ReplaceAll(configOfSize("x", 22_000), "xx", "漢字"), "ObjectSize: ConfigMap/x"},
		"one of many keys":                    {bot, fmt.Sprintf(many(60_000), keys...), "ObjectSize: ConfigMap/x"},
		"one in base64":                       {bot, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, binaryData: {x: " + text(50_000) + "}}", "ObjectSize: ConfigMap/x"},
		"a Secret":                            {bot, "{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {x: " + text(50_000) + "}}", "ObjectSize: Secret/x"},
		"labels":                              {bot, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {x: " + text(50_000) + "}}}", "ObjectSize: ConfigMap/x"},
		"a lease":                             {bot, fmt.Sprintf(lease, text(7_000)), ""},
		"a lease that is too large":           {bot, fmt.Sprintf(lease, text(9_000)), "the 8192 bytes"},
		"a role":                              {bot, role(9_000), "ObjectSize: Role/x"},
		"a Deployment":                        {bot, deployment(12_000), ""},
		"one with a large template":           {bot, deployment(17_000), "ObjectSize: Deployment/x"},
		"delivered data":                      {deployer, configOfSize("x", 900_000), ""},
		"a delivered Deployment":              {deployer, deployment(200_000), ""},
		"a delivered role":                    {deployer, role(270_000), "the 262144 bytes that are allowed; write less"},
		"a revision": {bot, "{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: x}, revision: 1, data: {a: b}}",
			"ControllerRevision: ControllerRevision/x is refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			try := func() error { return c.by.Create(t.Context(), n.object(n.namespace(), c.object), client.DryRunAll) }
			if c.want == "" {
				n.passes(try)
				return
			}
			n.denied(try, c.want)
		})
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.MaxObjectSize = new(resource.MustParse("1Mi")) })
	n.passes(func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), configOfSize("x", 900_000)), client.DryRunAll)
	})
	n.passes(func() error { return bot.Create(t.Context(), n.object(n.namespace(), role(200_000)), client.DryRunAll) })
}

// TestATooLargeObjectMayShrink changes an object that is older than the policy.
func TestATooLargeObjectMayShrink(t *testing.T) {
	n, bot := limited(t, "shrinking")
	n.create(n.object(n.namespace(), configOfSize("big", 300_000)))
	change := func(size int) func() error {
		return func() error {
			live := &corev1.ConfigMap{}
			if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "big"}, live); err != nil {
				return err
			}
			live.Data["x"] = strings.Repeat("y", size)
			return bot.Update(t.Context(), live, client.DryRunAll)
		}
	}
	n.denied(change(310_000), "ObjectSize: ConfigMap/big")
	revision := n.object(n.namespace(), "{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: x}, revision: 1, data: {x: "+strings.Repeat("x", 20_000)+"}}")
	if err := n.masterful("system:kube-controller-manager").Create(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	noted := func(size int) func() error {
		patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"note": %q}}}`, strings.Repeat("x", size))
		return func() error {
			return bot.Patch(t.Context(), revision.DeepCopy(), client.RawPatch("application/merge-patch+json", patch), client.DryRunAll)
		}
	}
	n.denied(noted(9_000), "ObjectSize: ControllerRevision/x is larger than the 8192 bytes")
	n.passes(noted(7_000))
	n.passes(change(290_000))
	n.passes(change(10))
}

// TestADeeplyNestedObjectIsRefusedQuickly: formatting it for the message would take the API server seconds.
func TestADeeplyNestedObjectIsRefusedQuickly(t *testing.T) {
	n, bot := limited(t, "nested")
	object := n.object(n.namespace(), "{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: x}, revision: 1}")
	var data any = strings.Repeat("x", 500_000)
	for range 5_000 {
		data = map[string]any{"a": data}
	}
	object.Object["data"] = data
	n.denied(func() error { return bot.Create(t.Context(), object.DeepCopy(), client.DryRunAll) }, "ControllerRevision: ControllerRevision/x is refused")
	began := time.Now()
	err := bot.Create(t.Context(), object.DeepCopy(), client.DryRunAll)
	if took := time.Since(began); err == nil || took > 2*time.Second {
		t.Errorf("the refusal took %s: %v", took, err)
	}
}

func TestGracePeriodsAreLimited(t *testing.T) {
	n, bot := limited(t, "graceful")
	pod := func(seconds int) string { return fmt.Sprintf("terminationGracePeriodSeconds: %d, ", seconds) + podSpec }
	template := func(seconds int) string {
		return "template: {metadata: {labels: {x: z}}, spec: {restartPolicy: %s, " + pod(seconds) + "}}"
	}
	workload := func(kind string, seconds int) string {
		switch kind {
		case "Pod":
			return fmt.Sprintf(markedPlace, "v1", kind, pod(seconds))
		case "Job":
			return fmt.Sprintf(markedPlace, "batch/v1", kind, fmt.Sprintf(template(seconds), "Never"))
		case "CronJob":
			return fmt.Sprintf(markedPlace, "batch/v1", kind, "schedule: '* * * * *', jobTemplate: {spec: {"+fmt.Sprintf(template(seconds), "Never")+"}}")
		}
		if kind == "ReplicationController" {
			return fmt.Sprintf(markedPlace, "v1", kind, "selector: {x: z}, "+fmt.Sprintf(template(seconds), "Always"))
		}
		return fmt.Sprintf(markedPlace, "apps/v1", kind, "selector: {matchLabels: {x: z}}, "+fmt.Sprintf(template(seconds), "Always"))
	}
	for _, kind := range []string{"Pod", "ReplicationController", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"} {
		t.Run(kind, func(t *testing.T) {
			made := func(seconds int) func() error {
				return func() error {
					return bot.Create(t.Context(), n.object(n.namespace(), workload(kind, seconds)), client.DryRunAll)
				}
			}
			n.denied(made(1_000_000_000), "GracePeriod: "+kind+"/x has terminationGracePeriodSeconds 1000000000, of which 3600 are allowed", "maxTerminationGracePeriod")
			n.denied(made(3601), "3601")
			n.passes(made(3600))
		})
	}
	n.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "limits"}}) // Kubernetes deletes pods of nodes that do not exist.
	placed := n.object(n.namespace(), strings.Replace(workload("Pod", 30), "spec: {", "spec: {nodeName: limits, ", 1))
	if err := n.masterful("system:kube-scheduler").Create(t.Context(), placed); err != nil { // No other user may place a pod on a node.
		t.Fatal(err)
	}
	kill := func(seconds int64) func() error {
		return func() error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "x"}}
			return bot.Delete(t.Context(), pod, client.GracePeriodSeconds(seconds), client.DryRunAll)
		}
	}
	n.denied(kill(1_000_000), "GracePeriod: Pod/x is not deleted with a grace period of 1000000 seconds")
	n.passes(kill(3600))
	evict := func(seconds int64) func() error {
		return func() error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "x"}}
			eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &seconds}}
			return bot.SubResource("eviction").Create(t.Context(), pod, eviction, &client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: []string{metav1.DryRunAll}}})
		}
	}
	n.denied(evict(1_000_000), "GracePeriod: Pod/x is not evicted with a grace period of 1000000 seconds")
	n.passes(evict(3600))

	// A Deployment that is older than the policy still makes pods, and administrators may allow longer periods.
	old := n.object(n.namespace(), workload("Deployment", 7200))
	old.SetName("old")
	if err := n.masterful(operatorAccount).Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		pods := &corev1.PodList{}
		err := n.admin.List(t.Context(), pods, client.InNamespace(n.namespace()), client.MatchingLabels{"x": "z"})
		if err == nil && len(pods.Items) == 0 {
			err = errors.New("the older Deployment has no pods")
		}
		return err
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`))
	n.passes(func() error { return bot.Patch(t.Context(), old.DeepCopy(), patch, client.DryRunAll) })
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.MaxTerminationGracePeriod = &metav1.Duration{Duration: 2 * time.Hour} })
	n.passes(func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), workload("Job", 7200)), client.DryRunAll)
	})
}

func TestPriorityClassesAreThoseOfTheTenant(t *testing.T) {
	n, bot := limited(t, "modest")
	for _, name := range []string{"urgent-for-modest", "bulk-for-modest"} {
		n.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1_000_000})
	}
	run := func(by client.Client, kind, class string) func() error {
		spec := "priorityClassName: " + class + ", " + podSpec
		object := fmt.Sprintf(markedPlace, "v1", kind, spec)
		switch kind {
		case "CronJob":
			object = fmt.Sprintf(markedPlace, "batch/v1", kind, "schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, "+spec+"}}}}")
		case "Deployment":
			object = fmt.Sprintf(markedPlace, "apps/v1", kind, "selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}}, spec: {"+spec+"}}")
		case "ReplicationController":
			object = fmt.Sprintf(markedPlace, "v1", kind, "selector: {x: z}, template: {metadata: {labels: {x: z}}, spec: {"+spec+"}}")
		}
		return func() error { return by.Create(t.Context(), n.object(n.namespace(), object), client.DryRunAll) }
	}
	deployer := n.as("system:serviceaccount:" + n.namespace() + ":kubeop-deployer")
	for _, kind := range []string{"Pod", "Deployment", "CronJob"} {
		for _, by := range []client.Client{bot, deployer} {
			n.denied(run(by, kind, "urgent-for-modest"), "PriorityClass: "+kind+"/x has priorityClassName urgent-for-modest", "none is allowed", "spec.priorityClasses")
			n.denied(run(by, kind, "system-cluster-critical"), "PriorityClass: "+kind+"/x has priorityClassName system-cluster-critical")
		}
	}
	n.denied(run(bot, "ReplicationController", "urgent-for-modest"), "PriorityClass: ReplicationController/x has priorityClassName urgent-for-modest")
	n.passes(run(bot, "Pod", "''"))
	// A template may be older than the class that it names, so its pods are judged, too.
	n.passes(run(bot, "Deployment", "later-for-modest"))
	n.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "later-for-modest"}, Value: 1_000_000})
	controller := n.as("system:serviceaccount:kube-system:replicaset-controller")
	n.denied(run(controller, "Pod", "later-for-modest"), "PriorityClass: Pod/x has priorityClassName later-for-modest", "none is allowed")
	n.passes(run(controller, "Pod", "''"))
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.PriorityClasses = []string{"urgent-for-modest", "z"} })
	n.passes(run(bot, "Deployment", "urgent-for-modest"))
	n.denied(run(bot, "Deployment", "bulk-for-modest"), "allowed are urgent-for-modest,z")

	// The default class, which every pod without a class gets, is allowed.
	usual := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual-for-modest"}, Value: 10, GlobalDefault: true}
	n.create(usual)
	t.Cleanup(func() {
		if err := n.admin.Delete(context.Background(), usual); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	n.passes(run(bot, "Pod", "usual-for-modest"))
	n.passes(run(bot, "Pod", "''"))
}

// TestATenantCannotChangeObjectsOfThePlatform tries, as an app's account and as an owner, to remove or change the objects that limit them.
func TestATenantCannotChangeObjectsOfThePlatform(t *testing.T) {
	n, bot := limited(t, "tethered")
	n.administered()
	jane := n.as("jane-of-tethered")
	const hard = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: %s}, spec: {hard: {pods: 10000}}}"
	for _, what := range []string{
		"v1 ResourceQuota kubeop", "v1 ResourceQuota kubeop-priority", "v1 LimitRange kubeop", "networking.k8s.io/v1 NetworkPolicy kubeop",
		"rbac.authorization.k8s.io/v1 RoleBinding kubeop-deployer", "rbac.authorization.k8s.io/v1 RoleBinding kubeop-admin", "v1 ServiceAccount kubeop-deployer",
	} {
		field := strings.Fields(what)
		object := n.object(n.namespace(), fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}}", field[0], field[1], field[2]))
		t.Run(field[1]+" "+field[2], func(t *testing.T) {
			for _, by := range []client.Client{bot, jane} {
				n.denied(func() error { return by.Delete(t.Context(), object.DeepCopy(), client.DryRunAll) }, "PlatformObject: "+field[1]+"/"+field[2])
				n.denied(func() error {
					patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
					return by.Patch(t.Context(), object.DeepCopy(), patch, client.DryRunAll)
				}, field[1]+"/"+field[2])
			}
			if err := n.admin.Delete(t.Context(), object.DeepCopy(), client.DryRunAll); err != nil {
				t.Errorf("an administrator is refused, too: %v", err)
			}
		})
	}
	n.denied(func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), fmt.Sprintf(hard, "kubeop-closed")), client.DryRunAll)
	}, "PlatformObject: ResourceQuota/kubeop-closed")
	n.passes(func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), fmt.Sprintf(hard, "mykubeop")), client.DryRunAll)
	})
	n.passes(func() error {
		return bot.Delete(t.Context(), n.object(n.namespace(), "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: bot}}"), client.DryRunAll)
	})
	// A deletion of all objects stops at the first one of the platform.
	n.denied(func() error {
		return bot.DeleteAllOf(t.Context(), &corev1.ResourceQuota{}, client.InNamespace(n.namespace()))
	}, "PlatformObject: ResourceQuota/kubeop")
}

// TestOnlyAdministratorsMaySetTheirAnnotations tries, as other users, to set annotations that only administrators may set.
func TestOnlyAdministratorsMaySetTheirAnnotations(t *testing.T) {
	n, bot := limited(t, "marking")
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Owners = []v1alpha1.Owner{{Kind: rbacv1.UserKind, Name: "keeper-of-marking", Role: "admin"}}
	})
	keeper := n.as("keeper-of-marking")
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: x%s}}"
	n.passes(func() error {
		return keeper.Create(t.Context(), n.object("kubeop-marking", fmt.Sprintf(secret, "")), client.DryRunAll)
	})
	n.denied(func() error {
		return keeper.Create(t.Context(), n.object("kubeop-marking", fmt.Sprintf(secret, ", finalizers: [example.com/x]")), client.DryRunAll)
	}, "HomeFinalizer: Secret/x")
	n.passes(func() error {
		return keeper.Create(t.Context(), n.object("kubeop-marking-shop", fmt.Sprintf(secret, ", finalizers: [example.com/x]")), client.DryRunAll)
	})

	app := n.app("shop", "web")
	force := annotated(v1alpha1.ForceRemovalAnnotation, "web")
	n.denied(func() error { return bot.Patch(t.Context(), app.DeepCopy(), force, client.DryRunAll) }, "DeletionGuard: App/web is given the annotation paas.kubeop.io/force-removal")
	n.passes(func() error {
		return bot.Patch(t.Context(), app.DeepCopy(), annotated("example.com/x", "y"), client.DryRunAll)
	})
	n.passes(func() error { return n.admin.Patch(t.Context(), app.DeepCopy(), force, client.DryRunAll) })
}
