package read

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/objects"
)

const shop = "kubeop-acme-shop"

func reading(t *testing.T, there ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(there...).Build()
}

// named is an object of a kind with labels and an owner; "" for none.
func named(apiVersion, kind, name, app, owner string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetNamespace(shop)
	o.SetName(name)
	o.SetUID(types.UID(name))
	if app != "" {
		o.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: app})
	}
	if owner != "" {
		controls := true
		kind, name, _ := strings.Cut(owner, "/")
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: &controls}})
	}
	return o
}

// TestAnObjectBelongsToTheAppWhoseInventoryHasIt: anybody can set labels.
func TestAnObjectBelongsToTheAppWhoseInventoryHasIt(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "app"}}
	hook := func(owner types.UID) *unstructured.Unstructured {
		job := named("batch/v1", "Job", "web-migrate-1", "web", "")
		labels := job.GetLabels()
		labels[v1alpha1.HookLabel] = "pre-migrate"
		job.SetLabels(labels)
		job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "paas.kubeop.io/v1alpha1", Kind: "App", Name: "web", UID: owner}})
		return job
	}
	app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: shop + "_web_apps_Deployment", Version: "v1"}}
	reader := reading(t, app, named("apps/v1", "Deployment", "web", "web", ""), named("apps/v1", "ReplicaSet", "web-1", "", "Deployment/web"))
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   string
		owners []string
		fails  string
	}{
		"the object itself":        {named("apps/v1", "Deployment", "web", "web", ""), "web", nil, ""},
		"a pod of it":              {named("v1", "Pod", "web-1-x", "", "ReplicaSet/web-1"), "web", []string{"web-1", "web"}, ""},
		"the Job of a hook":        {hook("app"), "web", nil, ""},
		"a Job of another owner":   {hook("other"), "", nil, ""},
		"an object of nobody":      {named("v1", "ConfigMap", "a", "", ""), "", nil, ""},
		"labels that somebody set": {named("v1", "ConfigMap", "a", "web", ""), "", nil, ""},
		"labels of no app":         {named("v1", "ConfigMap", "a", "gone", ""), "", nil, "the object has the labels of the app acme/shop/gone, which does not exist any more"},
		"an owner that is gone":    {named("v1", "Pod", "a", "", "ReplicaSet/none"), "", nil, "reading ReplicaSet/none"},
	} {
		t.Run(name, func(t *testing.T) {
			var owners []string
			got, err := owningApp(t.Context(), reader, tc.object, func(o *unstructured.Unstructured) { owners = append(owners, o.GetName()) })
			if (got != nil) != (tc.want != "") || got != nil && got.Name != tc.want {
				t.Errorf("the app is %v", got)
			}
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("the error is %v, want %q", err, tc.fails)
			}
			if diff := cmp.Diff(tc.owners, owners); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEventsAreThoseOfTheObjectsOfAnApp in the order in which they happened last, also in other namespaces.
func TestEventsAreThoseOfTheObjectsOfAnApp(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(namespace, name string, of types.UID, minute int) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, LastTimestamp: metav1.NewTime(at.Add(time.Duration(minute) * time.Minute)),
			InvolvedObject: corev1.ObjectReference{UID: of, Kind: "Pod", Name: string(of)}, Type: "Warning", Reason: "Failed", Message: name + "\nfailed", Count: int32(minute),
		}
	}
	reader := reading(t, event(shop, "third", "app", 3), event(shop, "first", "pod", 1), event(shop, "of-another", "other", 2), event("target", "second", "deployment", 2), event("default", "of-role", "role", 4))
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "app"}}
	nodes := []*objects.Node{
		{Namespace: "target", UID: "deployment", Children: []*objects.Node{{Namespace: shop, UID: "pod"}}}, {UID: "role"}, {Namespace: "unread"},
	}
	found, err := events(t.Context(), reader, app, nodes)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := &call.Call{Clock: clocktesting.NewFakeClock(at.Add(10 * time.Minute))}
	if err := eventTable(c, found).Write(&out, ""); err != nil {
		t.Fatal(err)
	}
	const want = `AGE   TYPE      REASON   OBJECT           MESSAGE
9m    Warning   Failed   Pod/pod          first failed
8m    Warning   Failed   Pod/deployment   second failed (2 times)
7m    Warning   Failed   Pod/app          third failed (3 times)
6m    Warning   Failed   Pod/role         of-role failed (4 times)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheHistoryShowsTheDeliveriesOfAnApp(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	records := []v1alpha1.DeliveryRecord{
		{Revision: "main@sha1:0123456789012345678901234567890123456789", Author: "Ann", StartedAt: metav1.NewTime(at), Duration: &metav1.Duration{Duration: time.Minute}, Result: "Failed", Reason: "UpgradeFailed", Release: 2},
		{Revision: "1.0.0", StartedAt: metav1.NewTime(at), Result: "Progressing", Image: "a/web:1"},
	}
	c := &call.Call{Clock: clocktesting.NewFakeClock(at.Add(5 * time.Minute))}
	for wide, want := range map[bool][]string{
		false: {"REVISION AUTHOR STARTED TOOK RESULT", "main@sha1:01234567 Ann 5m ago 1m0s Failed (UpgradeFailed)", "1.0.0 5m ago Progressing"},
		true:  {"REVISION AUTHOR STARTED TOOK RESULT COMMIT RELEASE IMAGE", "main@sha1:01234567 Ann 5m ago 1m0s Failed (UpgradeFailed) 2", "1.0.0 5m ago Progressing a/web:1"},
	} {
		var out bytes.Buffer
		if err := deliveries(c, records, wide).Write(&out, ""); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("wide: %t (-want +got):\n%s", wide, diff)
		}
	}
}
