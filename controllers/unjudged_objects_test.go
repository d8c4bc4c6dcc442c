package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	testsources "github.com/kubeop/kubeop/internal/testenv/sources"
)

// everyGuard has rules of all families, each broken by one of the objects of refusedByServer.
func everyGuard(t *testing.T) v1alpha1.Policy {
	key := testsources.NewSigner(t).Public()
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.PolicySpec{
		PolicyRules: v1alpha1.PolicyRules{
			Images: &v1alpha1.ImageRules{
				Allow: []string{"docker.io/library", "signed.example"}, Deny: []string{"docker.io/library/old"}, RequireDigest: true, PullPolicies: []string{"Always", "IfNotPresent"},
				Verify: []v1alpha1.SignatureRule{{Images: []string{"signed.example"}, Keys: []string{key}}},
			},
			Services: &v1alpha1.ServiceRules{
				Types: []string{"ClusterIP", "LoadBalancer"}, LoadBalancerClasses: []string{"lb.example/shared"}, LoadBalancerSourceRanges: []string{"203.0.113.0/24"},
				ExternalNames: []string{"db.unjudged.example"}, ExternalIPs: []string{"192.0.2.16/28"}, NodePorts: []v1alpha1.NodePortRange{{Port: 30010}},
			},
			Hostnames: &v1alpha1.HostnameRules{Suffixes: []string{"unjudged.example"}},
			Classes: &v1alpha1.ClassRules{
				Storage: []string{"fast"}, VolumeAttributes: []string{"silver"}, Ingress: []string{"public"}, Gateway: []string{"shared"}, Priority: []string{"loud-unjudged"}, Runtime: []string{"gvisor"},
			},
			Nodes: &v1alpha1.NodeRules{
				Selector: map[string]v1alpha1.LabelValue{"pool": "unjudged"}, Tolerations: []v1alpha1.AllowedToleration{{Key: "gpu", Value: "small"}, {Key: "gold"}}, UserNamespaces: true,
			},
			Kinds: &v1alpha1.KindRules{
				Allow: []string{
					"Pod", "Service", "ConfigMap", "Secret", "Event", "ServiceAccount", "PersistentVolumeClaim", "*.apps", "*.autoscaling", "*.policy", "*.networking.k8s.io",
					"*.gateway.networking.k8s.io", "*.rbac.authorization.k8s.io",
				},
				Deny: []string{"HorizontalPodAutoscaler.autoscaling"},
			},
			Metadata: &v1alpha1.MetadataRules{RequiredLabels: []string{"team"}, ForbiddenLabels: []string{"evil.example/*"}, ForbiddenAnnotations: []string{"evil.example/*"}},
		},
		Limits: &v1alpha1.LimitRules{Max: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}
}

// widerLists lists external names and addresses that everyGuard does not, so that only the rule of that policy refuses them. It warns.
var widerLists = v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "wider"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{
	Action: v1alpha1.WarnAction, ExternalNames: []string{"unjudged.example"}, ExternalIPs: []string{"192.0.2.0/24"},
}}}}

// refusedObject is an object that breaks one guard, and what the API server says about it. field is the field of the Policy whose rule it breaks; "" for other guards.
type refusedObject struct{ object, words, field string }

// refusedByServer are objects that each break one guard, by the names of apps and of the objects. They satisfy everything else of everyGuard.
func refusedByServer(namespace string) map[string]refusedObject {
	all := refusedByPolicy()
	for _, of := range []map[string]refusedObject{refusedToPods(), refusedToTenants(namespace)} {
		for name, one := range of {
			all[name] = one
		}
	}
	const labelled = ", metadata: {name: x, labels: {team: a}}"
	satisfies := strings.NewReplacer("image: a,", "image: 'a@sha256:"+strings.Repeat("0", 64)+"',", "spec: {rules: ", "spec: {ingressClassName: public, rules: ")
	for name, one := range all {
		// An older API server writes neither of them into a pod.
		if name != "selector" {
			one.object = strings.Replace(one.object, "restartPolicy: Never, ", "restartPolicy: Never, nodeSelector: {pool: unjudged}, ", 1)
		}
		if name != "users" {
			one.object = strings.Replace(one.object, "restartPolicy: Never, ", "restartPolicy: Never, hostUsers: false, ", 1)
		}
		for _, kind := range []string{"kind: Pod", "kind: Deployment", "kind: StatefulSet", "kind: CronJob"} {
			if name != "unlabelled" {
				one.object = strings.Replace(one.object, kind+", metadata: {name: x}", kind+labelled, 1)
			}
		}
		one.object = satisfies.Replace(one.object)
		all[name] = one
	}
	return all
}

const (
	unjudgedClaim   = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], storageClassName: %s, %sresources: {requests: {storage: %s}}}}"
	unjudgedIngress = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {%s}}"
	unjudgedNetwork = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: %s}, spec: {podSelector: {}, ingress: [{%s}]}}"
	unjudgedLoad    = "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: LoadBalancer, loadBalancerSourceRanges: [203.0.113.0/24], loadBalancerClass: lb.example/shared, allocateLoadBalancerNodePorts: false, %s}}"
	unjudgedPods    = "selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}}, spec: {%s" + podSpec + "}}"
)

// refusedByPolicy are objects that break the rules of Policies.
func refusedByPolicy() map[string]refusedObject {
	pod := func(field string) string { return placed("Pod", field) }
	image := func(reference string) string {
		return strings.ReplaceAll(placed("Pod", "hostname: a"), "image: a,", "image: '"+reference+"',")
	}
	sha512 := strings.Repeat("0", 128) // It names the image, and no signature is of it.
	config := func(marks string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, " + marks + ": {evil.example/x: y}}}"
	}
	return map[string]refusedObject{
		"image":         {image("evil.example/web"), "Images: Pod/image has the image evil.example/web, which is not among the allowed ones", "images.allow"},
		"imagedeny":     {image("old:1@sha512:" + sha512), "Images: Pod/imagedeny has the image old:1", "images.deny"},
		"digest":        {image("web:1"), "Images: Pod/digest has the image web:1 without a digest", "images.requireDigest"},
		"pull":          {strings.Replace(pod("hostname: a"), "image: a,", "image: a, imagePullPolicy: Never,", 1), "Images: Pod/pull has the image a@sha256", "images.pullPolicies"},
		"signature":     {image("signed.example/web@sha512:" + sha512), "Images: Pod/signature has the image signed.example/web@sha512:" + sha512 + ", which has to be signed", "images.verify"},
		"service":       {fmt.Sprintf(service, ", type: NodePort"), "Services: Service/service", "services.types"},
		"balancer":      {fmt.Sprintf(service, ", type: LoadBalancer, allocateLoadBalancerNodePorts: false, loadBalancerClass: lb.example/other, loadBalancerSourceRanges: [203.0.113.0/24]"), "Services: Service/balancer", "services.loadBalancerClasses"},
		"ranges":        {fmt.Sprintf(service, ", type: LoadBalancer, allocateLoadBalancerNodePorts: false, loadBalancerClass: lb.example/shared, loadBalancerSourceRanges: [198.51.100.0/24]"), "Services: Service/ranges", "services.loadBalancerSourceRanges"},
		"externalname":  {fmt.Sprintf(service, ", type: ExternalName, externalName: a.unjudged.example"), "Services: Service/externalname has the external name a.unjudged.example", "services.externalNames"},
		"externalip":    {fmt.Sprintf(service, ", externalIPs: [192.0.2.1]"), "Services: Service/externalip has the external IP 192.0.2.1", "services.externalIPs"},
		"nodeport":      {fmt.Sprintf(unjudgedLoad, "ports: [{port: 80, nodePort: 30011}]"), "Services: Service/nodeport has the node port 30011", "services.nodePorts"},
		"suffix":        {ingressOf("x", "web.other.example"), "Hostnames: Ingress/suffix has the host web.other.example", "hostnames.suffixes"},
		"backend":       {fmt.Sprintf(unjudgedIngress, "ingressClassName: public, defaultBackend: {service: {name: a, port: {number: 80}}}"), "Hostnames: Ingress/backend serves every host name", "hostnames.suffixes"},
		"wildcard":      {ingressOf("x", "*.unjudged.example"), "Hostnames: Ingress/wildcard has the host *.unjudged.example", "hostnames.wildcards"},
		"host":          {ingressOf("x", "web.unjudged.example"), "Hostnames: Ingress/host has the host web.unjudged.example, which is not among the host names that this project has", ""},
		"class":         {fmt.Sprintf(unjudgedClaim, "slow", "", "1Gi"), "Classes: PersistentVolumeClaim/class", "classes.storage"},
		"attributes":    {fmt.Sprintf(unjudgedClaim, "fast", "volumeAttributesClassName: gold, ", "1Gi"), "Classes: PersistentVolumeClaim/attributes", "classes.volumeAttributes"},
		"ingressclass":  {fmt.Sprintf(unjudgedIngress, "ingressClassName: other, rules: [{host: kept.unjudged.example}]"), "Classes: Ingress/ingressclass", "classes.ingress"},
		"gateway":       {"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: x}, spec: {gatewayClassName: other, listeners: [{name: a, port: 80, protocol: HTTP, hostname: kept.unjudged.example}]}}", "Classes: Gateway/gateway", "classes.gateway"},
		"priority":      {pod("priorityClassName: urgent-unjudged"), "Classes: Pod/priority", "classes.priority"},
		"runtime":       {fmt.Sprintf(markedPlace, "apps/v1", "Deployment", "replicas: 0, "+fmt.Sprintf(unjudgedPods, "runtimeClassName: kata, ")), "Classes: Deployment/runtime", "classes.runtime"},
		"selector":      {pod("nodeSelector: {pool: other}"), "Nodes: Pod/selector", "nodes.selector"},
		"node":          {pod("tolerations: [{key: gpu, value: large}]"), "Nodes: Pod/node", "nodes.tolerations"},
		"users":         {pod("hostUsers: true"), "Nodes: Pod/users", "nodes.userNamespaces"},
		"otherkind":     {placed("CronJob", "hostname: a"), "Kinds: CronJob/otherkind", "kinds.allow"},
		"kind":          {"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}", "Kinds: HorizontalPodAutoscaler/kind", "kinds.deny"},
		"unlabelled":    {pod("hostname: a"), "Metadata: Pod/unlabelled lacks the label team", "metadata.requiredLabels"},
		"label":         {config("labels"), "Metadata: ConfigMap/label", "metadata.forbiddenLabels"},
		"metadata":      {config("annotations"), "Metadata: ConfigMap/metadata", "metadata.forbiddenAnnotations"},
		"podsecurity":   {pod("securityContext: {sysctls: [{name: kernel.msgmax, value: '65536'}]}"), "violates PodSecurity", "podSecurity"},
		"quota":         {fmt.Sprintf(unjudgedClaim, "fast", "", "900Ti"), "exceeded quota: kubeop", "quota"},
		"limits":        {strings.Replace(pod("hostname: a"), "image: a,", "image: a, resources: {limits: {cpu: 2}},", 1), "maximum cpu usage per Container is 1", "limits"},
		"networkpolicy": {fmt.Sprintf(unjudgedNetwork, "x", ""), "NetworkPolicies: NetworkPolicy/networkpolicy lets everybody connect", ""},
	}
}

// refusedToPods are objects that break the rules for the pods of all tenants.
func refusedToPods() map[string]refusedObject {
	pod := func(field string) string { return placed("Pod", field) }
	return map[string]refusedObject{
		"nodename":      {pod("nodeName: a"), "NodeName: Pod/nodename", ""},
		"affinity":      {pod("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaces: [kube-system]}]}}"), "ForeignAffinity: Pod/affinity", ""},
		"toleration":    {pod("tolerations: [{key: gold, operator: Exists}]"), "Toleration: Pod/toleration tolerates the taint gold", ""},
		"identity":      {pod("serviceAccountName: kubeop-deployer"), "PlatformIdentity: Pod/identity", ""},
		"volume":        {pod("volumes: [{name: v, csi: {driver: store.example}}]"), "VolumeType: Pod/volume", ""},
		"foreignvolume": {fmt.Sprintf(unjudgedClaim, "fast", "volumeName: old, ", "1Gi"), "ForeignVolume: PersistentVolumeClaim/foreignvolume", ""},
		"grace":         {pod("terminationGracePeriodSeconds: 90000"), "GracePeriod: Pod/grace", ""},
		"priorityclass": {pod("priorityClassName: loud-unjudged"), "PriorityClass: Pod/priorityclass", ""},
	}
}

// refusedToTenants are objects that break the other rules for all tenants. RBAC refuses some of them.
func refusedToTenants(namespace string) map[string]refusedObject {
	const (
		role  = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: little}"
		claim = "volumeClaimTemplates: [{metadata: {name: a, labels: {paas.kubeop.io/tenant: other}}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}}]"
		path  = "rules: [{host: kept.unjudged.example, http: {paths: [{path: '/a\"b', pathType: ImplementationSpecific, backend: {service: {name: a, port: {number: 80}}}}]}}]"
	)
	set := "serviceName: x, replicas: 0, " + fmt.Sprintf(unjudgedPods, "") + ", " + claim
	return map[string]refusedObject{
		"blockeddrain":    {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}, spec: {maxUnavailable: 0, selector: {matchLabels: {x: z}}}}", "BlockedDrain: PodDisruptionBudget/blockeddrain", ""},
		"revision":        {"{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: x}, revision: 1, data: {spec: {template: {spec: {nodeName: a}}}}}", "ControllerRevision: ControllerRevision/revision", ""},
		"event":           {"{apiVersion: v1, kind: Event, metadata: {name: x}, involvedObject: {kind: Pod, name: a, namespace: " + namespace + "}, message: " + strings.Repeat("x", 4_000) + "}", "Events: Event/event is larger than 3072 bytes", ""},
		"externalservice": {fmt.Sprintf(unjudgedLoad, "ports: [{port: 80}], loadBalancerIP: 192.0.2.1"), "ExternalService: Service/externalservice", ""},
		"foreignsubject":  {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, " + role + ", subjects: [{kind: ServiceAccount, name: y, namespace: default}]}", "ForeignSubject: RoleBinding/foreignsubject", ""},
		"forgedmark":      {fmt.Sprintf(markedPlace, "apps/v1", "StatefulSet", set), "ForgedMark: StatefulSet/forgedmark carries paas.kubeop.io/tenant", ""},
		"annotation": {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, annotations: {nginx.ingress.kubernetes.io/auth-url: 'http://a.b'}}, spec: {rules: [{host: kept.unjudged.example}]}}",
			"IngressAnnotation: Ingress/annotation", ""},
		"path":  {fmt.Sprintf(unjudgedIngress, path), "IngressPath: Ingress/path", ""},
		"route": {"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: x}, spec: {hostnames: [kept.unjudged.example], rules: [{matches: [{path: {value: '/a`b'}}]}]}}", "RouteMatch: HTTPRoute/route", ""},
		"size": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [{apiGroups: [''], resources: [pods], verbs: [get], resourceNames: [" + strings.Repeat("x", 270_000) + "]}]}",
			"ObjectSize: Role/size", ""},
		"token":          {fmt.Sprintf(tokenSecret, "kubeop-deployer"), "PlatformToken: Secret/token", ""},
		"reserved":       {"{apiVersion: v1, kind: ServiceAccount, metadata: {name: kubeop-x}}", "ReservedName: ServiceAccount/kubeop-reserved", ""},
		"platformobject": {fmt.Sprintf(unjudgedNetwork, "kubeop-x", "from: [{podSelector: {}}]"), "PlatformObject: NetworkPolicy/kubeop-platformobject", ""},

		"ownkind":       {"{apiVersion: paas.kubeop.io/v1alpha1, kind: Guardrails, metadata: {name: x}, spec: {}}", "forbidden", ""},
		"endpoints":     {"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: x}, addressType: IPv4, endpoints: [{addresses: [10.9.9.9]}]}", "forbidden", ""},
		"resourcequota": {"{apiVersion: v1, kind: ResourceQuota, metadata: {name: x}}", "forbidden", ""},
		"limitrange":    {"{apiVersion: v1, kind: LimitRange, metadata: {name: x}, spec: {limits: []}}", "forbidden", ""},
		"clusterscoped": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, rules: []}", "forbidden", ""},
	}
}
