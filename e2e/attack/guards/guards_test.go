//go:build e2e

package guards

import (
	"maps"
	"slices"
	"strings"
)

// guard is something that tenants must not do: an object that is accepted, the control, with one field more.
type guard struct {
	name string
	// control is a key of controls. "pod" is a pod: the fields are those of its spec, and every kind that makes pods is tried.
	control string
	// field is a JSON pointer and value its YAML. Without field, object is refused as a whole.
	field, value, object string
	// policy is the admission policy that refuses it, or what the API server itself says. words are of the message of the policy and of the App's condition;
	// git are those of the condition if they differ.
	policy, words, git string
	skip               string
	// tenant is the attacker, by default mallet, and project one of its projects, by default shop.
	tenant, project string
}

// Letters of guard.skip: forms that do not apply.
const (
	noUpdate   = "u" // The API server lets nobody change the field.
	noGit      = "g" // It is allowed in Git.
	noDirect   = "d" // It is allowed to accounts.
	noDeployer = "k" // It is allowed to kubeop's own account.
	noKinds    = "t" // Templates may have it: what is made from them is refused.
	oneInGit   = "o" // Of the forms in Git only the App's own manifests: all forms end in one check of the rendered objects, and another guard of the rule is tried in all.
)

const (
	host    = "web.mallet.example" // The attacker's.
	victims = "www.mine.example"   // Another tenant's.
	digest  = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	secure  = "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"
	podSpec = "{nodeSelector: {pool: tenants}, securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, " +
		"containers: [{name: a, image: 'registry.example.com/mallet/web" + digest + "', imagePullPolicy: Always, " + secure + "}]%s}"
	claim    = "{accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}"
	metadata = "metadata: {name: NAME, labels: {team: a}, annotations: {note: x}}"
	listener = "{name: a, port: 80, protocol: HTTP, hostname: " + host + "}"
	inside   = "metadata: {labels: {app: a}, annotations: {note: x}}"
	rbacV1   = "apiVersion: rbac.authorization.k8s.io/v1"
)

var (
	always   = "{" + inside + ", spec: " + strings.Replace(podSpec, "%s", "", 1) + "}"
	never    = "{" + inside + ", spec: " + strings.Replace(podSpec, "%s", ", restartPolicy: Never", 1) + "}"
	selector = "selector: {matchLabels: {app: a}}"
)

// controls are objects that a tenant may have.
var controls = map[string]string{
	"Pod":         "{apiVersion: v1, kind: Pod, " + metadata + ", spec: " + strings.Replace(podSpec, "%s", "", 1) + "}",
	"Deployment":  "{apiVersion: apps/v1, kind: Deployment, " + metadata + ", spec: {replicas: 0, " + selector + ", template: " + always + "}}",
	"ReplicaSet":  "{apiVersion: apps/v1, kind: ReplicaSet, " + metadata + ", spec: {replicas: 0, " + selector + ", template: " + always + "}}",
	"DaemonSet":   "{apiVersion: apps/v1, kind: DaemonSet, " + metadata + ", spec: {" + selector + ", template: " + always + "}}",
	"StatefulSet": "{apiVersion: apps/v1, kind: StatefulSet, " + metadata + ", spec: {replicas: 0, serviceName: a, " + selector + ", template: " + always + ", volumeClaimTemplates: [{metadata: {name: data, labels: {a: b}, annotations: {note: x}}, spec: " + claim + "}]}}",
	"Job":         "{apiVersion: batch/v1, kind: Job, " + metadata + ", spec: {suspend: true, template: " + never + "}}",
	"CronJob":     "{apiVersion: batch/v1, kind: CronJob, " + metadata + ", spec: {schedule: '0 0 1 1 *', suspend: true, jobTemplate: {" + inside + ", spec: {template: " + never + "}}}}",
	"Service":     "{apiVersion: v1, kind: Service, " + metadata + ", spec: {ports: [{port: 80}]}}",
	"LoadBalancer": "{apiVersion: v1, kind: Service, " + metadata + ", spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, " +
		"loadBalancerClass: internal.example.com/lb, loadBalancerSourceRanges: [198.51.100.0/24], ports: [{port: 80}]}}",
	"Ingress": "{apiVersion: networking.k8s.io/v1, kind: Ingress, " + metadata + ", spec: {ingressClassName: public, rules: [{host: " + host + ", http: {paths: [{path: /, pathType: Prefix, " +
		"backend: {service: {name: a, port: {number: 80}}}}]}}]}}",
	"OlderIngress": "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: NAME, labels: {team: a}, annotations: {note: x, kubernetes.io/ingress.class: public}}, spec: {rules: [{host: " + host + "}]}}",
	"Gateway":      "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, " + metadata + ", spec: {gatewayClassName: shared, listeners: [" + listener + "]}}",
	"ListenerSet":  "{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, " + metadata + ", spec: {parentRef: {name: a}, listeners: [" + listener + "]}}",
	"GRPCRoute":    "{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, " + metadata + ", spec: {hostnames: [" + host + "]}}",
	"TLSRoute":     "{apiVersion: gateway.networking.k8s.io/v1, kind: TLSRoute, " + metadata + ", spec: {hostnames: [" + host + "]}}",
	"HTTPRoute":    "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, " + metadata + ", spec: {hostnames: [" + host + "]}}",
	"Opening": "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, " + metadata + ", spec: {podSelector: {}, policyTypes: [Ingress, Egress], " +
		"ingress: [{from: [{podSelector: {}}]}], egress: [{to: [{podSelector: {}}]}]}}",
	"Claim":       "{apiVersion: v1, kind: PersistentVolumeClaim, " + metadata + ", spec: " + claim + "}",
	"Budget":      "{apiVersion: policy/v1, kind: PodDisruptionBudget, " + metadata + ", spec: {maxUnavailable: 1, " + selector + "}}",
	"ConfigMap":   "{apiVersion: v1, kind: ConfigMap, " + metadata + ", data: {a: b}}",
	"Quorum":      "{apiVersion: policy/v1, kind: PodDisruptionBudget, " + metadata + ", spec: {minAvailable: 1, " + selector + "}}",
	"PullSecret":  "{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {name: kubeop-registry-NAME, labels: {team: a}, annotations: {note: x}}, stringData: {.dockerconfigjson: '{\"auths\": {}}'}}",
	"Secret":      "{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: NAME, labels: {team: a}, annotations: {kubernetes.io/service-account.name: kubeop-deployer}}}",
	"Token":       "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: NAME, labels: {team: a}, annotations: {kubernetes.io/service-account.name: bot}}}",
	"Account":     "{apiVersion: v1, kind: ServiceAccount, " + metadata + "}",
	"Role":        "{" + rbacV1 + ", kind: Role, " + metadata + ", rules: [{apiGroups: [''], resources: [serviceaccounts], verbs: [get]}]}",
	"RoleBinding": "{" + rbacV1 + ", kind: RoleBinding, " + metadata + ", roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: little}, subjects: [{kind: ServiceAccount, name: bot, namespace: NAMESPACE}]}",
}

// templates are the kinds of pods and of what makes pods, with where the pod is.
var templates = map[string]string{
	"Pod": "/spec", "Deployment": "/spec/template/spec", "ReplicaSet": "/spec/template/spec", "DaemonSet": "/spec/template/spec",
	"StatefulSet": "/spec/template/spec", "Job": "/spec/template/spec", "CronJob": "/spec/jobTemplate/spec/template/spec",
}

const (
	judged                           = "'kubeop-guardrails-deny' denied request: "
	images, classes, nodes, services = judged + "Images: ", judged + "Classes: ", judged + "Nodes: ", judged + "Services: "
	opened                           = "kubeop-network-policies"
	hostnames, marks, kinds          = judged + "Hostnames: ", judged + "Metadata: ", judged + "Kinds: "
	security, forbidden              = `violates PodSecurity "restricted:`, "is forbidden: User"
	broken                           = "of the Pod Security level restricted"
	ephemeral                        = "[{name: v, ephemeral: {volumeClaimTemplate: {%s, spec: %s}}}]"
	oldClass                         = "annotations: {volume.beta.kubernetes.io/storage-class: slow}"
	theirData                        = "{kind: PersistentVolumeClaim, name: a, namespace: default}"
	lower                            = "a lowercase RFC 1123 subdomain"
	wide                             = "\uff57\uff57\uff57" // www, in letters of another width.
)

func templated(metadata, spec string) string {
	return strings.Replace(strings.Replace(ephemeral, "%s", "metadata: {"+metadata+"}", 1), "%s", spec, 1)
}

// mounted are volumes of types that are mounted past claims.
var mounted = map[string]string{
	"nfs": "{server: 10.0.0.1, path: /}", "iscsi": "{targetPortal: 10.0.0.1, iqn: 'iqn.2001-04.com.example:a', lun: 0}", "cephfs": "{monitors: [10.0.0.1]}",
	"rbd": "{monitors: [10.0.0.1], image: a}", "fc": "{targetWWNs: [a], lun: 0}", "flexVolume": "{driver: example.com/a}", "glusterfs": "{endpoints: a, path: a}",
	"gcePersistentDisk": "{pdName: a}", "awsElasticBlockStore": "{volumeID: a}", "azureDisk": "{diskName: a, diskURI: 'https://blob/a.vhd'}",
	"azureFile": "{secretName: a, shareName: a}", "cinder": "{volumeID: a}", "vsphereVolume": "{volumePath: a}", "portworxVolume": "{volumeID: a}",
}

// ofVolumes are guards about each type of volume: Pod Security refuses pods with it, and templates are refused by their own policy.
func ofVolumes() (all []guard) {
	for _, of := range slices.Sorted(maps.Keys(mounted)) {
		volumes := "[{name: v, " + of + ": " + mounted[of] + "}]"
		all = append(all,
			guard{name: "a volume of type " + of, control: "pod", field: "/volumes", value: volumes, policy: security, words: `uses restricted volume type "` + of + `"`, skip: noKinds + noUpdate + noGit},
			guard{name: "a volume of type " + of + " of a template", control: "Deployment", field: "/spec/template/spec/volumes", value: volumes, policy: "kubeop-volumes", words: "has the volume v of ", skip: oneInGit},
			guard{name: "a volume of type " + of + " of a job", control: "CronJob", field: "/spec/jobTemplate/spec/template/spec/volumes", value: volumes, policy: "kubeop-volumes", words: "has the volume v of ", skip: noGit})
	}
	return all
}

// guards are all rules of docs/guardrails.md and docs/admission.md about objects. GUARDS=<parts of names, with commas> tries some.
var guards = slices.Concat(ofVolumes(), ofNarrow, []guard{
	{name: "another registry", control: "pod", field: "/containers/0/image", value: "evil.org/web" + digest, policy: images, words: "which is not among the allowed ones"},
	{name: "a registry like ours", control: "pod", field: "/containers/0/image", value: "registry.example.com.evil.org/mallet/web" + digest, policy: images, words: "which is not among the allowed ones"},
	{name: "a Unicode twin", control: "pod", field: "/containers/0/image", value: "rеgistry.example.com/mallet/web" + digest, policy: images, words: "which is not among the allowed ones"}, // A Cyrillic letter.
	{name: "a path like ours", control: "pod", field: "/containers/0/image", value: "registry.example.com/mallet-2/web" + digest, policy: images, words: "which is not among the allowed ones"},
	{name: "a refused image", control: "pod", field: "/containers/0/image", value: "registry.example.com/mallet/old" + digest, policy: images, words: "which is among the refused ones"},
	{name: "a refused image in capitals", control: "pod", field: "/containers/0/image", value: "Registry.Example.com:443/mallet/old" + digest, policy: images, words: "which is among the refused ones"},
	{name: "a tag", control: "pod", field: "/containers/0/image", value: "registry.example.com/mallet/web:1", policy: images, words: "without a digest"},
	{name: "an unsigned image", control: "pod", field: "/containers/0/image", value: "registry.example.com/mallet/signed/web" + digest, policy: images, words: "which has to be signed", skip: noGit},
	{name: "an unsigned image by another port", control: "pod", field: "/containers/0/image", value: "registry.example.com:00443/mallet/signed/web" + digest, policy: images, words: "which has to be signed", skip: noGit},
	{name: "an unsigned image in capitals", control: "pod", field: "/containers/0/image", value: "Registry.Example.COM/mallet/signed/web" + digest, policy: images, words: "which has to be signed", skip: noGit},
	{name: "an old image", control: "pod", field: "/containers/0/imagePullPolicy", value: "Never", policy: images, words: "with imagePullPolicy Never"},
	{name: "an init container", control: "pod", field: "/initContainers", value: "[{name: i, image: 'evil.org/web" + digest + "', imagePullPolicy: Always, " + secure + "}]", policy: images, words: "which is not among the allowed ones"},
	{name: "an image volume", control: "pod", field: "/volumes", value: "[{name: v, image: {reference: 'evil.org/web" + digest + "', pullPolicy: Always}}]", policy: images, words: "which is not among the allowed ones"},
	{name: "a runtime", control: "pod", field: "/runtimeClassName", value: "kata", policy: classes, words: "runtimeClassName kata"},
	{name: "storage of a volume", control: "pod", field: "/volumes", value: templated("", strings.Replace(claim, "fast", "slow", 1)), policy: classes, words: "storageClassName slow"},
	{name: "storage of a volume, older", control: "pod", field: "/volumes", value: templated(oldClass, claim), policy: classes, words: "storageClassName slow"},
	{name: "other nodes", control: "pod", field: "/nodeSelector/pool", value: "others", policy: nodes, words: "selects nodes with pool=others"},
	{name: "a node", control: "pod", field: "/nodeName", value: "node-1", policy: "kubeop-placement", words: "has nodeName node-1"},
	{name: "every taint", control: "pod", field: "/tolerations", value: "[{operator: Exists}]", policy: "denied request: ", words: "tolerates every taint"},                                                 // Two policies refuse it.
	{name: "a taint", control: "pod", field: "/tolerations", value: "[{key: node-role.kubernetes.io/control-plane, operator: Exists}]", policy: "denied request: ", words: "tolerates the taint node-role"}, // Two policies refuse it.
	{name: "a taint of others", control: "pod", field: "/tolerations", value: "[{key: gpu, operator: Exists}]", policy: nodes, words: "tolerates the taint gpu"},
	{name: "a wider taint", control: "pod", field: "/tolerations", value: "[{key: pool, operator: Exists}]", policy: nodes, words: "tolerates the taint pool"},
	{name: "pods of others", control: "pod", field: "/affinity", value: "{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaceSelector: {}}]}}", policy: "kubeop-placement", words: "with pods of other namespaces"},
	{name: "a driver", control: "pod", field: "/volumes", value: "[{name: v, csi: {driver: csi.example}}]", policy: "kubeop-volumes", words: "of the CSI driver csi.example"},
	{name: "data of others of a pod", control: "pod", field: "/volumes", value: templated("", strings.Replace(claim, "{", "{dataSourceRef: "+theirData+", ", 1)), policy: "kubeop-volumes", words: "takes its data from namespace default"},
	{name: "a foreign volume of a pod", control: "pod", field: "/volumes", value: templated("", strings.Replace(claim, "{", "{volumeName: theirs, ", 1)), policy: "kubeop-volumes", words: "volumeName theirs"},
	{name: "a forged claim of a pod", control: "pod", field: "/volumes", value: templated("labels: {paas.kubeop.io/tenant: x}", claim), policy: "kubeop-forged-mark", words: "carries paas.kubeop.io/tenant"},
	{name: "a marked claim of a pod", control: "pod", field: "/volumes", value: templated("annotations: {evil.org/x: z}", claim), policy: marks, words: "has the annotation evil.org/x"},
	{name: "years to end", control: "pod", field: "/terminationGracePeriodSeconds", value: "1000000", policy: "kubeop-grace-period", words: "terminationGracePeriodSeconds 1000000"},
	{name: "a priority", control: "pod", field: "/priorityClassName", value: "high", policy: "kubeop-priority-class", words: "priorityClassName high"},
	{name: "the priority of nodes", control: "pod", field: "/priorityClassName", value: "system-node-critical", policy: "kubeop-priority-class", words: "priorityClassName system-node-critical", skip: oneInGit},

	{name: "a privileged container", control: "pod", field: "/containers/0/securityContext", value: "{privileged: true, capabilities: {drop: [ALL]}}", policy: security, words: "must not set securityContext.privileged=true", git: "rule privileged " + broken, skip: noKinds + noUpdate}, // Beside allowPrivilegeEscalation: false the API server calls it invalid, before Pod Security.
	{name: "a capability", control: "pod", field: "/containers/0/securityContext/capabilities", value: "{drop: [ALL], add: [SYS_ADMIN]}", policy: security, words: `must not include "SYS_ADMIN" in securityContext.capabilities.add`, git: "rule capabilities " + broken, skip: noKinds + noUpdate},
	{name: "escalation", control: "pod", field: "/containers/0/securityContext/allowPrivilegeEscalation", value: "true", policy: security, words: "must set securityContext.allowPrivilegeEscalation=false", git: "rule allowPrivilegeEscalation " + broken, skip: noKinds + noUpdate},
	{name: "root", control: "pod", field: "/securityContext/runAsUser", value: "0", policy: security, words: "runAsUser=0 (pod must not set runAsUser=0)", git: "rule runAsUser " + broken, skip: noKinds + noUpdate},
	{name: "no seccomp", control: "pod", field: "/securityContext/seccompProfile", value: "{type: Unconfined}", policy: security, words: `pod must not set securityContext.seccompProfile.type to "Unconfined"`, git: "rule seccompProfile " + broken, skip: noKinds + noUpdate},
	{name: "the host's network", control: "pod", field: "/hostNetwork", value: "true", policy: security, words: "host namespaces (hostNetwork=true)", git: "rule hostNamespaces " + broken + ": hostNetwork=true", skip: noKinds + noUpdate},
	{name: "a port of the host", control: "pod", field: "/containers/0/ports", value: "[{containerPort: 80, hostPort: 80}]", policy: security, words: `hostPort (container "a" uses hostPort 80)`, git: "rule hostPorts " + broken, skip: noKinds + noUpdate},
	{name: "the host's processes", control: "pod", field: "/hostPID", value: "true", policy: security, words: "host namespaces (hostPID=true)", git: "rule hostNamespaces " + broken + ": hostPID=true", skip: noKinds + noUpdate},
	{name: "the host's IPC", control: "pod", field: "/hostIPC", value: "true", policy: security, words: "host namespaces (hostIPC=true)", git: "rule hostNamespaces " + broken + ": hostIPC=true", skip: noKinds + noUpdate},
	{name: "the host's files", control: "pod", field: "/volumes", value: "[{name: v, hostPath: {path: /}}]", policy: security, words: `uses restricted volume type "hostPath"`, git: "rule restrictedVolumes " + broken, skip: noKinds + noUpdate},
	{name: "the deployer's account, in the older field", control: "pod", field: "/serviceAccount", value: "kubeop-deployer", policy: "kubeop-platform-identity", words: "would run as service account kubeop-deployer", skip: noKinds + noUpdate + oneInGit},
	{name: "the deployer's account", control: "pod", field: "/serviceAccountName", value: "kubeop-deployer", policy: "kubeop-platform-identity", words: "would run as service account kubeop-deployer", skip: noKinds + noUpdate},

	{name: "a port of the nodes", control: "Service", field: "/spec/type", value: "NodePort", policy: services, words: "is of type NodePort"},
	{name: "a chosen port of the nodes", control: "LoadBalancer", field: "/spec/ports/0/nodePort", value: "30500", policy: services, words: "has the node port 30500"},
	{name: "an external name", control: "Service", field: "/spec/externalName", value: "x.example", policy: "kubeop-external-service", words: "is of type ExternalName"},
	{name: "an external IP", control: "Service", field: "/spec/externalIPs", value: "[10.0.0.1]", policy: "kubeop-external-service", words: "has spec.externalIPs"},
	{name: "a class of balancers", control: "LoadBalancer", field: "/spec/loadBalancerClass", value: "public.example.com/lb", policy: services, words: "has loadBalancerClass public.example.com/lb", skip: noUpdate},
	{name: "no class of balancers", control: "LoadBalancer", field: "/spec/loadBalancerClass", value: "null", policy: services, words: "names no loadBalancerClass", skip: noUpdate},
	{name: "an address of balancers", control: "LoadBalancer", field: "/spec/loadBalancerIP", value: "192.0.2.7", policy: "kubeop-external-service", words: "can take an address meant for others"},
	{name: "an address of balancers by an annotation", control: "LoadBalancer", field: "/metadata/annotations/metallb.io~1loadBalancerIPs", value: "192.0.2.7", policy: "kubeop-ingress-annotation", words: "takes an address of load balancers", skip: oneInGit},
	{name: "a shared address of balancers", control: "LoadBalancer", field: "/metadata/annotations/lbipam.cilium.io~1sharing-key", value: "x", policy: "kubeop-ingress-annotation", words: "takes an address of load balancers", skip: oneInGit},
	{name: "everybody", control: "LoadBalancer", field: "/spec/loadBalancerSourceRanges", value: "[0.0.0.0/0]", policy: services, words: "lets 0.0.0.0/0 connect"},
	{name: "nobody named", control: "LoadBalancer", field: "/spec/loadBalancerSourceRanges", value: "[]", policy: services, words: "has no loadBalancerSourceRanges"},

	{name: "another's host", control: "Ingress", field: "/spec/rules/0/host", value: victims, policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "a host without claim", control: "Ingress", field: "/spec/rules/0/host", value: "free.mallet.example", policy: hostnames, words: "is not among the host names", skip: noGit},
	{name: "a wildcard", control: "Ingress", field: "/spec/rules/0/host", value: "'*.mallet.example'", policy: hostnames, words: "wildcards are not allowed"},
	{name: "another domain", control: "Ingress", field: "/spec/rules/0/host", value: "www.kubernetes.example", policy: hostnames, words: "which is not below the allowed domains"},
	{name: "every host", control: "Ingress", field: "/spec/rules/0", value: "{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}", policy: hostnames, words: "serves every host name"},
	{name: "a default backend", control: "Ingress", field: "/spec/defaultBackend", value: "{service: {name: a, port: {number: 80}}}", policy: hostnames, words: "serves every host name"},
	{name: "a certificate of another's host", control: "Ingress", field: "/spec/tls", value: "[{hosts: [" + victims + "], secretName: a}]", policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "another's host of a route", control: "HTTPRoute", field: "/spec/hostnames/0", value: victims, policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "every host of a route", control: "HTTPRoute", field: "/spec/hostnames", value: "[]", policy: hostnames, words: "serves every host name"},
	{name: "another's host in capitals", control: "Ingress", field: "/spec/rules/0/host", value: "WWW.Mine.Example", policy: "is invalid", words: lower, git: "which another tenant has"},
	{name: "another's host with a dot", control: "Ingress", field: "/spec/rules/0/host", value: victims + ".", policy: "is invalid", words: lower, git: "which another tenant has"},
	{name: "another's host in wide letters", control: "Ingress", field: "/spec/rules/0/host", value: wide + ".mine.example", policy: "is invalid", words: lower, git: "which another tenant has"},
	{name: "another's host in capitals of a route", control: "HTTPRoute", field: "/spec/hostnames/0", value: "WWW.Mine.Example", policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "another's host with a dot of a route", control: "HTTPRoute", field: "/spec/hostnames/0", value: victims + ".", policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "another's host in wide letters of a route", control: "HTTPRoute", field: "/spec/hostnames/0", value: wide + ".mine.example", policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "another's host with a wide dot of a route", control: "HTTPRoute", field: "/spec/hostnames/0", value: "www\u3002mine.example", policy: hostnames, words: "which is not below the allowed domains"},
	{name: "a Unicode twin of another's host", control: "HTTPRoute", field: "/spec/hostnames/0", value: "www.m\u0456ne.example", policy: hostnames, words: "which is not below the allowed domains"}, // A Cyrillic letter.
	{name: "another's host of a GRPCRoute", control: "GRPCRoute", field: "/spec/hostnames/0", value: victims, policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "another's host of a TLSRoute", control: "TLSRoute", field: "/spec/hostnames/0", value: victims, policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "another's host of a listener", control: "Gateway", field: "/spec/listeners/0/hostname", value: victims, policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "another's host in capitals of a listener", control: "Gateway", field: "/spec/listeners/0/hostname", value: "WWW.Mine.Example", policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "another's host of a second listener", control: "Gateway", field: "/spec/listeners", value: "[" + listener + ", {name: b, port: 443, protocol: HTTPS, hostname: " + victims + "}]", policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "every host of a listener", control: "Gateway", field: "/spec/listeners/0", value: "{name: a, port: 80, protocol: HTTP}", policy: hostnames, words: "serves every host name"},
	{name: "a wildcard of a listener", control: "Gateway", field: "/spec/listeners/0/hostname", value: "'*.mallet.example'", policy: hostnames, words: "wildcards are not allowed"},
	{name: "another's host of a ListenerSet", control: "ListenerSet", field: "/spec/listeners/0/hostname", value: victims, policy: hostnames, words: "is not among the host names", git: "which another tenant has"},
	{name: "every host of a ListenerSet", control: "ListenerSet", field: "/spec/listeners/0", value: "{name: a, port: 80, protocol: TLS}", policy: hostnames, words: "serves every host name"},
	{name: "a GatewayClass", control: "Gateway", field: "/spec/gatewayClassName", value: "internal", policy: classes, words: "gatewayClassName internal"},
	{name: "a header that names another's host", control: "HTTPRoute", field: "/spec/rules", value: "[{matches: [{headers: [{name: x, value: 'a`) || Host(`" + victims + "'}]}]}]", policy: "kubeop-route-match", words: "in which a backquote"},
	{name: "a path that names another's host", control: "Ingress", field: "/spec/rules/0/http/paths/0/path", value: "'/a`) || Host(`" + victims + "'", policy: "kubeop-ingress-path", words: "in which quotes, white space"},
	{name: "an alias", control: "Ingress", field: "/metadata/annotations/nginx.ingress.kubernetes.io~1server-alias", value: victims, policy: "kubeop-ingress-annotation", words: "names a host that is not in the rules"},
	{name: "a snippet", control: "Ingress", field: "/metadata/annotations/nginx.ingress.kubernetes.io~1Server-Snippet", value: "x", policy: "kubeop-ingress-annotation", words: "writes configuration of the Ingress controller"},
	{name: "an address to call", control: "Ingress", field: "/metadata/annotations/nginx.ingress.kubernetes.io~1auth-url", value: "http://x.example", policy: "kubeop-ingress-annotation", words: "leads the Ingress controller"},
	{name: "a snippet of a Service", control: "Service", field: "/metadata/annotations/haproxy.org~1backend-config-snippet", value: "x", policy: "kubeop-ingress-annotation", words: "writes configuration of the Ingress controller", skip: oneInGit},
	{name: "a condition of a Service", control: "Service", field: "/metadata/annotations/haproxy.org~1route-acl", value: "x", policy: "kubeop-ingress-annotation", words: "writes configuration of the Ingress controller", skip: oneInGit},
	{name: "an address to check", control: "Ingress", field: "/metadata/annotations/haproxy-ingress.github.io~1agent-check-addr", value: "192.0.2.1", policy: "kubeop-ingress-annotation", words: "leads the Ingress controller", skip: oneInGit},
	{name: "a redirection from another's host", control: "Ingress", field: "/metadata/annotations/haproxy-ingress.github.io~1redirect-from", value: victims, policy: "kubeop-ingress-annotation", words: "names a host that is not in the rules", skip: oneInGit},
	{name: "the twin with www", control: "Ingress", field: "/metadata/annotations/nginx.ingress.kubernetes.io~1from-to-www-redirect", value: "'true'", policy: "kubeop-ingress-annotation", words: "names a host that is not in the rules", skip: oneInGit},
	{name: "a certificate of a Gateway", control: "Gateway", field: "/metadata/annotations/cert-manager.io~1common-name", value: victims, policy: "kubeop-ingress-annotation", words: "names a host that is not in the rules", skip: oneInGit},
	{name: "a certificate of Traefik", control: "Ingress", field: "/metadata/annotations/traefik.ingress.kubernetes.io~1router.tls.domains.0.main", value: victims, policy: "kubeop-ingress-annotation", words: "names a host that is not in the rules", skip: oneInGit},
	{name: "headers of another namespace", control: "Ingress", field: "/metadata/annotations/nginx.ingress.kubernetes.io~1auth-proxy-set-headers", value: "default/x", policy: "kubeop-ingress-annotation", words: "names an object of ", skip: oneInGit},
	{name: "a middleware of another namespace", control: "Ingress", field: "/metadata/annotations/traefik.ingress.kubernetes.io~1router.middlewares", value: "kubeop-other-shop-x@kubernetescrd", policy: "kubeop-ingress-annotation", words: "names an object of ", skip: oneInGit},
	{name: "a transport of another namespace", control: "Service", field: "/metadata/annotations/traefik.ingress.kubernetes.io~1service.serverstransport", value: "kubeop-other-shop-x@kubernetescrd", policy: "kubeop-ingress-annotation", words: "names an object of ", skip: oneInGit},
	{name: "DNS records of any name", control: "Ingress", field: "/metadata/annotations/external-dns.alpha.kubernetes.io~1hostname", value: victims, policy: "kubeop-ingress-annotation", words: "DNS records made for a host name"},
	{name: "DNS records of any name for a Service", control: "Service", field: "/metadata/annotations/external-dns.alpha.kubernetes.io~1hostname", value: victims, policy: "kubeop-ingress-annotation", words: "DNS records made for a host name"},
	{name: "DNS records of any name inside", control: "Service", field: "/metadata/annotations/external-dns.alpha.kubernetes.io~1internal-hostname", value: victims, policy: "kubeop-ingress-annotation", words: "DNS records made for a host name", skip: oneInGit},
	{name: "DNS records of any name by a newer prefix", control: "Ingress", field: "/metadata/annotations/External-DNS.kubernetes.io~1Hostname", value: victims, policy: "kubeop-ingress-annotation", words: "DNS records made for a host name", skip: oneInGit},
	{name: "DNS records of a route that lead elsewhere", control: "HTTPRoute", field: "/metadata/annotations/external-dns.alpha.kubernetes.io~1target", value: "192.0.2.1", policy: "kubeop-ingress-annotation", words: "leads the DNS records of its hosts"},
	{name: "DNS records of any name for a Gateway", control: "Gateway", field: "/metadata/annotations/external-dns.alpha.kubernetes.io~1hostname", value: victims, policy: "kubeop-ingress-annotation", words: "DNS records made for a host name", skip: oneInGit},
	{name: "DNS records that lead elsewhere", control: "Ingress", field: "/metadata/annotations/external-dns.alpha.kubernetes.io~1target", value: "192.0.2.1", policy: "kubeop-ingress-annotation", words: "leads the DNS records of its hosts"},
	{name: "an Ingress controller", control: "Ingress", field: "/spec/ingressClassName", value: "internal", policy: classes, words: "ingressClassName internal"},
	{name: "no Ingress controller", control: "Ingress", field: "/spec/ingressClassName", value: "null", policy: classes, words: "no ingressClassName"},
	{name: "an Ingress controller, older", control: "OlderIngress", field: "/metadata/annotations/kubernetes.io~1ingress.class", value: "internal", policy: classes, words: "ingressClassName internal"},

	{name: "a StorageClass", control: "Claim", field: "/spec/storageClassName", value: "slow", policy: classes, words: "storageClassName slow", skip: noUpdate},
	{name: "a StorageClass, older", control: "Claim", field: "/metadata/annotations/volume.beta.kubernetes.io~1storage-class", value: "slow", policy: classes, words: "storageClassName slow", skip: noUpdate},
	{name: "a volume of others", control: "Claim", field: "/spec/volumeName", value: "theirs", policy: "kubeop-volumes", words: "has volumeName theirs", skip: noUpdate},
	{name: "volumes by labels", control: "Claim", field: "/spec/selector", value: "{matchLabels: {a: b}}", policy: "kubeop-volumes", words: "selects a volume by its labels", skip: noUpdate},
	{name: "storage above the quota", control: "Claim", field: "/spec/resources/requests/storage", value: "100Ti", policy: "exceeded quota: kubeop", words: "exceeded quota: kubeop", skip: noUpdate},
	{name: "a StorageClass of a template", control: "StatefulSet", field: "/spec/volumeClaimTemplates/0/spec/storageClassName", value: "slow", policy: classes, words: "storageClassName slow", skip: noUpdate},
	{name: "a volume of a template", control: "StatefulSet", field: "/spec/volumeClaimTemplates/0/spec/volumeName", value: "theirs", policy: "kubeop-volumes", words: "has volumeName theirs", skip: noUpdate},
	{name: "data of others", control: "Claim", field: "/spec/dataSourceRef", value: theirData, words: "takes its data from namespace default", skip: noDirect}, // The API server drops it.
	{name: "data of others of a template", control: "StatefulSet", field: "/spec/volumeClaimTemplates/0/spec/dataSourceRef", value: theirData, policy: "kubeop-volumes", words: "takes its data from namespace default", skip: noUpdate},
	{name: "a snapshot of others of a template", control: "StatefulSet", field: "/spec/volumeClaimTemplates/0/spec/dataSourceRef", value: "{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: a, namespace: default}", policy: "kubeop-volumes", words: "takes its data from namespace default", skip: noUpdate + oneInGit},
	{name: "a forged claim", control: "StatefulSet", field: "/spec/volumeClaimTemplates/0/metadata/labels/paas.kubeop.io~1app", value: "x", policy: "kubeop-forged-mark", words: "carries paas.kubeop.io/app", skip: noUpdate + noDeployer},
	{name: "attributes of volumes", control: "Claim", field: "/spec/volumeAttributesClassName", value: "gold", policy: classes, words: "volumeAttributesClassName gold", skip: noUpdate}, // That of a claim without a volume cannot be changed.
	{name: "attributes of volumes of a template", control: "StatefulSet", field: "/spec/volumeClaimTemplates/0/spec/volumeAttributesClassName", value: "gold", policy: classes, words: "volumeAttributesClassName gold", skip: noUpdate},
	{name: "a blocked drain", control: "Budget", field: "/spec/maxUnavailable", value: "0", policy: "kubeop-disruption-budget", words: "so that no node with its pods can be drained"},
	{name: "a blocked drain in percent", control: "Budget", field: "/spec/maxUnavailable", value: "00%", policy: "kubeop-disruption-budget", words: "so that no node with its pods can be drained"},

	{name: "a drain that nothing allows", control: "Quorum", field: "/spec/minAvailable", value: "100%", policy: "kubeop-disruption-budget", words: "so that no node with its pods can be drained"},
	{name: "a drain that nothing allows, written otherwise", control: "Quorum", field: "/spec/minAvailable", value: "0100%", policy: "kubeop-disruption-budget", words: "so that no node with its pods can be drained", skip: oneInGit},
	{name: "a drain that rounding keeps", control: "Quorum", field: "/spec/minAvailable", value: "99%", policy: "kubeop-disruption-budget", words: "can be drained while fewer than 100 run"},
	{name: "a drain below a thousand pods", control: "Quorum", field: "/spec/minAvailable", value: "1000", policy: "kubeop-disruption-budget", words: "so that no node with its pods can be drained"},

	{name: "a label of kubeop", control: "ConfigMap", field: "/metadata/labels/paas.kubeop.io~1tenant", value: "x", policy: "kubeop-forged-mark", words: "carries paas.kubeop.io/tenant"},
	{name: "a label below kubeop's", control: "ConfigMap", field: "/metadata/labels/a.paas.kubeop.io~1b", value: "x", policy: "kubeop-forged-mark", words: "carries a.paas.kubeop.io/b", skip: noDeployer},
	{name: "a label of pods", control: "Deployment", field: "/spec/template/metadata/labels/paas.kubeop.io~1app", value: "x", policy: "kubeop-forged-mark", words: "carries paas.kubeop.io/app", skip: noDeployer},
	{name: "a label of jobs", control: "CronJob", field: "/spec/jobTemplate/metadata/labels/paas.kubeop.io~1app", value: "x", policy: "kubeop-forged-mark", words: "carries paas.kubeop.io/app", skip: noDeployer},
	{name: "a forbidden label", control: "ConfigMap", field: "/metadata/labels/evil.org~1x", value: "x", policy: marks, words: "has the label evil.org/x"},
	{name: "a forbidden annotation", control: "Service", field: "/metadata/annotations/evil.org~1x", value: "x", policy: marks, words: "has the annotation evil.org/x"},
	{name: "a forbidden annotation of pods", control: "Deployment", field: "/spec/template/metadata/annotations/evil.org~1x", value: "x", policy: marks, words: "has the annotation evil.org/x"},
	{name: "a missing label", control: "Deployment", field: "/metadata/labels", value: "{a: b}", policy: marks, words: "lacks the label team"},
	{name: "a large object", control: "ConfigMap", field: "/data/a", value: strings.Repeat("x", 40_000), policy: "kubeop-object-size", words: "is larger than the 32768 bytes", skip: noGit + noDeployer},

	{name: "a forged pull Secret", control: "PullSecret", field: "/metadata/labels/paas.kubeop.io~1project", value: "shop", policy: "kubeop-forged-mark", words: "carries paas.kubeop.io/project", skip: noDeployer},
	{name: "a token of the deployer", control: "Secret", field: "/type", value: "kubernetes.io/service-account-token", policy: "kubeop-platform-token", words: "requests a token of service account kubeop-deployer", skip: noUpdate},
	{name: "another token of the deployer", control: "Token", field: "/metadata/annotations/kubernetes.io~1service-account.name", value: "kubeop-deployer", policy: "kubeop-platform-token", words: "requests a token of service account kubeop-deployer"},
	{name: "the platform's account", control: "Account", field: "/metadata/name", value: "kubeop-NAME", policy: "kubeop-reserved-name", words: "choose another name", skip: noUpdate},
	{name: "the platform's role", control: "Role", field: "/metadata/name", value: "kubeop-NAME", policy: "kubeop-reserved-name", words: "choose another name", skip: noUpdate},
	{name: "the platform's binding", control: "RoleBinding", field: "/metadata/name", value: "kubeop-NAME", policy: "kubeop-reserved-name", words: "choose another name", skip: noUpdate},
	{name: "an account of others", control: "RoleBinding", field: "/subjects/0/namespace", value: "default", policy: "kubeop-foreign-subject", words: "which is outside of namespace"},
	{name: "everybody's rights", control: "RoleBinding", field: "/subjects/0", value: "{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}", policy: "kubeop-foreign-subject", words: "which is outside of namespace"},
	{name: "impersonation", control: "Role", field: "/rules/0/verbs", value: "[impersonate]", policy: "attempting to grant RBAC permissions not currently held", git: "impersonate"},
	{name: "tokens", control: "Role", field: "/rules/0", value: "{apiGroups: [''], resources: [serviceaccounts/token], verbs: [create]}", policy: "attempting to grant RBAC permissions not currently held", git: "serviceaccounts/token"},
	{name: "every right", control: "Role", field: "/rules/0", value: "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}", policy: "attempting to grant RBAC permissions not currently held", git: "*"},
	{name: "the rights of an owner", control: "RoleBinding", field: "/roleRef", value: "{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeop-admin}", policy: "attempting to grant RBAC permissions not currently held", git: "permissions not currently held", skip: noUpdate},
	{name: "the cluster's administration", control: "RoleBinding", field: "/roleRef", value: "{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}", policy: "attempting to grant RBAC permissions not currently held", git: "permissions not currently held", skip: noUpdate},

	{name: "everybody may connect", project: "nets", control: "Opening", field: "/spec/ingress/0", value: "{}", policy: opened, words: "lets everybody connect"},
	{name: "everybody may connect at a port", project: "nets", control: "Opening", field: "/spec/ingress/0", value: "{from: [], ports: [{port: 80}]}", policy: opened, words: "lets everybody connect"},
	{name: "everybody may connect by another rule", project: "nets", control: "Opening", field: "/spec/ingress", value: "[{from: [{podSelector: {}}]}, {}]", policy: opened, words: "lets everybody connect"},
	{name: "addresses may connect", project: "nets", control: "Opening", field: "/spec/ingress/0/from/0", value: "{ipBlock: {cidr: 10.0.0.0/8}}", policy: opened, words: "lets addresses connect"},
	{name: "every namespace may connect", project: "nets", control: "Opening", field: "/spec/ingress/0/from/0", value: "{namespaceSelector: {}}", policy: opened, words: "lets pods of other namespaces connect"},
	{name: "pods of every namespace may connect", project: "nets", control: "Opening", field: "/spec/ingress/0/from/0", value: "{namespaceSelector: {}, podSelector: {matchLabels: {app: a}}}", policy: opened, words: "lets pods of other namespaces connect"},
	{name: "another tenant may connect", project: "nets", control: "Opening", field: "/spec/ingress/0/from/0", value: "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kubeop-quarry-shop}}}", policy: opened, words: "lets pods of other namespaces connect"},
	{name: "another tenant may connect, among ours", project: "nets", control: "Opening", field: "/spec/ingress/0/from/0", value: "{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [NAMESPACE, kubeop-quarry-shop]}]}}", policy: opened, words: "lets pods of other namespaces connect"},
	{name: "all but one may connect", project: "nets", control: "Opening", field: "/spec/ingress/0/from/0", value: "{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [x]}]}}", policy: opened, words: "lets pods of other namespaces connect"},
	{name: "namespaces of a tenant may connect", project: "nets", control: "Opening", field: "/spec/ingress/0/from/0", value: "{namespaceSelector: {matchLabels: {paas.kubeop.io/tenant: quarry}}}", policy: opened, words: "lets pods of other namespaces connect"},
	{name: "connections to everything", project: "nets", control: "Opening", field: "/spec/egress/0", value: "{}", policy: opened, words: "lets pods connect to everything"},
	{name: "connections to everything at a port", project: "nets", control: "Opening", field: "/spec/egress/0", value: "{ports: [{port: 443}]}", policy: opened, words: "lets pods connect to everything"},
	{name: "connections to every address", project: "nets", control: "Opening", field: "/spec/egress/0/to/0", value: "{ipBlock: {cidr: 0.0.0.0/0}}", policy: opened, words: "or at ports there"},
	{name: "connections to every address of version 6", project: "nets", control: "Opening", field: "/spec/egress/0/to/0", value: "{ipBlock: {cidr: '::/0'}}", policy: opened, words: "or at ports there"},
	{name: "connections to the metadata of nodes", project: "nets", control: "Opening", field: "/spec/egress/0/to/0", value: "{ipBlock: {cidr: 169.254.169.254/32}}", policy: opened, words: "or at ports there"},
	{name: "connections to every namespace", project: "nets", control: "Opening", field: "/spec/egress/0/to/0", value: "{namespaceSelector: {}}", policy: opened, words: "than the namespaceSelector may select"},
	{name: "connections to another tenant", project: "nets", control: "Opening", field: "/spec/egress/0/to/0", value: "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kubeop-quarry-shop}}}", policy: opened, words: "than the namespaceSelector may select"},
	{name: "a network policy of the platform", project: "nets", control: "Opening", field: "/metadata/name", value: "kubeop-NAME", policy: "kubeop-platform-object", words: "is the platform's", git: "kubeop-", skip: noUpdate},

	{name: "a refused kind", control: "ConfigMap", object: "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, " + metadata + ", spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}", policy: kinds, words: "which is among the refused ones"},
	{name: "a refused kind of another version", control: "ConfigMap", object: "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, " + metadata + ", spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}", policy: kinds, words: "which is among the refused ones", skip: oneInGit},
	{name: "a network policy", control: "ConfigMap", object: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, " + metadata + ", spec: {podSelector: {}, ingress: [{}], egress: [{}]}}", policy: forbidden, git: "the platform sets the network policies"},
	{name: "a quota", control: "ConfigMap", object: "{apiVersion: v1, kind: ResourceQuota, " + metadata + "}", policy: forbidden, git: "the quota and limits of a project are set in its project.yaml"},
	{name: "limits", control: "ConfigMap", object: "{apiVersion: v1, kind: LimitRange, " + metadata + ", spec: {limits: []}}", policy: forbidden, git: "the quota and limits of a project are set in its project.yaml"},
	{name: "endpoints", control: "ConfigMap", object: "{apiVersion: v1, kind: Endpoints, " + metadata + ", subsets: [{addresses: [{ip: 10.9.9.9}], ports: [{port: 80}]}]}", policy: forbidden, git: "a Service finds its pods by a selector"},
	{name: "an endpoint slice", control: "ConfigMap", object: "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, " + metadata + ", addressType: IPv4, endpoints: [{addresses: [10.9.9.9]}]}", policy: forbidden, git: "a Service finds its pods by a selector"},
	{name: "a ClusterRole", control: "ConfigMap", object: "{" + rbacV1 + ", kind: ClusterRole, " + metadata + "}", policy: forbidden, git: "is cluster-scoped"},
	{name: "a namespace", control: "ConfigMap", object: "{apiVersion: v1, kind: Namespace, " + metadata + "}", policy: forbidden, git: "is cluster-scoped"},
	{name: "a volume", control: "ConfigMap", object: "{apiVersion: v1, kind: PersistentVolume, " + metadata + ", spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /}}}", policy: forbidden, git: "is cluster-scoped"},
	{name: "a claim of a host", control: "ConfigMap", object: "{apiVersion: paas.kubeop.io/v1alpha1, kind: HostnameClaim, " + metadata + ", spec: {hostname: x.example, tenant: mallet, project: shop}}", policy: forbidden, git: "is cluster-scoped"},
	{name: "an App", control: "ConfigMap", object: "{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: other-NAME}, spec: {type: Raw, raw: {manifests: []}}}", policy: forbidden, git: "kubeop's own objects belong in the tenant's repository"},
	{name: "Guardrails", control: "ConfigMap", object: "{apiVersion: paas.kubeop.io/v1alpha1, kind: Guardrails, " + metadata + ", spec: {}}", policy: forbidden, git: "kubeop's own objects belong in the tenant's repository"},
	{name: "another namespace", control: "ConfigMap", object: "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: default}}", policy: forbidden, git: "is for namespace default"},
	{name: "an Event", control: "ConfigMap", object: "{apiVersion: v1, kind: Event, " + metadata + ", involvedObject: {namespace: NAMESPACE, kind: Pod, name: x}, message: " + strings.Repeat("x", 3000) + "}", policy: "kubeop-events", words: "is larger than 3072 bytes", git: "Events report what happened"},
	{name: "a revision", control: "ConfigMap", object: "{apiVersion: apps/v1, kind: ControllerRevision, " + metadata + ", revision: 1, data: {spec: {template: {spec: {nodeName: x}}}}}", policy: "kubeop-object-size", words: "Kubernetes' controllers make them of templates"},
	{name: "a PodTemplate", control: "ConfigMap", object: "{apiVersion: v1, kind: PodTemplate, " + metadata + ", template: {" + inside + ", spec: {containers: [{name: a, image: evil.org/a}]}}}", policy: forbidden, git: "which is not among the allowed ones"},
	{name: "a record of Helm", control: "ConfigMap", object: "{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, " + metadata + "}", git: "is a record of Helm's", skip: noDirect},
})
