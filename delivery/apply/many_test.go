package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/inventory"
)

// many is how many objects one app may have: more than anybody was seen to have, and what its status can list.
const many = 2000

// TestTheStatusOfManyObjectsStaysSmall applies, changes and looks at many objects of one app, and measures what its status says of them.
func TestTheStatusOfManyObjectsStaysSmall(t *testing.T) {
	b := newFixture(t)
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(value string) []*unstructured.Unstructured {
		var objects []*unstructured.Unstructured
		for i := range many {
			objects = append(objects, b.config(fmt.Sprintf("an-object-of-a-usual-name-%d", i), value))
		}
		return objects
	}
	// One list stands for the watch.
	seen := &watched{}
	applier := &Applier{Live: seen.live}
	began := time.Now()
	result, err := applier.Apply(t.Context(), Set{Client: c, Objects: set("a")})
	if err != nil || len(result.Written) != many || len(result.Entries) != many {
		t.Fatalf("%d written, %d recorded, %v", len(result.Written), len(result.Entries), err)
	}
	t.Logf("applied in %s", time.Since(began))
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(b.config("x", "x").GroupVersionKind())
	if err := c.List(t.Context(), list, client.InNamespace(b.namespace)); err != nil {
		t.Fatal(err)
	}
	seen.see(list)
	began = time.Now()
	result, err = applier.Apply(t.Context(), Set{Client: c, Objects: set("a"), Recorded: result.Entries})
	if err != nil || len(result.Written) != 0 {
		t.Fatalf("%d written again, %v", len(result.Written), err)
	}
	t.Logf("looked at in %s", time.Since(began))
	encoded, err := json.Marshal(inventory.Join(result.Entries, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the inventory has %d bytes", len(encoded))
	// The API server stores at most 1.5 MiB, and takes 3 MiB in a request.
	if len(encoded) > 500<<10 || !strings.Contains(string(encoded), "an-object-of-a-usual-name-1999") {
		t.Errorf("the inventory has %d bytes", len(encoded))
	}
}

// watched is what a watch would have seen.
type watched struct {
	objects map[types.NamespacedName]*metav1.PartialObjectMetadata
}

func (w *watched) see(list *metav1.PartialObjectMetadataList) {
	w.objects = map[types.NamespacedName]*metav1.PartialObjectMetadata{}
	for i := range list.Items {
		w.objects[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
}

func (w *watched) live(_ context.Context, _ schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	if o := w.objects[key]; o != nil {
		return o, true, nil
	}
	return nil, true, nil
}
