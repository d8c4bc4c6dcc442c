// Package podsecurity brings the pods of an app's objects to their namespace's Pod Security level
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/). It fills in what the level requires and the author left out, and
// reports before anything is applied which container breaks which rule. The API server enforces the level in any case.
package podsecurity

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/podspec"
)

// pod is the pod of an object, or the template of its pods.
type pod struct {
	*podspec.Pod
	containers []container
}

// container is a container of any kind: init, ephemeral or other.
type container struct {
	name   string
	fields map[string]any
}

// podOf returns the pod of an object; nil if the object has none, or one that cannot be decoded, which the API server refuses.
func podOf(object *unstructured.Unstructured) *pod {
	found := podspec.Of(object)
	if found == nil {
		return nil
	}
	containers, ok := found.Containers()
	if !ok {
		return nil
	}
	p := &pod{Pod: found}
	for _, fields := range containers {
		name, _ := fields["name"].(string)
		p.containers = append(p.containers, container{name, fields})
	}
	return p
}

// windows reports whether the pod runs on Windows. The fields that are filled in are not for such pods, and the levels do not require them.
func (p *pod) windows() bool {
	name, _, _ := unstructured.NestedString(p.Spec, "os", "name")
	return name == "windows"
}

// readable reports whether the security contexts are mappings, so that fields can be filled in.
func (p *pod) readable() bool {
	for _, in := range p.contexts() {
		if _, ok := in["securityContext"].(map[string]any); !ok && in["securityContext"] != nil {
			return false
		}
	}
	return true
}

// contexts returns the mappings that have a security context: the pod's spec and the containers.
func (p *pod) contexts() []map[string]any {
	all := []map[string]any{p.Spec}
	for _, c := range p.containers {
		all = append(all, c.fields)
	}
	return all
}

// setting returns a field of the security context of a pod's spec or a container; nil if the author left it out.
func setting(of map[string]any, field string) any {
	context, _ := of["securityContext"].(map[string]any)
	return context[field]
}

// set writes a field of the security context of a pod's spec or a container.
func set(of map[string]any, field string, value any) {
	context, _ := of["securityContext"].(map[string]any)
	if context == nil {
		context = map[string]any{}
		of["securityContext"] = context
	}
	context[field] = value
}
