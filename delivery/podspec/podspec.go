// Package podspec finds the pod of an object, or the template of its pods.
package podspec

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

// Has reports whether objects of a kind have a pod or a template of pods.
func Has(kind schema.GroupKind) bool {
	_, has := holders[kind]
	return has
}

// Pod is the pod of an object, or the template of its pods.
type Pod struct {
	// Path of the pod in the object; empty if the object is a pod.
	Path           []string
	Metadata, Spec map[string]any
	// Fixed: the API server refuses changes of the pod of an existing object.
	Fixed bool
}

// Of returns the pod of an object; nil if the object has none, or one that cannot be decoded, which the API server refuses.
func Of(object *unstructured.Unstructured) *Pod {
	at, ok := holders[object.GroupVersionKind().GroupKind()]
	if !ok {
		return nil
	}
	found, _, err := unstructured.NestedFieldNoCopy(object.Object, at.path...)
	template, ok := found.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	p := &Pod{Path: at.path, Fixed: at.fixed}
	p.Metadata, _ = template["metadata"].(map[string]any)
	if p.Spec, ok = template["spec"].(map[string]any); !ok {
		return nil
	}
	return p
}

// containerFields are the fields of a pod that list containers.
var containerFields = []string{"initContainers", "containers", "ephemeralContainers"}

// Containers returns the containers of every sort; ok is false if one of them cannot be decoded, which the API server refuses.
func (p *Pod) Containers() (containers []map[string]any, ok bool) {
	for _, field := range containerFields {
		listed, _ := p.Spec[field].([]any)
		for _, one := range listed {
			container, isMap := one.(map[string]any)
			if !isMap {
				return nil, false
			}
			containers = append(containers, container)
		}
	}
	return containers, true
}
