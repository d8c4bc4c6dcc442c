//go:build e2e

package tenancy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/e2e/tenants"
)

const (
	// refused is what the API server says about what a role does not allow.
	refused  = "is forbidden: User"
	security = `violates PodSecurity "restricted:`
	// platformObject is what the API server says about an object of the platform to who has rights on its kind.
	platformObject = "ValidatingAdmissionPolicy 'kubeop-platform-object' with binding 'kubeop-platform-object' denied request: PlatformObject: "

	podControl = `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {%s, automountServiceAccountToken: false,
		containers: [{name: a, image: registry.example.com/web:1, imagePullPolicy: Always, %s}]}}`
	podContext  = "securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}"
	ownContext  = "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"
	serviceText = "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {%sports: [{port: 80}]}}"
	claimText   = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {%saccessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}"
	bindingText = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}, subjects: [{kind: User, name: jane}]}"

	networkControl = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x}, spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}}"
)

// change is a change of an object of the platform, as JSON; none deletes it. guard is what refuses it to the account, and without it RBAC does, as to people.
type change struct{ kind, name, patch, guard string }

// check is one of the benchmark. Of its three kinds it has one: objects of which the first is accepted and each other one is the first with one field more,
// changes of what the platform made, or kinds that are read and written elsewhere.
type check struct {
	objects []string
	changes []change
	// guard is what the message names, and says what it has besides: the check of Pod Security that finds the field.
	guard, says string
}

func pod(podFields, fields string) string { return fmt.Sprintf(podControl, podFields, fields) }

// pods are the control and pods that have one other field each.
func pods(others ...string) []string { return append([]string{pod(podContext, ownContext)}, others...) }

// checks are by their numbers and names in the benchmark; those without a number were planned or removed.
var checks = map[string]check{
	"CPI-2 block multitenant resources": {changes: []change{
		{kind: "networking.k8s.io/v1 NetworkPolicy", name: "kubeop", patch: `{"spec":{"egress":[{}]}}`}, {kind: "networking.k8s.io/v1 NetworkPolicy", name: "kubeop"},
		{kind: "rbac.authorization.k8s.io/v1 RoleBinding", name: "kubeop-deployer", guard: platformObject + "RoleBinding/"}, {kind: "v1 LimitRange", name: "kubeop"},
		{kind: "paas.kubeop.io/v1alpha1 Guardrails", name: "kubeop", patch: `{"spec":{"deny":[]}}`}, {kind: "v1 ServiceAccount", name: "kubeop-deployer", guard: platformObject + "ServiceAccount/"},
	}},
	"CPI-3 block add capabilities":        {objects: pods(pod(podContext, strings.Replace(ownContext, "drop: [ALL]", "drop: [ALL], add: [NET_ADMIN]", 1))), guard: security, says: `unrestricted capabilities (container "a" must not include "NET_ADMIN" in securityContext.capabilities.add)`},
	"CPI-4 require run as non-root user":  {objects: pods(pod(strings.Replace(podContext, "runAsNonRoot: true, ", "", 1), ownContext)), guard: security, says: `runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)`},
	"CPI-5 block privileged containers":   {objects: pods(pod(podContext, "securityContext: {privileged: true, capabilities: {drop: [ALL]}}")), guard: security, says: `privileged (container "a" must not set securityContext.privileged=true)`}, // Beside allowPrivilegeEscalation: false the API server calls it invalid, before Pod Security.
	"CPI-6 block privilege escalation":    {objects: pods(pod(podContext, "securityContext: {capabilities: {drop: [ALL]}}")), guard: security, says: `allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)`},
	"HI-1 block host path":                {objects: pods(pod(podContext+", volumes: [{name: v, hostPath: {path: /}}]", ownContext)), guard: security, says: `restricted volume types (volume "v" uses restricted volume type "hostPath")`},
	"HI-1 block NodePort services":        {objects: []string{fmt.Sprintf(serviceText, ""), fmt.Sprintf(serviceText, "type: NodePort, ")}, guard: "exceeded quota: kubeop"},
	"HI-3 block host network":             {objects: pods(pod(podContext+", hostNetwork: true", ownContext)), guard: security, says: "host namespaces (hostNetwork=true)"},
	"HI-3 block host ports":               {objects: pods(pod(podContext, ownContext+", ports: [{containerPort: 80, hostPort: 80}]")), guard: security, says: `hostPort (container "a" uses hostPort 80)`},
	"HI-4 block host PID":                 {objects: pods(pod(podContext+", hostPID: true", ownContext)), guard: security, says: "host namespaces (hostPID=true)"},
	"HI-5 block host IPC":                 {objects: pods(pod(podContext+", hostIPC: true", ownContext)), guard: security, says: "host namespaces (hostIPC=true)"},
	"DI-1 require always image pull":      {objects: pods(strings.Replace(pod(podContext, ownContext), "Always", "Never", 1)), guard: "'kubeop-guardrails-deny' denied request: Images: "},
	"TI-1 block modification of quotas":   {changes: []change{{kind: "v1 ResourceQuota", name: "kubeop", patch: `{"spec":{"hard":{"pods":"1000"}}}`}, {kind: "v1 ResourceQuota", name: "kubeop"}}},
	"planned: require claims for storage": {objects: pods(pod(podContext+", volumes: [{name: v, csi: {driver: csi.example}}]", ownContext)), guard: "kubeop-volumes"},
	"planned: block existing volumes": {objects: []string{fmt.Sprintf(claimText, ""), fmt.Sprintf(claimText, "volumeName: theirs, "), fmt.Sprintf(claimText, "selector: {matchLabels: {a: b}}, ")},
		guard: "kubeop-volumes"},
	"removed: require dropping all capabilities": {objects: pods(pod(podContext, strings.Replace(ownContext, "drop: [ALL]", "drop: [NET_RAW]", 1))), guard: security, says: `unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])`},
	"removed: block bind mounts":                 {objects: pods(pod(podContext+", volumes: [{name: v, hostPath: {path: /etc, type: Directory}}]", ownContext)), guard: security, says: `restricted volume types (volume "v" uses restricted volume type "hostPath")`},
}

// TestEveryCheckHolds of objects and changes.
func TestEveryCheckHolds(t *testing.T) {
	for name, c := range checks {
		t.Run(name, func(t *testing.T) {
			if len(c.objects) > 0 {
				c.admits(t)
			}
			for _, x := range c.changes {
				for _, user := range append([]string{account}, people...) {
					mine := change{kind: "v1 ConfigMap", name: "bot", patch: `{"data":{"a":"b"}}`}
					soon(t, "the control of "+user, func(ctx context.Context) error {
						if user == account {
							return mine.by(ctx, as(t, user))
						}
						return as(t, user).Get(ctx, client.ObjectKey{Namespace: own, Name: mine.name}, &corev1.ConfigMap{})
					})
					guard := refused
					if user == account {
						guard = cmp.Or(x.guard, refused)
					}
					denied(t, x.by(t.Context(), as(t, user)), user+": "+x.kind+" "+x.name, guard)
				}
			}
		})
	}
}

// admits: the account may have the first object, and no other one. No person may write any.
func (c check) admits(t *testing.T) {
	t.Helper()
	create := func(ctx context.Context, user, text string) error {
		o, err := tenants.Object(own, text)
		must(t, err)
		return as(t, user).Create(ctx, o, client.DryRunAll)
	}
	soon(t, "the control", func(ctx context.Context) error { return create(ctx, account, c.objects[0]) })
	for _, bad := range c.objects[1:] {
		err := create(t.Context(), account, bad)
		denied(t, err, bad, c.guard)
		denied(t, err, bad, c.says)
		for _, person := range people {
			must(t, as(t, person).List(t.Context(), &corev1.PodList{}, client.InNamespace(own)))
			denied(t, create(t.Context(), person, bad), person+": "+bad, refused)
		}
	}
}

// by makes the change as a user.
func (x change) by(ctx context.Context, c client.Client) error {
	o := of(x.kind, own, x.name)
	if x.patch == "" {
		return c.Delete(ctx, o, client.DryRunAll)
	}
	return c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(x.patch)), client.DryRunAll)
}

func of(kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	version, bare, _ := strings.Cut(kind, " ")
	o.SetAPIVersion(version)
	o.SetKind(bare)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// denied checks that an error names the guard.
func denied(t *testing.T, err error, what, guard string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), guard) {
		t.Errorf("%s: the message does not have %q: %v", what, guard, err)
	}
}

// elsewhere are kinds of the cluster, and of the namespaces of others.
var elsewhere = []string{
	"v1 Node", "v1 PersistentVolume", "v1 Namespace", "rbac.authorization.k8s.io/v1 ClusterRole", "rbac.authorization.k8s.io/v1 ClusterRoleBinding", "storage.k8s.io/v1 StorageClass",
	"apiextensions.k8s.io/v1 CustomResourceDefinition", "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy", "scheduling.k8s.io/v1 PriorityClass",
	"certificates.k8s.io/v1 CertificateSigningRequest", "paas.kubeop.io/v1alpha1 Tenant", "paas.kubeop.io/v1alpha1 Policy", "paas.kubeop.io/v1alpha1 HostnameClaim", "paas.kubeop.io/v1alpha1 Repository",
}

var namespaced = []string{
	"v1 ConfigMap", "v1 Secret", "v1 Pod", "v1 Service", "v1 ServiceAccount", "v1 Event", "v1 ResourceQuota", "apps/v1 Deployment", "batch/v1 Job", "networking.k8s.io/v1 Ingress",
	"networking.k8s.io/v1 NetworkPolicy", "rbac.authorization.k8s.io/v1 RoleBinding", "paas.kubeop.io/v1alpha1 App", "paas.kubeop.io/v1alpha1 Guardrails",
}

// TestOthersAreOutOfReach makes the checks CPI-1, cluster resources (with the removed one of definitions), and TI-2, resources of other tenants: nobody reads,
// lists, creates, changes or deletes any. Reading the same of the own namespace is the control.
func TestOthersAreOutOfReach(t *testing.T) {
	for _, user := range append([]string{account}, people...) {
		c := as(t, user)
		soon(t, "the control of "+user, func(ctx context.Context) error {
			return errors.Join(c.List(ctx, listOf("v1 ConfigMap"), client.InNamespace(own)), c.Get(ctx, client.ObjectKey{Namespace: own, Name: "bot"}, of("v1 Service", own, "bot")))
		})
		for _, kind := range elsewhere {
			reach(t, c, user, kind, "")
		}
		for _, namespace := range []string{theirs, "kubeop-beta", "kubeop-system", "kube-system"} {
			for _, kind := range namespaced {
				reach(t, c, user, kind, namespace)
			}
		}
	}
}

func reach(t *testing.T, c client.Client, user, kind, namespace string) {
	t.Helper()
	o := of(kind, namespace, "bot")
	for verb, err := range map[string]error{
		"get":    c.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopy()),
		"list":   c.List(t.Context(), listOf(kind), client.InNamespace(namespace)),
		"create": c.Create(t.Context(), o.DeepCopy(), client.DryRunAll),
		"patch":  c.Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)), client.DryRunAll),
		"delete": c.Delete(t.Context(), o.DeepCopy(), client.DryRunAll),
	} {
		denied(t, err, user+" may "+verb+" "+kind+" of "+namespace, refused)
	}
}

func listOf(kind string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	version, bare, _ := strings.Cut(kind, " ")
	l.SetAPIVersion(version)
	l.SetKind(bare + "List")
	return l
}

// TestQuotasAreSet makes the checks FNS-1, resources, and FNS-2, numbers of objects. Of two kinds that FNS-2 counts, nobody of a tenant can create any.
func TestQuotasAreSet(t *testing.T) {
	quota := &corev1.ResourceQuota{}
	soon(t, "the quota", func(ctx context.Context) error {
		if err := as(t, "acme-view").Get(ctx, client.ObjectKey{Namespace: own, Name: "kubeop"}, quota); err != nil {
			return err
		}
		for _, name := range []corev1.ResourceName{
			"requests.cpu", "requests.memory", "limits.memory", "requests.ephemeral-storage", "limits.ephemeral-storage", "requests.storage", "pods", "services.nodeports", "services.loadbalancers", "count/configmaps", "count/secrets",
			"count/services", "count/persistentvolumeclaims", "count/deployments.apps", "count/jobs.batch",
		} {
			if _, limited := quota.Status.Hard[name]; !limited {
				return fmt.Errorf("nothing limits %s: %v", name, quota.Status.Hard)
			}
		}
		return nil
	})
	for _, text := range []string{
		"{apiVersion: v1, kind: ReplicationController, metadata: {name: x}, spec: {replicas: 0, selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: x}, spec: {hard: {pods: 1}}}",
	} {
		o, err := tenants.Object(own, text)
		must(t, err)
		for _, user := range append([]string{account, "system:serviceaccount:" + own + ":kubeop-deployer"}, people...) {
			denied(t, as(t, user).Create(t.Context(), o.DeepCopy(), client.DryRunAll), user+": "+o.GetKind(), refused)
		}
	}
}

// TestTenantsServeThemselvesInGit makes the check OPS-4, NetworkPolicies, and the removed one that tenants create namespaces: the tenant's repository has a project that
// may have NetworkPolicies, and an app with one. It cannot open the project to all, and nobody does either by hand.
func TestTenantsServeThemselvesInGit(t *testing.T) {
	control, err := tenants.Object(open, networkControl)
	must(t, err)
	must(t, as(t, "acme-view").Get(t.Context(), client.ObjectKeyFromObject(control), control.DeepCopy()))
	wider, err := tenants.Object(open, strings.Replace(networkControl, "from: [{podSelector: {}}]", "from: [{podSelector: {}}, {namespaceSelector: {}}]", 1))
	must(t, err)
	control.SetName("y")
	wider.SetName("y")
	deployer := as(t, "system:serviceaccount:"+open+":kubeop-deployer")
	must(t, deployer.Create(t.Context(), control.DeepCopy(), client.DryRunAll))
	denied(t, deployer.Create(t.Context(), wider, client.DryRunAll), "the deployer", "ValidatingAdmissionPolicy 'kubeop-network-policies' with binding 'kubeop-network-policies' denied request: NetworkPolicies: ")
	for _, user := range append([]string{account}, people...) {
		denied(t, as(t, user).Create(t.Context(), control.DeepCopy(), client.DryRunAll), user, refused)
		denied(t, as(t, user).Create(t.Context(), of("v1 Namespace", "", "kubeop-acme-other"), client.DryRunAll), user, refused)
	}
}

// TestPodsAreIsolated makes the planned check of networks, and the removed ones of isolation and of connections that are denied by default: every pod is under a
// policy for both directions. Not everybody connects to a pod, and a pod connects to those of its namespace and to the cluster's DNS alone: neither the tenant nor its
// policy has egress.
func TestPodsAreIsolated(t *testing.T) {
	const egress = `[{"to":[{"podSelector":{}}]},{"ports":[{"protocol":"UDP","port":53},{"protocol":"TCP","port":53}],` +
		`"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}}]}]`
	policies := &networkingv1.NetworkPolicyList{}
	must(t, as(t, "acme-view").List(t.Context(), policies, client.InNamespace(own)))
	for _, p := range policies.Items {
		if len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0 && len(p.Spec.PolicyTypes) == 2 {
			for _, rule := range p.Spec.Ingress {
				if len(rule.From) == 0 {
					t.Errorf("%s lets everybody connect: %+v", p.Name, rule)
				}
			}
			got, err := json.Marshal(p.Spec.Egress)
			must(t, err)
			if string(got) != egress {
				t.Errorf("%s lets pods connect to %s, want %s", p.Name, got, egress)
			}
			return
		}
	}
	t.Errorf("no policy is for all pods: %+v", policies.Items)
}

// TestAccountsGiveRightsInTheirNamespace makes the checks OPS-3 and the planned ones of roles: an account may. People do it in Git, which is the control of them.
func TestAccountsGiveRightsInTheirNamespace(t *testing.T) {
	role, err := tenants.Object(own, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}")
	must(t, err)
	binding, err := tenants.Object(own, bindingText)
	must(t, err)
	binding.SetName("y")
	c := as(t, account)
	must(t, c.Create(t.Context(), role))
	must(t, c.Create(t.Context(), binding))
	for _, person := range people {
		for _, o := range []*unstructured.Unstructured{role, binding} {
			again := o.DeepCopy()
			again.SetResourceVersion("")
			again.SetName("z")
			denied(t, as(t, person).Create(t.Context(), again), person, refused)
		}
	}
}

// TestSecretsAreForTheRoleAdmin: of the people, only those with the role admin read Secrets.
func TestSecretsAreForTheRoleAdmin(t *testing.T) {
	for person, may := range map[string]bool{"acme-view": false, "acme-edit": false, "acme-admin": true} {
		err := as(t, person).List(t.Context(), &corev1.SecretList{}, client.InNamespace(own))
		if may {
			must(t, err)
		} else {
			denied(t, err, person, refused)
		}
	}
}
