package migrate

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// inCluster are objects as Flux leaves them in a cluster.
const inCluster = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 10m
  path: ./apps
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
status:
  inventory:
    entries:
    - {id: shop_web_helm.toolkit.fluxcd.io_HelmRelease, v: v2}
    - {id: shop_settings__ConfigMap, v: v1}
    - {id: _shop__Namespace, v: v1}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/fleet.git"}
---
` + release + `
  values: {replicas: 2}
` + charts

// reader returns a client with the objects of a text, without a cluster.
func reader(t *testing.T, text string, calls interceptor.Funcs) client.Reader {
	t.Helper()
	var objects []runtime.Object
	for _, document := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	scheme := runtime.NewScheme()
	for _, kind := range fluxKinds {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithRuntimeObjects(objects...).WithInterceptorFuncs(calls).Build()
}

func newMigration(tenant string) *migration {
	return &migration{tenant: tenant, report: &Report{}, made: map[*object][]*app{}, sources: map[*object]*source{}, moved: map[string]bool{}}
}

// TestFluxIsReadFromTheInventoriesOfACluster reads what Kustomizations apply from their inventories.
func TestFluxIsReadFromTheInventoriesOfACluster(t *testing.T) {
	m := newMigration("platform")
	if err := m.readCluster(t.Context(), reader(t, inCluster, interceptor.Funcs{}), "", fluxKinds); err != nil {
		t.Fatal(err)
	}
	m.relate()
	m.fluxApps()
	files, err := m.files()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		all.WriteString("==> " + f.path + "\n" + string(f.text))
	}
	golden(t, "cluster.txt", all.String())
	if len(m.report.LeftOut) != 0 {
		t.Errorf("left out: %v", m.report.LeftOut)
	}
}

// TestSecretsOfVariablesAreNotWritten: a release in the cluster has the values of its variables, and those of Secrets do not belong in a file.
func TestSecretsOfVariablesAreNotWritten(t *testing.T) {
	text := strings.Replace(inCluster, "  prune: true\n", "  prune: true\n  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n", 1)
	m := newMigration("platform")
	if err := m.readCluster(t.Context(), reader(t, text, interceptor.Funcs{}), "", fluxKinds); err != nil {
		t.Fatal(err)
	}
	m.relate()
	m.fluxApps()
	if len(m.apps) != 1 || m.apps[0].from.GetKind() != "Kustomization" {
		t.Errorf("%d apps were made, want that of the Kustomization", len(m.apps))
	}
	if left := m.report.LeftOut; len(left) != 1 || !strings.Contains(left[0].String(), "HelmRelease shop/web: its Kustomization puts variables of Secrets into it") {
		t.Errorf("left out: %v", left)
	}
}

func TestErrorsOfAClusterAreExplainedInOneLine(t *testing.T) {
	for name, tc := range map[string]struct {
		answer    error
		namespace string
		want      string
	}{
		"no rights":    {apierrors.NewForbidden(schema.GroupResource{Resource: "gitrepositories"}, "", nil), "", "you may not list the GitRepository objects of all namespaces: name a namespace with -n"},
		"not there":    {apierrors.NewForbidden(schema.GroupResource{Resource: "gitrepositories"}, "", nil), "shop", "listing the GitRepository objects: "},
		"without Flux": {&meta.NoKindMatchError{}, "", "the cluster serves no kind of source.toolkit.fluxcd.io: name a folder instead of --cluster"},
	} {
		list := func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return tc.answer
		}
		err := newMigration("acme").readCluster(t.Context(), reader(t, charts[4:], interceptor.Funcs{List: list}), tc.namespace, fluxKinds)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
