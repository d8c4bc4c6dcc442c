package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PolicyRules are the rules of a policy, by what they are about. Each field that is set is a rule of its own. An object has to satisfy the
// rules of all policies that its tenant is under, so of several policies the strictest wins.
type PolicyRules struct {
	// Images are the container images that pods may run.
	Images *ImageRules `json:"images,omitempty"`
	// Services are the ways in which a Service may be reached from outside of the cluster.
	Services *ServiceRules `json:"services,omitempty"`
	// Hostnames are the names under which Ingresses and routes may serve.
	Hostnames *HostnameRules `json:"hostnames,omitempty"`
	// Classes are the classes that claims, Ingresses and pods may name.
	Classes *ClassRules `json:"classes,omitempty"`
	// Nodes are the nodes on which pods run.
	Nodes *NodeRules `json:"nodes,omitempty"`
	// Kinds are the kinds of objects that apps and people may create.
	Kinds *KindRules `json:"kinds,omitempty"`
	// Metadata are the labels and annotations that objects must or may not have.
	Metadata *MetadataRules `json:"metadata,omitempty"`
	// Sources are the places from which kubeop may fetch what apps are made from.
	Sources *SourceRules `json:"sources,omitempty"`
}

// PolicyAction is what happens to an object that breaks a rule.
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type PolicyAction string

const (
	// DenyAction refuses the object: kubeop does not apply it, and the API server accepts it from nobody.
	DenyAction PolicyAction = "Deny"
	// WarnAction accepts the object. The App's condition PolicyWarning names it, and kubectl prints a warning.
	WarnAction PolicyAction = "Warn"
	// AuditAction accepts the object without a word to the tenant: it is in the API server's audit log, and kubeop counts it in
	// kubeop_policy_violations_total.
	AuditAction PolicyAction = "Audit"
)

// ImageRules limits the images of containers, init containers and ephemeral containers, and of image volumes.
//
// A pattern is a registry, or a repository and everything below it: "registry.example.com", "registry.example.com/team",
// "docker.io/library/nginx". "*" stands for any letters of one part of the path, as in "*.example.com/team"; "*" alone is every registry.
// Images are compared by their full names: "nginx" is "docker.io/library/nginx", and "index.docker.io" is "docker.io".
type ImageRules struct {
	// Action for images that break this rule: Deny, Warn or Audit. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// Allow are patterns of which an image has to match one. Default: every image.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^(\*|localhost|[a-z0-9*.-]*[.:*][a-z0-9*.:-]*)(/[a-z0-9*._-]+)*$`
	// +listType=set
	Allow []string `json:"allow,omitempty"`
	// Deny are patterns of which an image may match none, also if it matches Allow. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^(\*|localhost|[a-z0-9*.-]*[.:*][a-z0-9*.:-]*)(/[a-z0-9*._-]+)*$`
	// +listType=set
	Deny []string `json:"deny,omitempty"`
	// RequireDigest: an image has to be named by its digest, so that a tag that is moved changes nothing. Default false.
	RequireDigest bool `json:"requireDigest,omitempty"`
	// PullPolicies are the values that imagePullPolicy may have. With Always a node asks the registry with the pod's own credentials, so that
	// no pod runs a private image only because another tenant's pod left it on the node. A container that sets none has Always if its tag is
	// latest or missing, and IfNotPresent otherwise; Always is written in place of an IfNotPresent that is not allowed, as Selector of NodeRules is. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Enum=Always;IfNotPresent;Never
	// +listType=set
	PullPolicies []string `json:"pullPolicies,omitempty"`
	// Verify says who has to have signed images, charts in registries, and OCI artifacts. Each rule that has a pattern for one has to be satisfied, and
	// such an image has to be named by its sha256 digest. Default: no signature is needed.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Verify []SignatureRule `json:"verify,omitempty"`
}

// SignatureRule says who has to have signed what is in some repositories, as "cosign sign" does: one of the keys or one of the identities.
// +kubebuilder:validation:XValidation:rule="has(self.keys) || has(self.identities)",message="a rule of verify needs keys or identities"
type SignatureRule struct {
	// Images are patterns, as in Allow.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^(\*|localhost|[a-z0-9*.-]*[.:*][a-z0-9*.:-]*)(/[a-z0-9*._-]+)*$`
	// +listType=set
	Images []string `json:"images"`
	// Keys are public keys in PEM. A signature by a key needs no entry in a transparency log.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^\s*-----BEGIN [A-Z ]*PUBLIC KEY-----\s`
	// +listType=set
	Keys []string `json:"keys,omitempty"`
	// Identities are those in certificates of keyless signatures. They need sigstore.trustedRoot of the values of kubeop's chart.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	Identities []SignerIdentity `json:"identities,omitempty"`
}

// SignerIdentity is who signs without a key of their own, with a certificate for an identity that an OpenID Connect issuer confirmed.
// +kubebuilder:validation:XValidation:rule="has(self.subject) != has(self.subjectRegExp)",message="an identity needs either subject or subjectRegExp"
type SignerIdentity struct {
	// Issuer is the URL of the issuer, such as https://token.actions.githubusercontent.com.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Issuer string `json:"issuer"`
	// Subject is the whole subject: an email address, or the URL of a workflow.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Subject string `json:"subject,omitempty"`
	// SubjectRegExp is a regular expression of RE2 that has to match the whole subject.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// ServiceRules limits Services. External names and external IPs lead out of the project or catch traffic of others, so they are refused unless a
// policy lists them, and every other policy with such a list lists them, too.
type ServiceRules struct {
	// Action for Services that break this rule: Deny, Warn or Audit. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// Types are the types that a Service may have. ExternalName is among them if ExternalNames is set. Default: all, ExternalName only by ExternalNames.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Enum=ClusterIP;NodePort;LoadBalancer
	// +listType=set
	Types []string `json:"types,omitempty"`
	// LoadBalancerClasses are the values that spec.loadBalancerClass of a Service may have. A Service of type LoadBalancer has to name
	// one of them: without a class it would get the default load balancer of the cluster. Default: all, and none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +listType=set
	LoadBalancerClasses []string `json:"loadBalancerClasses,omitempty"`
	// LoadBalancerSourceRanges are address ranges. A Service of type LoadBalancer has to name in spec.loadBalancerSourceRanges who may
	// connect, and each has to be inside one of these. Default: everybody may connect.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="every entry of loadBalancerSourceRanges must be a CIDR, such as 203.0.113.0/24"
	// +listType=set
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// ExternalNames are the domains that spec.externalName of a Service may have: "example.com" is the name itself and every name below it. Whatever the
	// action is, names that no policy lists are refused. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	// +kubebuilder:validation:XValidation:rule="self.all(d, !('.' + d).endsWith('.svc') && !('.' + d).endsWith('.local'))",message="externalNames must not have the names of Services of the cluster, which end with svc or local"
	// +listType=set
	ExternalNames []string `json:"externalNames,omitempty"`
	// ExternalIPs are address ranges in which each of spec.externalIPs of a Service has to be. Whatever the action is, addresses that no policy lists
	// are refused. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c) && cidr(c).prefixLength() > 0)",message="every entry of externalIPs must be a CIDR with a part of all addresses, such as 203.0.113.0/28"
	// +listType=set
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// NodePorts are the ports of the nodes that a Service of type NodePort or LoadBalancer may have, also for its health checks. It has to name them. How many there can be is in the
	// quota of the project, by default none. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	NodePorts []NodePortRange `json:"nodePorts,omitempty"`
}

// HostnameRules limits the host names of Ingresses and of the Gateway API's Gateways and routes (HTTPRoute, GRPCRoute, TLSRoute). An Ingress
// with a default backend, and a rule, route or listener without a host name, serve every name and break the rule.
type HostnameRules struct {
	// Action for objects that break this rule: Deny, Warn or Audit. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// Suffixes are the domains that the names may have. "example.com" is the name itself and every name below it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	Suffixes []string `json:"suffixes"`
	// Wildcards: names such as "*.shop.example.com" are allowed. Default false.
	Wildcards bool `json:"wildcards,omitempty"`
}

// NodeRules says on which nodes pods run, such as those that are set apart for a group of tenants, and as which users.
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.tolerations) || has(self.userNamespaces) && self.userNamespaces",message="nodes must have a selector, tolerations or userNamespaces"
type NodeRules struct {
	// Action for pods that select other nodes, or tolerate other taints: Deny, Warn or Audit. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// Selector are labels that a node must have. With the action Deny, pods that name no value for one of these labels get it: in the templates
	// of apps by kubeop, and in every pod that is created by the API server, from Kubernetes 1.36. A pod with another value breaks the rule.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="the keys of selector must be names of labels, such as pool or example.org/pool"
	Selector map[string]LabelValue `json:"selector,omitempty"`
	// Tolerations are those that pods may have, among those whose keys spec.taints of the Tenant lists: a toleration has to tolerate no taint that none of
	// these does. Those of lost nodes, not-ready and unreachable, are always allowed, and so is what Kubernetes itself adds to the pods of a
	// DaemonSet. Default: all that the Tenant allows.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Tolerations []AllowedToleration `json:"tolerations,omitempty"`
	// UserNamespaces: the users of a pod are none of its node (hostUsers: false). It is written as Selector is; hostUsers: true breaks the rule. Default false.
	UserNamespaces bool `json:"userNamespaces,omitempty"`
}

// AllowedToleration is a toleration that pods may have, or a narrower one: with one of its values, or with its effect alone.
// +kubebuilder:validation:XValidation:rule="!has(self.operator) || self.operator == 'Equal' || !has(self.value)",message="a toleration with the operator Exists has no value"
type AllowedToleration struct {
	// Key is the key of the taint.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Key string `json:"key"`
	// Operator is Equal, for the value alone, or Exists, for every value. Default: Equal with a value, otherwise Exists.
	// +kubebuilder:validation:Enum=Equal;Exists
	Operator string `json:"operator,omitempty"`
	// Value of the taint. Default: with Equal the empty one.
	Value LabelValue `json:"value,omitempty"`
	// Effect of the taint: NoSchedule, PreferNoSchedule or NoExecute. Default: all.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect,omitempty"`
}

// KindRules limits the kinds of objects, among those that the role of the deployer has. A kind is "<Kind>" of the core group, such as
// "Secret", or "<Kind>.<group>", such as "CronJob.batch"; "*.<group>" are all kinds of a group. The rule is for what apps and people create; what
// Kubernetes' controllers make of that, Events, Leases and Helm's records are always allowed.
type KindRules struct {
	// Action for objects that break this rule: Deny, Warn or Audit. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// Allow are the kinds of which an object has to be one. Default: every kind.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([A-Z][A-Za-z0-9]*|(\*|[A-Z][A-Za-z0-9]*)\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	// +listType=set
	Allow []string `json:"allow,omitempty"`
	// Deny are the kinds of which an object may be none, also if Allow has it. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([A-Z][A-Za-z0-9]*|(\*|[A-Z][A-Za-z0-9]*)\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	// +listType=set
	Deny []string `json:"deny,omitempty"`
}

// MetadataRules says which labels and annotations objects must and may not have. In the patterns of what is forbidden, "*" stands for any
// characters, as in "*.example.com/*".
type MetadataRules struct {
	// Action for objects that break this rule: Deny, Warn or Audit. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// RequiredLabels are keys of labels that Deployments, StatefulSets, DaemonSets, Jobs, CronJobs and Pods need, except those that
	// Kubernetes' controllers make. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +listType=set
	RequiredLabels []string `json:"requiredLabels,omitempty"`
	// ForbiddenLabels are patterns of keys of labels that no object may have. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([-A-Za-z0-9._*]+/)?[-A-Za-z0-9._*]+$`
	// +kubebuilder:validation:items:XValidation:rule="self.split('*').size() <= 3",message="a pattern has at most two *"
	// +listType=set
	ForbiddenLabels []string `json:"forbiddenLabels,omitempty"`
	// ForbiddenAnnotations are patterns of keys of annotations that no object may have. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([-A-Za-z0-9._*]+/)?[-A-Za-z0-9._*]+$`
	// +kubebuilder:validation:items:XValidation:rule="self.split('*').size() <= 3",message="a pattern has at most two *"
	// +listType=set
	ForbiddenAnnotations []string `json:"forbiddenAnnotations,omitempty"`
	// Added are labels and annotations that kubeop writes into all objects of apps, whatever the action. A different value of an object's own is
	// overwritten, except in Pods, where others select by it. Selectors and templates stay as they are. Default: none.
	// +kubebuilder:validation:XValidation:rule="(!has(self.labels) || size(self.labels) <= 16) && (!has(self.annotations) || size(self.annotations) <= 16)",message="at most 16 labels and 16 annotations"
	Added *AddedMetadata `json:"added,omitempty"`
}

// AddedMetadata are labels and annotations of objects, those of up to 16 policies together. Keys of the domains kubernetes.io, k8s.io, kubeop.io and helm.sh cannot be added.
type AddedMetadata struct {
	// Labels by their keys.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// Annotations by their keys.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// SourceRules limits from where kubeop fetches the manifests and charts of apps. A list that is not set allows every place of its type.
type SourceRules struct {
	// Action for apps that break this rule: Deny, Warn or Audit. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// Git are the Git repositories.
	Git *URLPatterns `json:"git,omitempty"`
	// Helm are the Helm repositories with an https:// or http:// URL, also those of the dependencies of charts in folders.
	Helm *URLPatterns `json:"helm,omitempty"`
	// OCI are the registries with charts and artifacts.
	OCI *RepositoryPatterns `json:"oci,omitempty"`
}

// URLPatterns are patterns of URLs: a host, or a path and everything below it, as in "git.example.com/acme". "*" stands for any letters of one
// part between dots or slashes. Without a scheme a pattern is for https:// and ssh:// URLs: http:// has to be written.
type URLPatterns struct {
	// Allow are patterns of which a URL has to match one. Default: every URL.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^((https?|ssh)://)?[a-z0-9*.-]+(:[0-9]+)?(/[A-Za-z0-9*._~+-]+)*$`
	// +listType=set
	Allow []string `json:"allow,omitempty"`
	// Deny are patterns of which a URL may match none, also if it matches one of Allow. Capital letters make no difference. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^((https?|ssh)://)?[a-z0-9*.-]+(:[0-9]+)?(/[A-Za-z0-9*._~+-]+)*$`
	// +listType=set
	Deny []string `json:"deny,omitempty"`
}

// RepositoryPatterns are patterns of repositories in registries, as in ImageRules: "registry.example.com", "ghcr.io/acme".
type RepositoryPatterns struct {
	// Allow are patterns of which a repository has to match one. Default: every repository.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^(\*|localhost|[a-z0-9*.-]*[.:*][a-z0-9*.:-]*)(/[a-z0-9*._-]+)*$`
	// +listType=set
	Allow []string `json:"allow,omitempty"`
	// Deny are patterns of which a repository may match none, also if it matches one of Allow. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^(\*|localhost|[a-z0-9*.-]*[.:*][a-z0-9*.:-]*)(/[a-z0-9*._-]+)*$`
	// +listType=set
	Deny []string `json:"deny,omitempty"`
}

// Policy limits what tenants may have, in policies/<policy>.yaml of the platform repository. A Tenant names the policies that it is under
// in spec.policies. kubeop checks the objects of apps against them before it applies anything, and the API server checks every other
// write, also while kubeop does not run.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=pol,categories=kubeop
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Images",type=string,JSONPath=`.spec.images.action`
// +kubebuilder:printcolumn:name="Services",type=string,JSONPath=`.spec.services.action`
// +kubebuilder:printcolumn:name="Hostnames",type=string,JSONPath=`.spec.hostnames.action`
// +kubebuilder:printcolumn:name="Classes",type=string,JSONPath=`.spec.classes.action`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.spec.nodes.action`
// +kubebuilder:printcolumn:name="Kinds",type=string,JSONPath=`.spec.kinds.action`
// +kubebuilder:printcolumn:name="Metadata",type=string,JSONPath=`.spec.metadata.action`
// +kubebuilder:printcolumn:name="Sources",type=string,JSONPath=`.spec.sources.action`
// +kubebuilder:printcolumn:name="Egress",type=string,JSONPath=`.spec.egress.cidrs`,priority=1
// +kubebuilder:printcolumn:name="Quota",type=string,JSONPath=`.spec.quota.max`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="name must be at most 63 lowercase letters, digits and dashes"
type Policy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec PolicySpec `json:"spec,omitempty"`
}

// PolicyList is a list of Policies.
// +kubebuilder:object:root=true
type PolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Policy `json:"items"`
}
