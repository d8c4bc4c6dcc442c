// Package differ compares two states of an object, describes the differences without showing secrets, and knows the fields that others may
// change.
package differ

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Limits of what is reported about one object.
const (
	maxChanges     = 20
	maxChangeValue = 100
)

// uncounted are fields that the API server itself writes, so they are not compared.
var uncounted = map[string]bool{
	"/status": true, "/metadata/managedFields": true, "/metadata/resourceVersion": true, "/metadata/generation": true,
}

// Change is a field that differs.
type Change struct {
	// Path is a JSON pointer.
	Path string
	// Want and Have are the declared and the live value as JSON, cut to 100 characters; "" for no value, and "***" for a secret one.
	Want, Have string
}

// Compare lists the fields in which two states of an object differ, sorted by path, at most 20. The content of a Secret is not shown; mask
// hides other secrets in a text.
func Compare(want, have *unstructured.Unstructured, mask func(string) string) []Change {
	d := differ{mask: mask}
	if isSecret(want) || isSecret(have) {
		d.secret = []string{"/data", "/stringData", "/metadata/annotations/" + escaped(corev1.LastAppliedConfigAnnotation)}
	}
	d.compare("", want.Object, have.Object)
	slices.SortFunc(d.out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return d.out[:min(len(d.out), maxChanges)]
}

func isSecret(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Secret" && o.GroupVersionKind().Group == ""
}

type differ struct {
	mask func(string) string
	// secret are paths whose values, and everything below them, are not shown.
	secret []string
	out    []Change
}

func (d *differ) compare(path string, want, have any) {
	if uncounted[path] || reflect.DeepEqual(want, have) {
		return
	}
	wanted, ok := want.(map[string]any)
	had, both := have.(map[string]any)
	if ok && both {
		for _, key := range slices.Sorted(maps.Keys(union(wanted, had))) {
			d.compare(path+"/"+escaped(key), entry(wanted, key), entry(had, key))
		}
		return
	}
	list, ok := want.([]any)
	old, both := have.([]any)
	if ok && both && len(list) == len(old) {
		for i := range list {
			d.compare(path+"/"+strconv.Itoa(i), list[i], old[i])
		}
		return
	}
	d.out = append(d.out, Change{Path: path, Want: d.shown(path, want), Have: d.shown(path, have)})
}

// absent stands for a missing key, in contrast to null.
type absent struct{}

func entry(m map[string]any, key string) any {
	if value, ok := m[key]; ok {
		return value
	}
	return absent{}
}

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}

func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

func (d *differ) shown(path string, value any) string {
	if _, nothing := value.(absent); nothing {
		return ""
	}
	if value = d.veiled(path, value); value == veil {
		return veil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	out := d.mask(string(text))
	if len(out) > maxChangeValue {
		out = strings.ToValidUTF8(out[:maxChangeValue], "") + "…"
	}
	return out
}

// veil is shown in the place of a secret value.
const veil = "***"

// veiled returns a value with its secret parts replaced.
func (d *differ) veiled(path string, value any) any {
	for _, secret := range d.secret {
		if strings.HasPrefix(path+"/", secret+"/") {
			return veil
		}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := make(map[string]any, len(object))
	for key, inner := range object {
		out[key] = d.veiled(path+"/"+escaped(key), inner)
	}
	return out
}
