package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// maxSpec is the largest spec, in bytes, that is held for kinds that are not Kubernetes' own.
const maxSpec = 4 << 10

// workloads are the API groups with kinds whose spec is also needed to judge health. Most of their spec is the pod template.
var workloads = map[string]bool{"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true, "networking.k8s.io": true}

// templates are the fields of a spec that pods and volume claims are made from.
var templates = []string{"template", "volumeClaimTemplates", "jobTemplate"}

// held is an object as a Watch keeps it. Spec and status stay encoded: most objects are rarely read, and decoded they take several times as
// much memory.
type held struct {
	metav1.PartialObjectMetadata
	rest []byte // {"spec": …, "status": …}
}

// DeepCopyObject implements runtime.Object.
func (h *held) DeepCopyObject() runtime.Object {
	return &held{PartialObjectMetadata: *h.DeepCopy(), rest: h.rest}
}

// DecodeHeld decodes the spec and the status of an object that the events of a Watch have into a value of its Go type, like Decode. Of an object whose metadata
// alone are watched it decodes nothing.
func DecodeHeld(o client.Object, into any) error {
	whole, is := o.(*held)
	if !is {
		return nil
	}
	return whole.decode(into)
}

// Hold returns the transform of a Watch's cache. It uses slim to remove unneeded metadata. Of whole objects it also keeps the status and
// the spec, without the templates of pods and volume claims; for kinds outside of Kubernetes' own groups only a spec of at most 4 KiB. The
// scheme has the kinds that are not unstructured.
func Hold(scheme *runtime.Scheme, slim toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		h, content, err := taken(scheme, object)
		if err != nil {
			return nil, err
		}
		if h == nil {
			return slim(object)
		}
		if _, err := slim(h); err != nil {
			return nil, err
		}
		h.rest, err = restOf(h.GroupVersionKind().Group, content)
		return h, err
	}
}

// taken returns the kind and metadata of a complete object, and its other fields; nil for an object that is not complete, or that is held
// already.
func taken(scheme *runtime.Scheme, object any) (*held, map[string]any, error) {
	h := &held{}
	switch whole := object.(type) {
	case *metav1.PartialObjectMetadata, *held:
		return nil, nil, nil
	case *unstructured.Unstructured:
		h.SetGroupVersionKind(whole.GroupVersionKind())
		metadata, _ := whole.Object["metadata"].(map[string]any)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, &h.ObjectMeta); err != nil {
			return nil, nil, fmt.Errorf("reading the metadata of %s %s: %w", whole.GetKind(), whole.GetName(), err)
		}
		return h, whole.Object, nil
	case client.Object:
		kind, err := apiutil.GVKForObject(whole, scheme)
		if err != nil {
			return nil, nil, err
		}
		h.SetGroupVersionKind(kind)
		if metadata, ok := whole.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta); ok {
			h.ObjectMeta, *metadata = *metadata, metav1.ObjectMeta{}
		}
		content, err := typed(whole)
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s %s: %w", kind.Kind, h.Name, err)
		}
		return h, content, nil
	default:
		return nil, nil, nil
	}
}

// typed returns spec and status of an object of a Go type. A spec with templates is returned as a map, from which they can be removed.
func typed(whole client.Object) (map[string]any, error) {
	content := map[string]any{}
	object := reflect.ValueOf(whole).Elem()
	if status := object.FieldByName("Status"); status.IsValid() {
		content["status"] = status.Addr().Interface()
	}
	spec := object.FieldByName("Spec")
	if !spec.IsValid() {
		return content, nil
	}
	content["spec"] = spec.Addr().Interface()
	if !slices.ContainsFunc(templates, func(name string) bool { return hasField(spec.Type(), name) }) {
		return content, nil
	}
	asMap, err := runtime.DefaultUnstructuredConverter.ToUnstructured(content["spec"])
	content["spec"] = asMap
	return content, err
}

// hasField reports whether a struct has the field with this JSON name, assuming that its Go name is the same but capitalized, as in
// Kubernetes' types.
func hasField(of reflect.Type, name string) bool {
	_, has := of.FieldByName(strings.ToUpper(name[:1]) + name[1:])
	return has
}

func restOf(group string, content map[string]any) ([]byte, error) {
	rest := map[string]any{}
	if status, ok := content["status"]; ok {
		rest["status"] = status
	}
	spec, err := specOf(group, content)
	if err != nil {
		return nil, err
	}
	if spec != nil {
		rest["spec"] = spec
	}
	return json.Marshal(rest)
}

func specOf(group string, content map[string]any) (any, error) {
	spec, ok := content["spec"].(map[string]any)
	if !ok && workloads[group] {
		return content["spec"], nil
	}
	if !ok {
		return nil, nil
	}
	if workloads[group] {
		spec = maps.Clone(spec)
		for _, template := range templates {
			delete(spec, template)
		}
		return spec, nil
	}
	encoded, err := json.Marshal(spec)
	if err != nil || len(encoded) > maxSpec {
		return nil, err
	}
	return json.RawMessage(encoded), nil
}

// object returns the held fields as a complete object.
func (h *held) object() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := h.decode(&u.Object); err != nil {
		return nil, err
	}
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h.ObjectMeta)
	if err != nil {
		return nil, fmt.Errorf("decoding what is held: %w", err)
	}
	u.Object["metadata"] = metadata
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(h.APIVersion, h.Kind))
	return u, nil
}

// decode decodes spec and status.
func (h *held) decode(into any) error {
	if err := utiljson.Unmarshal(h.rest, into); err != nil {
		return fmt.Errorf("decoding what is held: %w", err)
	}
	return nil
}
