package apply

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// spared are fields that others may change of an object that is there. It is made with them; afterwards they are neither
// applied nor owned, and count as no change.
type spared struct {
	// paths are JSON pointers, split.
	paths [][]string
	// manifest has them; nil when there are no paths.
	manifest *unstructured.Unstructured
}

// spare takes from the object what others may change, and reports whether that is all of an object that was applied. All of
// it are its labels, too: without them the watch shows none.
func (t *target) spare(ctx context.Context, c *ceded) (all bool, err error) {
	var paths [][]string
	if paths, all = t.set.Ignore.Spared(t.object); len(paths) > 0 {
		t.spared = spared{paths: paths, manifest: t.object}
		c.spared = t.spared
		t.object = c.strip(t.object)
	}
	if !all || t.entry.Digest == "" {
		return false, nil
	}
	if t.live == nil {
		t.live, err = ask(ctx, t.set.Client, t.kind(), t.key())
	}
	return t.live != nil, err
}

// whole is the object as it is to be applied: with what is spared while there is none.
func (t *target) whole() *unstructured.Unstructured {
	if t.live == nil && t.spared.manifest != nil {
		return t.spared.manifest
	}
	return t.object
}

// digest is digestOf without what is spared.
func (t *target) digest(manifest *unstructured.Unstructured, live metav1.Object) string {
	if len(t.spared.paths) == 0 {
		return t.digestOf(manifest, live)
	}
	left, seen := ceded{spared: t.spared}, &metav1.ObjectMeta{ResourceVersion: live.GetResourceVersion()}
	for _, f := range live.GetManagedFields() {
		own := f.DeepCopy()
		left.release(own)
		seen.ManagedFields = append(seen.ManagedFields, *own)
	}
	return t.digestOf(manifest, seen)
}

// strip returns the object without the fields, but for what says which object it is and whose.
func (s spared) strip(o *unstructured.Unstructured) *unstructured.Unstructured {
	if len(s.paths) == 0 {
		return o
	}
	out := o.DeepCopy()
	for _, path := range s.paths {
		cut(out.Object, path)
	}
	if _, ok := out.Object["metadata"]; !ok {
		out.Object["metadata"] = map[string]any{}
	}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	labels := map[string]string{}
	for _, mark := range marks {
		if value, ok := o.GetLabels()[mark]; ok {
			labels[mark] = value
		}
	}
	maps.Copy(labels, out.GetLabels())
	out.SetLabels(labels)
	return out
}

// cut deletes what is at a path; an item of a list stays, for the ones after it would move up.
func cut(value any, path []string) {
	switch value := value.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(value, path[0])
			return
		}
		cut(value[path[0]], path[1:])
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(value) && len(path) > 1 {
			cut(value[i], path[1:])
		}
	}
}

// disown takes the fields from those of an owner, as managedFields lists them, and reports whether there were any.
func (s spared) disown(fields map[string]any) (found bool) {
	for _, path := range s.paths {
		found = disown(fields, s.manifest.Object, path) || found
	}
	return found
}

func disown(fields map[string]any, value any, path []string) bool {
	key, inner := fieldKey(fields, value, path[0])
	if len(path) == 1 {
		_, ok := fields[key]
		if ok = ok && strings.HasPrefix(key, "f:"); ok {
			delete(fields, key)
		}
		return ok
	}
	below, _ := fields[key].(map[string]any)
	if below == nil || !disown(below, inner, path[1:]) {
		return false
	}
	if len(below) == 0 { // It would stand for all that is below.
		delete(fields, key)
	}
	return true
}

// fieldKey returns how managedFields names a field, or an item of a list by the keys it has, and what the manifest has there.
func fieldKey(fields map[string]any, value any, name string) (string, any) {
	list, ok := value.([]any)
	if !ok {
		object, _ := value.(map[string]any)
		return "f:" + name, object[name]
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(list) {
		return "", nil
	}
	for key := range fields {
		if text, ok := strings.CutPrefix(key, "k:"); ok && hasKeys(list[i], text) {
			return key, list[i]
		}
	}
	return "", nil
}

// hasKeys reports whether an item of a list has the values of a key such as {"name":"web"}.
func hasKeys(item any, text string) bool {
	var keys any
	if json.Unmarshal([]byte(text), &keys) != nil {
		return false
	}
	wanted, _ := keys.(map[string]any)
	for name, value := range wanted {
		object, _ := item.(map[string]any)
		have, err := json.Marshal(object[name])
		want, _ := json.Marshal(value) // What was decoded can be encoded.
		if err != nil || !reflect.DeepEqual(have, want) {
			return false
		}
	}
	return len(wanted) > 0
}
