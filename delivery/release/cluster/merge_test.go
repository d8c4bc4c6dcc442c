package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// object reads one object.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	docs, err := manifest.Parse(text)
	if err != nil || len(manifest.Objects(docs)) != 1 {
		t.Fatalf("%d objects, %v, in %s", len(manifest.Objects(docs)), err, text)
	}
	return manifest.Objects(docs)[0]
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

const deploymentHead = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"

func TestTheThreeWayPatchKeepsWhatOthersSet(t *testing.T) {
	const thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: web}\n"
	tests := map[string]struct {
		before, want, live string
		patch              string
		kind               types.PatchType
	}{
		"nothing differs": {configMap + "data: {a: b}\n", configMap + "data: {a: b}\n", configMap + "data: {a: b, c: d}\n", "{}", types.StrategicMergePatchType},
		"changed":         {configMap + "data: {a: b}\n", configMap + "data: {a: c}\n", configMap + "data: {a: b}\n", `{"data":{"a":"c"}}`, types.StrategicMergePatchType},
		"left the chart":  {configMap + "data: {a: b, c: d}\n", configMap + "data: {a: b}\n", configMap + "data: {a: b, c: d, e: f}\n", `{"data":{"c":null}}`, types.StrategicMergePatchType},
		"edited by hand":  {configMap + "data: {a: b}\n", configMap + "data: {a: b}\n", configMap + "data: {a: x}\n", `{"data":{"a":"b"}}`, types.StrategicMergePatchType},
		"a list with keys": {
			deploymentHead + "spec: {template: {spec: {containers: [{name: a, image: a:1}]}}}\n",
			deploymentHead + "spec: {template: {spec: {containers: [{name: a, image: a:2}]}}}\n",
			deploymentHead + "spec: {template: {spec: {containers: [{name: a, image: a:1}, {name: injected, image: b:1}]}}}\n",
			`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"a:2","name":"a"}]}}}}`, types.StrategicMergePatchType,
		},
		"a custom kind": {thing + "spec: {a: [1], b: 2}\n", thing + "spec: {a: [2]}\n", thing + "spec: {a: [1], b: 2, c: 3}\n", `{"spec":{"a":[2],"b":null}}`, types.MergePatchType},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := threeWay(object(t, test.before), object(t, test.want), object(t, test.live))
			if err != nil {
				t.Fatal(err)
			}
			if string(got.data) != test.patch || got.kind != test.kind || got.empty() != (test.patch == "{}") {
				t.Errorf("got %s of %s, want %s", got.data, got.kind, test.patch)
			}
		})
	}
}

// The patch against the manifest before does to the live object what the patch against the live object does.
func TestTheManifestBeforeStandsForTheLiveObject(t *testing.T) {
	before := object(t, deploymentHead+"spec: {replicas: 1, template: {spec: {containers: [{name: a, image: a:1, env: [{name: X, value: x}, {name: Y, value: y}]}, {name: old, image: o:1}]}}}\n")
	want := object(t, deploymentHead+"spec: {template: {spec: {containers: [{name: new, image: n:1}, {name: a, image: a:2, env: [{name: Y, value: z}]}]}}}\n")
	live := object(t, deploymentHead+"status: {replicas: 1}\nspec: {replicas: 1, strategy: {type: RollingUpdate}, template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: a, image: a:1, imagePullPolicy: Always, env: [{name: X, value: x}, {name: Y, value: y}]}, {name: old, image: o:1, imagePullPolicy: Always}]}}}\n")
	var results []*unstructured.Unstructured
	for _, stand := range []*unstructured.Unstructured{live, before} {
		p, err := threeWay(before, want, stand)
		if err != nil {
			t.Fatal(err)
		}
		text, err := live.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		typed, err := builtIn().New(live.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if text, err = strategicpatch.StrategicMergePatch(text, p.data, typed); err != nil {
			t.Fatal(err)
		}
		results = append(results, object(t, string(text)))
	}
	if diff := cmp.Diff(results[0].Object, results[1].Object); diff != "" {
		t.Error(diff)
	}
}

// TestLabelsOfPodsAloneChangeNoTemplate: a workload that is adopted keeps its pods, and the labels go with the next change of the template.
func TestLabelsOfPodsAloneChangeNoTemplate(t *testing.T) {
	const ours = "paas.kubeop.io/tenant: acme, paas.kubeop.io/project: shop, paas.kubeop.io/app: web"
	workload := func(kind, template, labels, image string, replicas int) *unstructured.Unstructured {
		return object(t, fmt.Sprintf("%s\nmetadata: {name: web}\nspec: {replicas: %d, %s{metadata: {labels: {x: y%s}}, spec: {containers: [{name: a, image: %s}]}}%s}\n",
			kind, replicas, template, labels, image, strings.Repeat("}", strings.Count(template, "{"))))
	}
	for kind, template := range map[string]string{
		"apiVersion: apps/v1\nkind: Deployment": "template: ", "apiVersion: apps/v1\nkind: StatefulSet": "template: ",
		"apiVersion: batch/v1\nkind: CronJob": "jobTemplate: {spec: {template: ",
	} {
		is := func(labels, image string, replicas int) *unstructured.Unstructured {
			return workload(kind, template, labels, image, replicas)
		}
		const none, all = "", ", " + ours
		for name, tc := range map[string]struct {
			before, want, live *unstructured.Unstructured
			changes, labelled  bool
		}{
			"adopted as it is":               {is(all, "a:1", 1), is(all, "a:1", 1), is(none, "a:1", 1), false, false},
			"from a release without labels":  {is(none, "a:1", 1), is(all, "a:1", 1), is(none, "a:1", 1), false, false},
			"scaled":                         {is(all, "a:1", 1), is(all, "a:1", 2), is(none, "a:1", 1), true, false},
			"with another image":             {is(all, "a:1", 1), is(all, "a:2", 1), is(none, "a:1", 1), true, true},
			"from a release, another image":  {is(none, "a:1", 1), is(all, "a:2", 1), is(none, "a:1", 1), true, true},
			"whose image was edited by hand": {is(all, "a:1", 1), is(all, "a:1", 1), is(none, "a:9", 1), true, true},
			"whose labels are in place":      {is(all, "a:1", 1), is(all, "a:2", 1), is(all, "a:1", 1), true, true},
		} {
			p, err := threeWay(tc.before, tc.want, tc.live)
			if err != nil {
				t.Fatal(err)
			}
			if p.empty() == tc.changes || strings.Contains(string(p.data), "paas.kubeop.io/app") != tc.labelled {
				t.Errorf("%s, a workload %s: the patch is %s, want a change: %t, with the labels: %t", kind, name, p.data, tc.changes, tc.labelled)
			}
		}
	}
}

func TestReplicasThatAnAutoscalerSetAreLeft(t *testing.T) {
	const scaledBy = `  managedFields:
  - {manager: helm, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:paused": {}}}}
  - {manager: hpa, operation: Update, subresource: scale, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}
`
	live := func(fields string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n" + fields + "spec: {replicas: 7}\n"
	}
	tests := map[string]struct {
		before, want, live string
		replicas           int64
	}{
		"scaled":                        {"{replicas: 1}", "{replicas: 1}", live(scaledBy), 7},
		"scaled, but the chart changed": {"{replicas: 1}", "{replicas: 2}", live(scaledBy), 2},
		"edited by hand":                {"{replicas: 1}", "{replicas: 1}", live(""), 1},
		"scaled, not in the chart":      {"{}", "{}", live(scaledBy), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := object(t, deploymentHead+"spec: "+test.want+"\n")
			got := leaveScaled(object(t, deploymentHead+"spec: "+test.before+"\n"), want, object(t, test.live))
			replicas, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas")
			if replicas != test.replicas {
				t.Errorf("replicas %d, want %d", replicas, test.replicas)
			}
			if diff := cmp.Diff(object(t, deploymentHead+"spec: "+test.want+"\n").Object, want.Object); diff != "" {
				t.Errorf("the manifest was changed: %s", diff)
			}
		})
	}
}

func TestAnObjectThatCannotBeEncodedIsNamed(t *testing.T) {
	good := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}}}
	bad := good.DeepCopy()
	bad.Object["data"] = func() {}
	if _, err := threeWay(bad, good, good); err == nil || !strings.HasPrefix(err.Error(), "encoding ConfigMap/web: json: ") {
		t.Errorf("got %v", err)
	}
}
