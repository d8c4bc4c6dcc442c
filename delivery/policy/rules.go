package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// rule returns why an object is refused; "" if it is not.
type rule struct {
	name   string
	broken func(object *unstructured.Unstructured, namespace string) string
}

var (
	// everyApp are the rules for the objects of every app.
	everyApp = []rule{
		{"OwnAPIGroup", ownAPIGroup},
		{"ForgedMark", forgedMark},
		{"ReservedName", reservedName},
		{"PlatformIdentity", platformIdentity},
		{"PlatformToken", platformToken},
		{"ReleaseRecord", releaseRecord},
	}
	// tenantsApps are additional rules for the objects of tenants' apps. They isolate tenants from each other and from the platform.
	tenantsApps = append([]rule{
		{"ForeignNamespace", foreignNamespace},
		{"Endpoints", handWrittenEndpoints},
		{"ControllerRevision", controllerRevision},
		{"Event", event},
		{"ForeignSubject", foreignSubject},
		{"NodeName", nodeName},
		{"ForeignAffinity", foreignAffinity},
		{"ForeignVolume", foreignVolume},
		{"BlockedDrain", blockedDrain},
		{"IngressPath", ingressPath},
		{"RouteMatch", routeMatch},
	}, everyApp...)
)

// reserved is the prefix of the names of objects that kubeop creates in a project's namespace, such as its deployer.
const reserved = "kubeop-"

// foreignNamespace refuses an object in a namespace that is not the app's, such as a Secret of another namespace.
func foreignNamespace(object *unstructured.Unstructured, namespace string) string {
	named, _, err := unstructured.NestedString(object.Object, "metadata", "namespace")
	if err != nil {
		return "has a namespace that is no text"
	}
	if named == "" || named == namespace {
		return ""
	}
	return fmt.Sprintf("is for namespace %s; this app's is %[2]s: leave metadata.namespace out, or set spec.targetNamespace of the App to %[2]s", oneLine(named), namespace)
}

// ownAPIGroup: the object is one of kubeop's own kinds, which only the tree of a repository declares.
func ownAPIGroup(object *unstructured.Unstructured, _ string) string {
	if group := object.GroupVersionKind().Group; isOurs(group) {
		return fmt.Sprintf("is of API group %s; kubeop's own objects belong in the tenant's repository, not in an app", oneLine(group))
	}
	return ""
}

// forgedMark: the object, or something made from a template in it, has a label, annotation or finalizer of kubeop.
//
// People may set only the annotations that protect the object itself from deletion.
func forgedMark(object *unstructured.Unstructured, _ string) string {
	annotations := object.GetAnnotations()
	if value, ok := annotations[v1alpha1.PruneAnnotation]; ok {
		if value != v1alpha1.PruneConfirm && value != v1alpha1.PruneDisabled {
			return fmt.Sprintf("carries the annotation %s with the value %q; it may be %q or %q", v1alpha1.PruneAnnotation, oneLine(value), v1alpha1.PruneConfirm, v1alpha1.PruneDisabled)
		}
		delete(annotations, v1alpha1.PruneAnnotation)
		object = object.DeepCopy()
		object.SetAnnotations(annotations)
	}
	var forged string
	visit(object.Object, func(key string, value any) {
		metadata, ok := value.(map[string]any)
		if key != "metadata" || !ok || forged != "" {
			return
		}
		forged = ourMark(metadata)
	})
	if forged == "" {
		return ""
	}
	return fmt.Sprintf("carries %s; only kubeop sets labels, annotations and finalizers of %s", oneLine(forged), v1alpha1.Group)
}

// ourMark returns the first label, annotation or finalizer of kubeop in the metadata of an object or a template.
func ourMark(metadata map[string]any) string {
	for _, field := range []string{"labels", "annotations"} {
		marks, _ := metadata[field].(map[string]any)
		for _, mark := range sortedKeys(marks) {
			if domain, _, _ := strings.Cut(mark, "/"); isOurs(domain) {
				return mark
			}
		}
	}
	finalizers, _ := metadata["finalizers"].([]any)
	for _, finalizer := range finalizers {
		name, _ := finalizer.(string)
		if domain, _, _ := strings.Cut(name, "/"); isOurs(domain) {
			return name
		}
	}
	return ""
}

// guardrail: the object would change what the platform allows the project. Network policies add up, so a tenant's own could allow
// connections that the project's policy refuses, unless somebody says what they may allow.
func (b Bounds) guardrail(object *unstructured.Unstructured, _ string) string {
	kind := object.GroupVersionKind()
	kubernetes := kind.Group == "networking.k8s.io"
	switch {
	case kind.Group == "" && (kind.Kind == "ResourceQuota" || kind.Kind == "LimitRange"):
		return "is refused: the quota and limits of a project are set in its project.yaml"
	case kubernetes && kind.Kind == "NetworkPolicy" && b.NetworkPolicies:
		return ""
	case kubernetes && kind.Kind == "NetworkPolicy":
		return "is refused: the platform sets the network policies of a project, so leave it out; many charts have a value for that, such as networkPolicy.enabled: false. " +
			"With spec.network.policies: Own in project.yaml they open what the project may have"
	case kind.Kind == "NetworkPolicy", kind.Kind == "CiliumNetworkPolicy":
		return "is refused: the platform sets the network policies of a project, so leave it out; many charts have a value for that, such as networkPolicy.enabled: false"
	}
	return ""
}

// handWrittenEndpoints: the object sends the traffic of a Service to any address, also to pods of other tenants that network policies
// protect (CVE-2021-25740; Kubernetes' own edit role lacks these kinds for the same reason).
func handWrittenEndpoints(object *unstructured.Unstructured, _ string) string {
	kind := object.GroupVersionKind()
	if (kind.Group == "" && kind.Kind == "Endpoints") || (kind.Group == "discovery.k8s.io" && kind.Kind == "EndpointSlice") {
		return "is refused: a Service finds its pods by a selector, not by addresses written by hand"
	}
	return ""
}

// controllerRevision: the object is a template that no other rule judges. A StatefulSet or DaemonSet adopts a ControllerRevision that its selector matches, and
// makes pods of its data, which is a patch of the template.
func controllerRevision(object *unstructured.Unstructured, _ string) string {
	if kind := object.GroupVersionKind(); kind.Group == "apps" && kind.Kind == "ControllerRevision" {
		return "is refused: Kubernetes' controllers make them of templates, so take it out"
	}
	return ""
}

// event: the object is an Event, which expires after an hour, so that an app would write it again and again. Its watch would bring all Events
// of the cluster into the operator's memory.
func event(object *unstructured.Unstructured, _ string) string {
	kind := object.GroupVersionKind()
	if kind.Kind == "Event" && (kind.Group == "" || kind.Group == "events.k8s.io") {
		return "is refused: Events report what happened and expire, so take it out"
	}
	return ""
}

// reservedName: the object would replace an object that gives the deployer its rights.
func reservedName(object *unstructured.Unstructured, _ string) string {
	kind := object.GroupVersionKind()
	account := kind.Group == "" && kind.Kind == "ServiceAccount"
	role := kind.Group == rbacGroup && (kind.Kind == "Role" || kind.Kind == "RoleBinding")
	if (account || role) && strings.HasPrefix(object.GetName(), reserved) {
		return fmt.Sprintf("is refused: the platform's own %ss start with %s; choose another name in Git", kind.Kind, reserved)
	}
	return ""
}

// externalService: the Service sends traffic out of the project, catches traffic to others (CVE-2020-8554), or asks for an address of load balancers.
func (b Bounds) externalService(object *unstructured.Unstructured, _ string) string {
	kind := object.GroupVersionKind()
	spec, _ := object.Object["spec"].(map[string]any)
	if kind.Group == "gateway.networking.k8s.io" && kind.Kind == "Gateway" {
		return addressedGateway(spec)
	}
	if kind.Group != "" || kind.Kind != "Service" {
		return ""
	}
	name, _ := spec["externalName"].(string)
	leadsOut := spec["type"] == string(corev1.ServiceTypeExternalName) || notEmpty(spec["externalName"])
	if leadsOut && !guardrails.NameListed(b.ExternalNames, name) {
		return "is of type ExternalName, which leads out of the project; connect to the name itself, or ask an administrator of the cluster to list its domain in " +
			"services.externalNames of a Policy"
	}
	ips, isList := spec["externalIPs"].([]any)
	unlisted := func(ip any) bool { return !guardrails.AddressListed(b.ExternalIPs, fmt.Sprint(ip)) }
	if notEmpty(spec["externalIPs"]) && (!isList || slices.ContainsFunc(ips, unlisted)) {
		return "has spec.externalIPs, which can catch traffic meant for others; take them out, or ask an administrator of the cluster to list them in services.externalIPs of a Policy"
	}
	if notEmpty(spec["loadBalancerIP"]) {
		return "has spec.loadBalancerIP, which can take an address meant for others; leave it out, and the load balancer has one of its own"
	}
	return ""
}

// addressedGateway says how a Gateway asks for an address of load balancers; "" if it does not. Its controller makes a Service with spec.addresses, and Istio's also with
// what a ConfigMap says.
func addressedGateway(spec map[string]any) string {
	if notEmpty(spec["addresses"]) {
		return "has spec.addresses, which can take an address meant for others; leave them out, and the Gateway has one of its own"
	}
	infrastructure, _ := spec["infrastructure"].(map[string]any)
	if reference, _ := infrastructure["parametersRef"].(map[string]any); reference["kind"] == "ConfigMap" {
		return "has spec.infrastructure.parametersRef to a ConfigMap, of which Istio makes a Service that can take an address meant for others"
	}
	return ""
}

// isOurs reports whether an API group, or the domain of a label, is kubeop's or below it.
func isOurs(domain string) bool {
	domain = strings.ToLower(domain)
	return domain == v1alpha1.Group || strings.HasSuffix(domain, "."+v1alpha1.Group)
}
