package cluster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubeop/kubeop/delivery/own"
)

// patch is a change of an object; empty if there is nothing to change.
type patch struct {
	data []byte
	kind types.PatchType
}

func (p patch) empty() bool { return len(p.data) == 0 || string(p.data) == "{}" }

// threeWay returns the patch that changes live to want: it sets what differs from live, and removes what was in before and is not wanted
// any more. Fields of other managers are left alone. Lists of built-in kinds are merged by their keys, those of custom kinds are replaced.
// All three objects must have the same version: fields of another version would not be compared but taken for changes.
//
// The owner's labels on pods are no difference: they are set when the pod template changes for another reason, so that the workloads of an
// adopted release go on with the pods that they have.
func threeWay(before, want, live *unstructured.Unstructured) (patch, error) {
	p, err := threeWayOf(own.WithoutPodLabels(before), own.WithoutPodLabels(want), own.WithoutPodLabels(live))
	if err != nil || p.empty() {
		return p, err
	}
	var fields map[string]any
	if err := json.Unmarshal(p.data, &fields); err != nil {
		return patch{}, fmt.Errorf("reading the change of %s/%s: %w", want.GetKind(), want.GetName(), err)
	}
	if own.AddPodLabels(fields, want) {
		p.data, err = json.Marshal(fields)
	}
	return p, err
}

func threeWayOf(before, want, live *unstructured.Unstructured) (patch, error) {
	var texts [3][]byte
	for i, u := range []*unstructured.Unstructured{before, want, live} {
		text, err := json.Marshal(u.Object)
		if err != nil {
			return patch{}, fmt.Errorf("encoding %s/%s: %w", want.GetKind(), want.GetName(), err)
		}
		texts[i] = text
	}
	typed, err := builtIn().New(want.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(texts[0], texts[1], texts[2],
			mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"))
		return patch{data, types.MergePatchType}, err
	}
	if err != nil {
		return patch{}, fmt.Errorf("finding the type of %s: %w", want.GetKind(), err)
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return patch{}, fmt.Errorf("reading how lists of %s are merged: %w", want.GetKind(), err)
	}
	data, err := strategicpatch.CreateThreeWayMergePatch(texts[0], texts[1], texts[2], schema, true)
	return patch{data, types.StrategicMergePatchType}, err
}

// builtIn has the kinds whose Go types declare how their lists are merged. client-go's own scheme is not used, because types without such
// declarations may be registered there.
var builtIn = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("registering Kubernetes' own kinds: %v", err))
		}
	}
	return s
})

// scaled returns the paths of the fields that were set through the scale subresource, for example by an autoscaler.
func scaled(live *unstructured.Unstructured) [][]string {
	var out [][]string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource != "scale" || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil {
			out = append(out, fieldPaths(fields, nil)...)
		}
	}
	return out
}

// fieldPaths returns the paths in a set of fields that do not lead through lists.
func fieldPaths(fields map[string]any, path []string) [][]string {
	var out [][]string
	for key, inner := range fields {
		name, ok := strings.CutPrefix(key, "f:")
		if !ok {
			continue
		}
		below, _ := inner.(map[string]any)
		here := append(slices.Clone(path), name)
		if len(below) == 0 {
			out = append(out, here)
			continue
		}
		out = append(out, fieldPaths(below, here)...)
	}
	return out
}

// leaveScaled returns want with the live values of the scaled fields, unless the chart changed these fields.
func leaveScaled(before, want, live *unstructured.Unstructured) *unstructured.Unstructured {
	paths := scaled(live)
	if len(paths) == 0 {
		return want
	}
	out := want.DeepCopy()
	for _, path := range paths {
		old, hadOld, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
		wanted, wants, _ := unstructured.NestedFieldNoCopy(want.Object, path...)
		now, is, _ := unstructured.NestedFieldCopy(live.Object, path...)
		if hadOld && wants && is && reflect.DeepEqual(old, wanted) {
			_ = unstructured.SetNestedField(out.Object, now, path...)
		}
	}
	return out
}

// unstructuredOf converts an object from a list of Build, or from an answer of the API server.
func unstructuredOf(o runtime.Object) (*unstructured.Unstructured, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the API server answered with a %T", o)
	}
	return u, nil
}

// terminating reports whether an object is being deleted.
func terminating(o metav1.Object) bool { return o.GetDeletionTimestamp() != nil }
