package differ

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Rules say which fields of which objects others may change.
type Rules []rule

// rule is a parsed IgnoreRule.
type rule struct {
	paths [][]string
	Selector
}

// ReadRules parses rules; an error names the field of the app's spec.
func ReadRules(rules []v1alpha1.IgnoreRule) (Rules, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	out := make(Rules, len(rules))
	for i, rule := range rules {
		for _, path := range rule.Paths {
			out[i].paths = append(out[i].paths, pointer(path))
		}
		var err error
		if out[i].Selector, err = ReadSelector(rule.Target); err != nil {
			return nil, fmt.Errorf("drift.ignore[%d].target: %w", i, err)
		}
	}
	return out, nil
}

// Spared returns the ignored paths of an object, and whether the whole object is ignored.
func (rules Rules) Spared(u *unstructured.Unstructured) (paths [][]string, all bool) {
	for i := range rules {
		if !rules[i].Selects(u) {
			continue
		}
		for _, path := range rules[i].paths {
			if len(path) == 0 {
				return nil, true
			}
			paths = append(paths, path)
		}
	}
	return paths, false
}

// pointer splits a JSON pointer; "" and "/" mean the whole object.
func pointer(text string) []string {
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return nil
	}
	parts := strings.Split(text, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts
}

// Yielding returns want with the live values at the paths, so that they do not differ.
func Yielding(want, live *unstructured.Unstructured, paths [][]string) *unstructured.Unstructured {
	if len(paths) == 0 {
		return want
	}
	out := want.DeepCopy()
	for _, path := range paths {
		yield(out.Object, live.Object, path)
	}
	return out
}

// yield sets the value at path in want to that in have. If want has no parent for the path, nothing is set: fields that the chart does not
// set are not compared.
func yield(want, have any, path []string) {
	switch w := want.(type) {
	case map[string]any:
		key := path[0]
		h, _ := have.(map[string]any)
		value, exists := h[key]
		switch {
		case len(path) > 1:
			yield(w[key], value, path[1:])
		case exists:
			w[key] = runtime.DeepCopyJSONValue(value)
		default:
			delete(w, key)
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		h, _ := have.([]any)
		if err != nil || i < 0 || i >= len(w) || i >= len(h) {
			return
		}
		if len(path) > 1 {
			yield(w[i], h[i], path[1:])
			return
		}
		w[i] = runtime.DeepCopyJSONValue(h[i])
	}
}
