package own

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var shop = Owner{Tenant: "acme", Project: "web", App: "shop", Namespace: "kubeop-acme-web"}

func TestStampSetsTheOwnerAndTheNamespace(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"nothing set": {
			in: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kubeop-acme-web, labels: {
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}}}`,
		},
		"own labels stay, a foreign owner and namespace do not": {
			in: `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: other, labels: {tier: db, paas.kubeop.io/tenant: evil}}}`,
			want: `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: kubeop-acme-web, labels: {tier: db,
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}}}`,
		},
		"pods of a Deployment are labelled, its selector is not": {
			in: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {x: y}},
				template: {metadata: {labels: {x: y}}, spec: {}}}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: kubeop-acme-web, labels: {
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}},
				spec: {selector: {matchLabels: {x: y}}, template: {metadata: {labels: {x: y,
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}}, spec: {}}}}`,
		},
		"pods of a CronJob are labelled": {
			in: `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: {}}}}}}`,
			want: `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: kubeop-acme-web, labels: {
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}},
				spec: {jobTemplate: {spec: {template: {spec: {}, metadata: {labels: {
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}}}}}}}`,
		},
		"the template of a Job cannot be changed": {
			in: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {metadata: {labels: {x: y}}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: kubeop-acme-web, labels: {
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}},
				spec: {template: {metadata: {labels: {x: y}}}}}`,
		},
		"a Deployment of another group is not Kubernetes'": {
			in: `{apiVersion: example.com/v1, kind: Deployment, metadata: {name: a}, spec: {template: {x: y}}}`,
			want: `{apiVersion: example.com/v1, kind: Deployment, metadata: {name: a, namespace: kubeop-acme-web, labels: {
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}},
				spec: {template: {x: y}}}`,
		},
		"a template that is none is left to the API server": {
			in: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, labels: null}, spec: {template: {metadata: [1]}}}`,
			want: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: kubeop-acme-web, labels: {
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}},
				spec: {template: {metadata: [1]}}}`,
		},
		"labels that are none are left to the API server": {
			in:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: [1]}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kubeop-acme-web, labels: [1]}}`,
		},
		"a workload without a template": {
			in: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: broken}`,
			want: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: kubeop-acme-web, labels: {
				paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop}}, spec: broken}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := object(t, tc.in)
			shop.Stamp([]*unstructured.Unstructured{got})
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("stamped (-want +got):\n%s", diff)
			}
			once := got.DeepCopy()
			shop.Stamp([]*unstructured.Unstructured{got})
			if diff := cmp.Diff(once.Object, got.Object); diff != "" {
				t.Errorf("stamped twice (-once +twice):\n%s", diff)
			}
		})
	}
}

func TestObjectsOfThePlatformKeepTheirNamespaces(t *testing.T) {
	named, unnamed := &unstructured.Unstructured{Object: map[string]any{"kind": "Role"}}, &unstructured.Unstructured{Object: map[string]any{"kind": "Role"}}
	named.SetNamespace("kube-system")
	Owner{Tenant: "platform", Project: "edge", App: "router", Namespace: "edge"}.Stamp([]*unstructured.Unstructured{named, unnamed})
	if named.GetNamespace() != "kube-system" || unnamed.GetNamespace() != "edge" {
		t.Errorf("the namespaces are %s and %s", named.GetNamespace(), unnamed.GetNamespace())
	}
	if home := HomeOf(named.GetLabels()); home != "edge" {
		t.Errorf("the labels name the home %s", home)
	}
}

func TestStampChangesEveryObject(t *testing.T) {
	objects := []*unstructured.Unstructured{
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`),
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`),
	}
	shop.Stamp(objects)
	for _, o := range objects {
		if o.GetNamespace() != shop.Namespace {
			t.Errorf("%s is in %q, want %q", o.GetName(), o.GetNamespace(), shop.Namespace)
		}
	}
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// workload returns a Deployment with the labels on its pods, and one line of its pods' spec.
func workload(t *testing.T, labels, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {paas.kubeop.io/app: shop}},
		spec: {replicas: 1, template: {metadata: {labels: {`+labels+`}}, spec: {`+spec+`}}}}`)
}

const stamped = "paas.kubeop.io/tenant: acme, paas.kubeop.io/project: web, paas.kubeop.io/app: shop"

func TestLabelsOfPodsAreTakenOffACopy(t *testing.T) {
	shop := workload(t, "x: y, "+stamped, "a: b")
	bare := WithoutPodLabels(shop)
	if diff := cmp.Diff(workload(t, "x: y", "a: b").Object, bare.Object); diff != "" {
		t.Errorf("without labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(workload(t, "x: y, "+stamped, "a: b").Object, shop.Object); diff != "" {
		t.Errorf("the object was changed (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"no labels of ours": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {x: y}}}}}`,
		"no template":       `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: x}}`,
		"no workload":       `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {paas.kubeop.io/app: shop}}}`,
	} {
		if o := object(t, text); WithoutPodLabels(o) != o {
			t.Errorf("%s: the object was copied", name)
		}
	}
}

func TestLabelsOfPodsGoWithAChangeOfTheirTemplate(t *testing.T) {
	for name, tc := range map[string]struct{ patch, want string }{
		"of the template":             {`{spec: {template: {spec: {a: c}}}}`, `{spec: {template: {spec: {a: c}, metadata: {labels: {` + stamped + `}}}}}`},
		"of its labels":               {`{spec: {template: {metadata: {labels: {x: z}}}}}`, `{spec: {template: {metadata: {labels: {x: z, ` + stamped + `}}}}}`},
		"of the replicas":             {`{spec: {replicas: 2}}`, `{spec: {replicas: 2}}`},
		"of the object's labels":      {`{metadata: {labels: {a: b}}}`, `{metadata: {labels: {a: b}}}`},
		"of metadata that is none":    {`{spec: {template: {metadata: [1]}}}`, `{spec: {template: {metadata: [1]}}}`},
		"of labels that are none":     {`{spec: {template: {metadata: {labels: [1]}}}}`, `{spec: {template: {metadata: {labels: [1]}}}}`},
		"of everything in the object": {`{spec: null}`, `{spec: null}`},
	} {
		t.Run(name, func(t *testing.T) {
			patch, want := object(t, tc.patch).Object, object(t, tc.want).Object
			changed := AddPodLabels(patch, workload(t, "x: y, "+stamped, "a: b"))
			if diff := cmp.Diff(want, patch); diff != "" || changed != (tc.patch != tc.want) {
				t.Errorf("changed: %t (-want +got):\n%s", changed, diff)
			}
		})
	}
}

func TestTheLabelOfPodsHasAPath(t *testing.T) {
	for kind, want := range map[string]string{
		"apiVersion: apps/v1, kind: DaemonSet":   "spec template metadata labels paas.kubeop.io/app",
		"apiVersion: apps/v1, kind: Deployment":  "spec template metadata labels paas.kubeop.io/app",
		"apiVersion: apps/v1, kind: ReplicaSet":  "spec template metadata labels paas.kubeop.io/app",
		"apiVersion: a.io/v1, kind: Deployment":  "",
		"apiVersion: apps/v1, kind: StatefulSet": "spec template metadata labels paas.kubeop.io/app",
		"apiVersion: batch/v1, kind: CronJob":    "spec jobTemplate spec template metadata labels paas.kubeop.io/app",
		"apiVersion: batch/v1, kind: Job":        "",
		"apiVersion: v1, kind: ConfigMap":        "",
	} {
		o := object(t, "{"+kind+", metadata: {name: a}}")
		if got := strings.Join(PodLabelPath(o), " "); got != want {
			t.Errorf("%s: the path is %q, want %q", kind, got, want)
		}
	}
	if !PodsLabelled(workload(t, stamped, "")) || PodsLabelled(workload(t, "x: y", "")) {
		t.Error("the labels of pods are not recognised")
	}
}

func TestPodsKeepTheAppOfBefore(t *testing.T) {
	app := v1alpha1.AppLabel
	object := workload(t, "x: y, "+stamped, "a: b")
	moved := WithPodsOf(object, "web")
	if got := podLabels(moved)[app]; got != "web" || moved.GetLabels()[v1alpha1.PodsOfLabel] != "web" || podLabels(object)[app] != "shop" {
		t.Errorf("the pods are of app %v, labels are %v; the original has %v", got, moved.GetLabels(), podLabels(object))
	}
	if PodsOf(moved) != "web" || PodsOf(object) != "" {
		t.Errorf("read back: %q, and %q without the mark", PodsOf(moved), PodsOf(object))
	}
	moved.SetLabels(map[string]string{v1alpha1.PodsOfLabel: "forged"})
	if got := PodsOf(moved); got != "" {
		t.Errorf("a mark that the pods do not have is believed: %q", got)
	}
	for name, labels := range map[string]map[string]string{"labels": {"team": "shop"}, "no labels": nil} {
		object.SetLabels(labels)
		want := map[string]string{v1alpha1.PodsOfLabel: "web"}
		maps.Copy(want, labels)
		if diff := cmp.Diff(want, WithPodsOf(object, "web").GetLabels()); diff != "" {
			t.Errorf("an object with %s (-want +got):\n%s", name, diff)
		}
	}
	if bare := workload(t, "x: y", ""); WithPodsOf(bare, "web") != bare {
		t.Error("pods without labels were changed")
	}
}
