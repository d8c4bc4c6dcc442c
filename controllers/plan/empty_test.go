package plan

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/charts"
	"github.com/kubeop/kubeop/delivery/kube"
)

func TestAnEmptyClusterServesTheKindsOfKubernetes(t *testing.T) {
	config, err := Empty()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := kube.NewMapper(memory.NewMemCacheClient(asked))
	for kind, want := range map[schema.GroupVersionKind]struct{ resource, scope string }{
		{Version: "v1", Kind: "Endpoints"}:                                               {"endpoints", "namespace"},
		{Version: "v1", Kind: "Namespace"}:                                               {"namespaces", "root"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                               {"deployments", "namespace"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}:               {"networkpolicies", "namespace"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"}:                {"ingressclasses", "root"},
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}:           {"horizontalpodautoscalers", "namespace"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}:         {"clusterroles", "root"},
		{Group: "paas.kubeop.io", Version: "v1alpha1", Kind: "App"}:                      {"apps", "namespace"},
		{Group: "paas.kubeop.io", Version: "v1alpha1", Kind: "Tenant"}:                   {"tenants", "root"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: {"customresourcedefinitions", "root"},
	} {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if mapping.Resource.Resource != want.resource || string(mapping.Scope.Name()) != want.scope {
			t.Errorf("%s is %s of %s, want %v", kind, mapping.Resource.Resource, mapping.Scope.Name(), want)
		}
	}
	if mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "extensions", Kind: "Ingress"}, "v1beta1"); err == nil {
		t.Errorf("a version that no cluster serves is mapped to %v", mapping)
	}
}

// TestTheKindsOfKubeopAreServedAsTheirDefinitionsSay: kubeop validate says by them whether an object has a namespace.
func TestTheKindsOfKubeopAreServedAsTheirDefinitionsSay(t *testing.T) {
	files, err := fs.Glob(charts.CRDs, "kubeop/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d definitions: %v", len(files), err)
	}
	want := map[string]metav1.APIResource{}
	for _, file := range files {
		text, err := charts.CRDs.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, definition); err != nil {
			t.Fatal(err)
		}
		names := definition.Spec.Names
		want[names.Kind] = metav1.APIResource{
			Name: names.Plural, SingularName: names.Singular, Kind: names.Kind, Namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
		}
	}
	served, err := newEmpty()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]metav1.APIResource{}
	for _, r := range served.resources[v1alpha1.GroupVersion.String()].APIResources {
		r.Verbs = nil
		got[r.Kind] = r
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheVersionIsThatOfTheLibraries(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/client-go v0." + minor + "."; !strings.Contains(string(text), want) {
		t.Errorf("go.mod does not have %s", want)
	}
}

func TestAnEmptyClusterHasNoObjects(t *testing.T) {
	config, err := Empty()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading a Secret: %v", err)
	}
	found := &corev1.SecretList{}
	if err := c.List(t.Context(), found, client.InNamespace("shop")); err != nil || len(found.Items) != 0 {
		t.Errorf("listing Secrets: %v, %v", found.Items, err)
	}
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: at}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("writing a ConfigMap: %v", err)
	}
}
