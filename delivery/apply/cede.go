package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ceded are fields of a manifest that are left to others, whatever the manifest says of them.
type ceded struct {
	// replicas: an autoscaler sets spec.replicas.
	replicas bool
	// bundles: cert-manager writes every caBundle.
	bundles bool
	spared
}

// without returns the object without what is ceded; what is changed is copied.
func (c ceded) without(o *unstructured.Unstructured) *unstructured.Unstructured {
	if c.replicas && hasReplicas(o) {
		spec := maps.Clone(o.Object["spec"].(map[string]any))
		delete(spec, "replicas")
		o = &unstructured.Unstructured{Object: maps.Clone(o.Object)}
		o.Object["spec"] = spec
	}
	if c.bundles {
		o = o.DeepCopy()
		drop(o.Object, "caBundle")
	}
	return c.strip(o)
}

// release takes what is ceded from fields of ours, as managedFields lists them (KEP-555), and reports whether there was
// any. A field that its last owner ceases to apply falls back to its default, a Deployment to one replica; one that
// nobody owns stays as it is.
func (c ceded) release(f *metav1.ManagedFieldsEntry) bool {
	ceding := c.replicas || c.bundles || len(c.paths) > 0
	if !ceding || f.FieldsV1 == nil || (!owns(*f) && !byHand(*f)) {
		return false
	}
	fields := map[string]any{}
	if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	found := false
	spec, _ := fields["f:spec"].(map[string]any)
	if _, ok := spec["f:replicas"]; ok && c.replicas {
		found = true
		if delete(spec, "f:replicas"); len(spec) == 0 {
			delete(fields, "f:spec")
		}
	}
	if c.bundles && drop(fields, "f:caBundle") {
		found = true
	}
	found = c.disown(fields) || found
	if found {
		raw, _ := json.Marshal(fields) // What was decoded can be encoded.
		f.FieldsV1.SetRawBytes(raw)
	}
	return found
}

// drop deletes a key at any depth, and the objects that hold nothing but it.
func drop(value any, key string) (dropped bool) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value[key]; ok {
			delete(value, key)
			dropped = true
		}
		for k, child := range value {
			inner, ok := child.(map[string]any)
			if drop(child, key) {
				dropped = true
				if ok && len(inner) == 0 {
					delete(value, k)
				}
			}
		}
	case []any:
		for _, item := range value {
			dropped = drop(item, key) || dropped
		}
	}
	return dropped
}

// injected reports whether cert-manager's cainjector writes the object's CA bundles: an annotation says from where.
func injected(o *unstructured.Unstructured) bool {
	if !strings.HasSuffix(o.GroupVersionKind().Group, ".k8s.io") {
		return false
	}
	for annotation := range o.GetAnnotations() {
		if strings.HasPrefix(annotation, "cert-manager.io/inject-") {
			return true
		}
	}
	return false
}

func hasReplicas(o *unstructured.Unstructured) bool {
	spec, _ := o.Object["spec"].(map[string]any)
	_, ok := spec["replicas"]
	return ok
}

// scaled reports whether anybody set the replicas by the subresource scale, as autoscalers and `kubectl scale` do.
func scaled(live metav1.Object) bool {
	for _, f := range live.GetManagedFields() {
		if scales(f) {
			return true
		}
	}
	return false
}

func scales(f metav1.ManagedFieldsEntry) bool {
	return f.Subresource == "scale" && f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`))
}

// scalee is an object that an autoscaler scales, of whatever version.
type scalee struct{ namespace, group, kind, name string }

// scalers know what is scaled by HorizontalPodAutoscalers.
type scalers struct {
	own map[scalee]bool
	// others are those that are there and not in the set, asked for once a run and namespace.
	others *others
}

type others struct {
	sync.Mutex
	seen map[string]map[scalee]bool
}

func scalersOf(objects []*unstructured.Unstructured) scalers {
	s := scalers{own: map[scalee]bool{}, others: &others{seen: map[string]map[scalee]bool{}}}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}) {
			s.own[scaleeOf(o)] = true
		}
	}
	return s
}

func scaleeOf(autoscaler *unstructured.Unstructured) scalee {
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", field)
		return value
	}
	group, _ := schema.ParseGroupVersion(text("apiVersion")) // Without a valid version it scales nothing.
	return scalee{autoscaler.GetNamespace(), group.Group, text("kind"), text("name")}
}

func asScalee(o *unstructured.Unstructured) scalee {
	return scalee{o.GetNamespace(), o.GroupVersionKind().Group, o.GetKind(), o.GetName()}
}

// scale reports whether an autoscaler of the set scales the object.
func (s scalers) scale(o *unstructured.Unstructured) bool { return s.own[asScalee(o)] }

// live reports whether any autoscaler in the object's namespace scales it.
func (s scalers) live(ctx context.Context, c client.Client, o *unstructured.Unstructured) (bool, error) {
	s.others.Lock()
	defer s.others.Unlock()
	seen, ok := s.others.seen[o.GetNamespace()]
	if !ok {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("autoscaling/v2")
		list.SetKind("HorizontalPodAutoscalerList")
		if err := c.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil && !meta.IsNoMatchError(err) {
			return false, fmt.Errorf("looking for what scales it: %w", err)
		}
		seen = map[scalee]bool{}
		for i := range list.Items {
			seen[scaleeOf(&list.Items[i])] = true
		}
		s.others.seen[o.GetNamespace()] = seen
	}
	return seen[asScalee(o)], nil
}
