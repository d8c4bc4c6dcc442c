package fieldmanager

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// owned is a Secret with a list, and what managers have of it, as JSON.
func owned(list []any, managers ...[2]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "one", "finalizers": list}, "list": list,
	}}
	var fields []metav1.ManagedFieldsEntry
	for _, m := range managers {
		fields = append(fields, metav1.ManagedFieldsEntry{Manager: m[0], Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(m[1])})
	}
	o.SetManagedFields(fields)
	return o
}

func TestFieldsAddedByHandAreRemoved(t *testing.T) {
	list := func(text string) (out []any) {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	cases := map[string]struct{ list, manual, others, want string }{
		"an item of a set":           {`["a","b"]`, `{"f:list":{"v:\"b\"":{}}}`, `{}`, `["a"]`},
		"a number of a set":          {`[1,2]`, `{"f:list":{"v:2":{}}}`, `{}`, `[1]`},
		"an item that others own":    {`["a","b"]`, `{"f:list":{"v:\"b\"":{},"v:\"a\"":{}}}`, `{"f:list":{"v:\"a\"":{}}}`, `["a"]`},
		"an item without its fields": {`[{"port":1},{"port":2}]`, `{"f:list":{"k:{\"port\":2}":{".":{}}}}`, `{}`, `[{"port":1}]`},
		"an item with keys": {
			`[{"port":1,"protocol":"TCP"},{"port":1,"protocol":"UDP"}]`, `{"f:list":{"k:{\"port\":1,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}`, `{}`,
			`[{"port":1,"protocol":"TCP"}]`,
		},
		"an item with a field more": {
			`[{"name":"a","x":"y","z":1}]`, `{"f:list":{"k:{\"name\":\"a\"}":{"f:x":{}}}}`, `{}`, `[{"name":"a","z":1}]`,
		},
		"items with a field more": {
			`[{"name":"a","x":"y"},{"name":"b","x":"y"}]`, `{"f:list":{"k:{\"name\":\"a\"}":{"f:x":{}},"k:{\"name\":\"b\"}":{"f:x":{}}}}`, `{}`, `[{"name":"a"},{"name":"b"}]`,
		},
		"an item in which others own a field": {
			`[{"name":"a","x":"y","z":1}]`, `{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:x":{}}}}`, `{"f:list":{"k:{\"name\":\"a\"}":{"f:name":{},"f:z":{}}}}`,
			`[{"name":"a","z":1}]`,
		},
		"an item that others own, and its fields": {
			`[{"name":"a","x":"y"}]`, `{"f:list":{"k:{\"name\":\"a\"}":{"f:name":{},"f:x":{}}}}`, `{"f:list":{"k:{\"name\":\"a\"}":{".":{}}}}`, `[{}]`,
		},
		"an item by its index":              {`[[1],[2]]`, `{"f:list":{"i:1":{}}}`, `{}`, `[[1]]`},
		"fields of what has none":           {`["a","b"]`, `{"f:list":{"v:\"b\"":{"f:x":{}}}}`, `{}`, `["a","b"]`},
		"nothing of items without the keys": {`[{"x":1},{"name":{"a":1}},[1],"a"]`, `{"f:list":{"k:{\"name\":\"a\"}":{".":{}}}}`, `{}`, `[{"x":1},{"name":{"a":1}},[1],"a"]`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := WithoutManualFields(owned(list(c.list), [2]string{"kubectl-edit", c.manual}, [2]string{"kubeop", c.others}), Unmanaged{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(list(c.want), got.Object["list"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFieldsWithoutOwnersStay(t *testing.T) {
	o := owned([]any{"a", "b"}, [2]string{"kubectl-edit", `{"f:list":{"v:\"b\"":{}}}`})
	o.SetManagedFields(append([]metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1"}}, o.GetManagedFields()...))
	got, err := WithoutManualFields(o, Unmanaged{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"a"}, got.Object["list"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	broken := owned([]any{"a"}, [2]string{"kubectl-edit", `{"f:list":7}`})
	if got, err := WithoutManualFields(broken, Unmanaged{}); err == nil || !strings.HasPrefix(err.Error(), "reading the owners of its fields: ") {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestRemovingFieldsKeepsTheIdentityOfAnObject: kind, version and name stay even if a person owns them. Without the kind, the data of a Secret would be shown.
func TestRemovingFieldsKeepsTheIdentityOfAnObject(t *testing.T) {
	o := owned([]any{"a"}, [2]string{"kubectl-edit", `{"f:apiVersion":{},"f:kind":{},"f:metadata":{".":{},"f:name":{}},"f:list":{}}`})
	got, err := WithoutManualFields(o, Unmanaged{})
	if err != nil {
		t.Fatal(err)
	}
	if _, there := got.Object["list"]; there || got.GetKind() != "Secret" || got.GetAPIVersion() != "v1" || got.GetName() != "one" {
		t.Errorf("it became %v", got.Object)
	}
}

// TestManyItemsAreFoundSoon removes 50,000 items from the largest lists that an object can hold. A search for each item would take quadratic time.
func TestManyItemsAreFoundSoon(t *testing.T) {
	const items, managers = 50000, 3000
	var scalars, keyed []any
	var values, keys strings.Builder
	for i := range items {
		scalars = append(scalars, fmt.Sprintf("example.com/%06d", i))
		keyed = append(keyed, map[string]any{"name": fmt.Sprintf("%06d", i)})
		fmt.Fprintf(&values, `,"v:\"example.com/%06d\"":{}`, i)
		fmt.Fprintf(&keys, `,"k:{\"name\":\"%06d\"}":{".":{},"f:name":{}}`, i)
	}
	many := [][2]string{{"kubectl-edit", `{"f:list":{` + values.String()[1:] + `}}`}}
	for i := range managers {
		many = append(many, [2]string{"kubectl-patch", fmt.Sprintf(`{"f:list":{"v:\"%d\"":{}}}`, i)})
	}
	cases := map[string]*unstructured.Unstructured{
		"of a set":           owned(scalars, many[0]),
		"with keys":          owned(keyed, [2]string{"kubectl-edit", `{"f:list":{` + keys.String()[1:] + `}}`}),
		"with many managers": owned(scalars, many...),
		"in metadata":        owned(scalars, [2]string{"kubectl-edit", `{"f:list":{},"f:metadata":{"f:finalizers":{` + values.String()[1:] + `}}}`}),
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got, err := WithoutManualFields(o, Unmanaged{})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			t.Logf("took %s", took)
			if list, _ := got.Object["list"].([]any); len(list) > 0 || took > 10*time.Second {
				t.Errorf("%d items are left after %s", len(list), took)
			}
		})
	}
}

// TestFieldsThatOthersSetStay although a person set them, too: the next apply does not remove them.
func TestFieldsThatOthersSetStay(t *testing.T) {
	o := owned(nil, [2]string{"kubectl-edit", `{"f:spec":{"f:replicas":{},"f:paused":{}}}`})
	o.Object["spec"] = map[string]any{"replicas": int64(7), "paused": true}
	got, err := WithoutManualFields(o, Unmanaged{Replicas: true})
	if diff := cmp.Diff(map[string]any{"replicas": int64(7)}, got.Object["spec"]); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
