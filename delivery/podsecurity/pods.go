// Package podsecurity brings the pods of an app's objects to their namespace's Pod Security level
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/). It fills in what the level requires and the author left out, and
// reports before anything is applied which container breaks which rule. The API server enforces the level in any case.
package podsecurity

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// holder is where a kind has its pod or pod template.
type holder struct {
	path []string
	// fixed: the API server refuses changes of the pod of an existing object.
	fixed bool
}

var holders = map[schema.GroupKind]holder{
	{Kind: "Pod"}:                        {path: nil, fixed: true},
	{Kind: "PodTemplate"}:                {path: []string{"template"}},
	{Kind: "ReplicationController"}:      {path: []string{"spec", "template"}},
	{Group: "apps", Kind: "DaemonSet"}:   {path: []string{"spec", "template"}},
	{Group: "apps", Kind: "Deployment"}:  {path: []string{"spec", "template"}},
	{Group: "apps", Kind: "ReplicaSet"}:  {path: []string{"spec", "template"}},
	{Group: "apps", Kind: "StatefulSet"}: {path: []string{"spec", "template"}},
	{Group: "batch", Kind: "Job"}:        {path: []string{"spec", "template"}, fixed: true},
	{Group: "batch", Kind: "CronJob"}:    {path: []string{"spec", "jobTemplate", "spec", "template"}},
}

// pod is the pod of an object, or the template of its pods.
type pod struct {
	holder
	metadata, spec map[string]any
	containers     []container
}

// container is a container of any kind: init, ephemeral or other.
type container struct {
	name   string
	fields map[string]any
}

// podOf returns the pod of an object; nil if the object has none, or one that cannot be decoded, which the API server refuses.
func podOf(object *unstructured.Unstructured) *pod {
	at, ok := holders[object.GroupVersionKind().GroupKind()]
	if !ok {
		return nil
	}
	found, _, err := unstructured.NestedFieldNoCopy(object.Object, at.path...)
	template, ok := found.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	p := &pod{holder: at}
	if p.spec, ok = template["spec"].(map[string]any); !ok {
		return nil
	}
	p.metadata, _ = template["metadata"].(map[string]any)
	for _, kind := range []string{"initContainers", "containers", "ephemeralContainers"} {
		listed, _ := p.spec[kind].([]any)
		for _, one := range listed {
			fields, ok := one.(map[string]any)
			if !ok {
				return nil
			}
			name, _ := fields["name"].(string)
			p.containers = append(p.containers, container{name, fields})
		}
	}
	return p
}

// windows reports whether the pod runs on Windows. The fields that are filled in are not for such pods, and the levels do not require them.
func (p *pod) windows() bool {
	name, _, _ := unstructured.NestedString(p.spec, "os", "name")
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
	all := []map[string]any{p.spec}
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
