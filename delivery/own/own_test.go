package own

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var shop = Owner{Tenant: "acme", Project: "web", App: "shop", Namespace: "kubeop-acme-web"}

func TestStamp(t *testing.T) {
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

func TestStampEvery(t *testing.T) {
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
