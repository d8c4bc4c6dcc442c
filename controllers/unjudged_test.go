package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	testsources "github.com/kubeop/kubeop/internal/testenv/sources"
)

// everyGuard has rules of all families, each broken by one of the objects of refusedByServer.
func everyGuard(t *testing.T) v1alpha1.Policy {
	key := testsources.NewSigner(t).Public()
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.PolicySpec{
		PolicyRules: v1alpha1.PolicyRules{
			Images: &v1alpha1.ImageRules{
				Allow:  []string{"docker.io/library", "signed.example"},
				Verify: []v1alpha1.SignatureRule{{Images: []string{"signed.example"}, Keys: []string{key}}},
			},
			Services:  &v1alpha1.ServiceRules{Types: []string{"ClusterIP"}},
			Hostnames: &v1alpha1.HostnameRules{Suffixes: []string{"unjudged.example"}},
			Classes:   &v1alpha1.ClassRules{Storage: []string{"fast"}},
			Nodes:     &v1alpha1.NodeRules{Tolerations: []v1alpha1.AllowedToleration{{Key: "gpu", Value: "small"}}},
			Kinds:     &v1alpha1.KindRules{Deny: []string{"HorizontalPodAutoscaler.autoscaling"}},
			Metadata:  &v1alpha1.MetadataRules{ForbiddenAnnotations: []string{"evil.example/*"}},
		},
		Limits: &v1alpha1.LimitRules{Max: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}
}

// refusedByServer are objects that each break one guard, by the names of apps and of the objects, and what the API server says about them.
func refusedByServer() map[string]struct{ object, words string } {
	pod := func(field string) string { return placed("Pod", field) }
	image := func(reference string) string {
		return strings.ReplaceAll(placed("Pod", "hostname: a"), "image: a,", "image: '"+reference+"',")
	}
	const (
		role     = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: little}"
		claim    = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], storageClassName: %s, %sresources: {requests: {storage: %s}}}}"
		template = "volumeClaimTemplates: [{metadata: {name: a, labels: {paas.kubeop.io/tenant: other}}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}}]"
		set      = "serviceName: x, replicas: 0, selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}}, spec: {" + podSpec + "}}, "
	)
	return map[string]struct{ object, words string }{
		"image":       {image("evil.example/web"), "Images: Pod/image has the image evil.example/web, which is not among the allowed ones"},
		"signature":   {image("signed.example/web:v1"), "Images: Pod/signature has the image signed.example/web:v1, which has to be signed"},
		"service":     {fmt.Sprintf(service, ", type: NodePort"), "Services: Service/service"},
		"suffix":      {ingressOf("x", "web.other.example"), "Hostnames: Ingress/suffix has the host web.other.example"},
		"host":        {ingressOf("x", "web.unjudged.example"), "Hostnames: Ingress/host has the host web.unjudged.example"},
		"class":       {fmt.Sprintf(claim, "slow", "", "1Gi"), "Classes: PersistentVolumeClaim/class"},
		"node":        {pod("tolerations: [{key: gpu, value: large}]"), "Nodes: Pod/node"},
		"kind":        {"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}", "Kinds: HorizontalPodAutoscaler/kind"},
		"metadata":    {"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {evil.example/x: y}}}", "Metadata: ConfigMap/metadata"},
		"podsecurity": {pod("hostNetwork: true"), "violates PodSecurity"},
		"quota":       {fmt.Sprintf(claim, "fast", "", "900Ti"), "exceeded quota: kubeop"},
		"limits":      {strings.Replace(pod("hostname: a"), "image: a,", "image: a, resources: {limits: {cpu: 2}},", 1), "maximum cpu usage per Container is 1"},

		"blockeddrain":    {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}, spec: {maxUnavailable: 0, selector: {matchLabels: {x: z}}}}", "BlockedDrain: PodDisruptionBudget/blockeddrain"},
		"revision":        {"{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: x}, revision: 1, data: {spec: {template: {spec: {nodeName: a}}}}}", "ControllerRevision: ControllerRevision/revision"},
		"externalservice": {fmt.Sprintf(service, ", externalIPs: [192.0.2.1]"), "ExternalService: Service/externalservice"},
		"foreignsubject":  {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, " + role + ", subjects: [{kind: ServiceAccount, name: y, namespace: default}]}", "ForeignSubject: RoleBinding/foreignsubject"},
		"forgedmark":      {fmt.Sprintf(markedPlace, "apps/v1", "StatefulSet", set+template), "ForgedMark: StatefulSet/forgedmark carries paas.kubeop.io/tenant"},
		"annotation": {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, annotations: {nginx.ingress.kubernetes.io/auth-url: 'http://a.b'}}, spec: {rules: [{host: kept.unjudged.example}]}}",
			"IngressAnnotation: Ingress/annotation"},
		"nodename":      {pod("nodeName: a"), "NodeName: Pod/nodename"},
		"affinity":      {pod("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaces: [kube-system]}]}}"), "ForeignAffinity: Pod/affinity"},
		"toleration":    {pod("tolerations: [{key: gold, operator: Exists}]"), "Pod/toleration tolerates the taint gold"},
		"identity":      {pod("serviceAccountName: kubeop-deployer"), "PlatformIdentity: Pod/identity"},
		"token":         {fmt.Sprintf(tokenSecret, "kubeop-deployer"), "PlatformToken: Secret/token"},
		"reserved":      {"{apiVersion: v1, kind: ServiceAccount, metadata: {name: kubeop-x}}", "ReservedName: ServiceAccount/kubeop-reserved"},
		"volume":        {pod("volumes: [{name: v, csi: {driver: store.example}}]"), "VolumeType: Pod/volume"},
		"foreignvolume": {fmt.Sprintf(claim, "fast", "volumeName: old, ", "1Gi"), "ForeignVolume: PersistentVolumeClaim/foreignvolume"},
		"grace":         {pod("terminationGracePeriodSeconds: 90000"), "GracePeriod: Pod/grace"},

		"ownkind":       {"{apiVersion: paas.kubeop.io/v1alpha1, kind: Guardrails, metadata: {name: x}, spec: {}}", "forbidden"},
		"endpoints":     {"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: x}, addressType: IPv4, endpoints: [{addresses: [10.9.9.9]}]}", "forbidden"},
		"networkpolicy": {"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x}, spec: {podSelector: {}, ingress: [{}]}}", "forbidden"},
		"resourcequota": {"{apiVersion: v1, kind: ResourceQuota, metadata: {name: x}}", "forbidden"},
		"limitrange":    {"{apiVersion: v1, kind: LimitRange, metadata: {name: x}, spec: {limits: []}}", "forbidden"},
		"clusterscoped": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, rules: []}", "forbidden"},
	}
}

// TestWithoutTheOperatorsOwnChecksTheAPIServerRefuses pushes an app for each guard, of a tenant whose apps the operator does not judge. The API server refuses
// each object, and the App says what the guard says.
func TestWithoutTheOperatorsOwnChecksTheAPIServerRefuses(t *testing.T) {
	n := newTeam(t, "unjudged")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	n.under(everyGuard(t))
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Taints = []string{"gpu"} })
	n.reserve("kept.unjudged.example")
	n.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "little"}})
	cases, files := refusedByServer(), shopFiles("shop", "web")
	add := func(name string, app map[string]string) {
		for path, text := range app {
			files["projects/shop/apps/"+name+"/"+path] = strings.Replace(text, "\n  name: bad\n", "\n  name: "+name+"\n", 1)
		}
	}
	for name, c := range cases {
		add(name, rawApp(renamed(c.object, name)))
	}
	add("chart", chartApp(renamed(cases["image"].object, "chart")))
	n.push(files)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		n.states(n.app("shop", name), v1alpha1.AppliedCondition, metav1.ConditionFalse, cases[name].words)
		object := n.object(n.namespace(), renamed(cases[name].object, name))
		if object.GetKind() == "ClusterRole" {
			object.SetNamespace("")
		}
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%s exists: %v", name, err)
		}
	}
	n.states(n.app("shop", "chart"), v1alpha1.ReleasedCondition, metav1.ConditionFalse, "Images: Pod/chart has the image evil.example/web")
}

// renamed gives an object that is named x, or kubeop-x, the name of its app.
func renamed(object, app string) string {
	return strings.NewReplacer("{name: x,", "{name: "+app+",", "{name: x}", "{name: "+app+"}", "{name: kubeop-x}", "{name: kubeop-"+app+"}").Replace(object)
}
