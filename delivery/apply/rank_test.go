package apply

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/inventory"
)

// widgets defines the kind Widget in a group of the fixture's own, with one field in its spec.
func (b *fixture) widgets(field string) *unstructured.Unstructured {
	group := b.namespace + ".example.com"
	properties := map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{field: map[string]any{"type": "string"}}}}
	o := b.object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets."+group, map[string]any{"spec": map[string]any{
		"group": group, "scope": "Namespaced",
		"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}}}},
	}})
	o.SetNamespace("")
	b.t.Cleanup(func() { _ = b.Delete(b.t.Context(), o) })
	return o
}

func (b *fixture) widget(field string) *unstructured.Unstructured {
	return b.object(b.namespace+".example.com/v1", "Widget", "one", map[string]any{"spec": map[string]any{field: "x"}})
}

func TestADefinitionAndItsInstancesInOneGo(t *testing.T) {
	b := newFixture(t)
	b.must(3, b.widget("size"), b.config("one", "a"), b.widgets("size"))
	b.must(0, b.widget("size"), b.config("one", "a"), b.widgets("size"))
	// The instance has a field that only the new definition knows.
	if _, err := b.apply(b.widget("color"), b.config("one", "a"), b.widgets("color")); err != nil {
		t.Fatal(err)
	}
	live := b.widget("color")
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"color": "x"}, live.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestOnlyObjectsThatNeedAFailedObjectWait(t *testing.T) {
	b := newFixture(t)
	definition := b.widgets("size")
	_ = unstructured.SetNestedField(definition.Object, "Everywhere", "spec", "scope")
	namespace := b.object("v1", "Namespace", "Not-A-Name", map[string]any{})
	namespace.SetNamespace("")
	inside := b.config("inside", "a")
	inside.SetNamespace("Not-A-Name")
	role := b.object("rbac.authorization.k8s.io/v1", "Role", "bad", map[string]any{"rules": []any{map[string]any{"verbs": []any{}}}})
	binding := b.object("rbac.authorization.k8s.io/v1", "RoleBinding", "bad", map[string]any{
		"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "bad"},
	})
	service := b.object("v1", "Service", "hook", map[string]any{"spec": map[string]any{"ports": []any{}}})
	hook := b.object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", b.namespace, map[string]any{"webhooks": []any{map[string]any{
		"clientConfig": map[string]any{"service": map[string]any{"namespace": b.namespace, "name": "hook"}},
	}}})
	hook.SetNamespace("")

	_, err := b.apply(definition, b.widget("size"), namespace, inside, role, binding, service, hook, b.config("one", "a"), b.deployment(1, "web:1"))
	if err == nil {
		t.Fatal("nothing failed")
	}
	for _, want := range []string{
		"Widget/one: waits for CustomResourceDefinition/widgets." + b.namespace + ".example.com", "ConfigMap/inside: waits for Namespace/Not-A-Name",
		"RoleBinding/bad: waits for Role/bad", "ValidatingWebhookConfiguration/" + b.namespace + ": waits for Service/hook",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message does not say %q:\n%v", want, err)
		}
	}
	for _, each := range inventory.Split(err) {
		if !apierrors.IsInvalid(each) {
			t.Errorf("this is tried again, for nothing: %v", each)
		}
	}
	if got := inventory.Names(b.recorded); got != "ConfigMap/one, Deployment/web" {
		t.Errorf("recorded is %s, want %q", got, "ConfigMap/one, Deployment/web")
	}
}

// TestAWebhookThatIsDown guards one ConfigMap by its label.
func TestAWebhookThatIsDown(t *testing.T) {
	b := newFixture(t)
	hook := b.object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", b.namespace, map[string]any{"webhooks": []any{map[string]any{
		"name": "down.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Fail", "timeoutSeconds": int64(1),
		"clientConfig":   map[string]any{"url": "https://127.0.0.1:1/"},
		"objectSelector": map[string]any{"matchLabels": map[string]any{"guarded": b.namespace}},
		"rules":          []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"*"}}},
	}}})
	hook.SetNamespace("")
	t.Cleanup(func() { _ = b.Delete(t.Context(), hook) })
	guarded := b.config("guarded", "a")
	labels := guarded.GetLabels()
	labels["guarded"] = b.namespace
	guarded.SetLabels(labels)
	// It comes last in the set, so that the set itself is applied once.
	b.must(3, guarded, b.config("one", "a"), hook)

	// The API server asks it only a moment later.
	var err error
	for round := 0; err == nil && round < 100; round++ {
		guarded.Object["data"] = map[string]any{"key": fmt.Sprint(round)}
		_, err = b.apply(guarded, b.config("one", "b"), b.deployment(1, "web:1"), hook)
		time.Sleep(50 * time.Millisecond)
	}
	if err == nil || len(inventory.Split(err)) != 1 || !strings.Contains(err.Error(), "ConfigMap/guarded: ") {
		t.Fatalf("got %v", err)
	}
	if got := b.read("one").Data["key"]; got != "b" {
		t.Errorf("the other ConfigMap holds %q, want %q", got, "b")
	}
	if got, want := inventory.Names(b.recorded), "Deployment/web"; !strings.Contains(got, want) {
		t.Errorf("recorded is %q, want %q in it", got, want)
	}
}
