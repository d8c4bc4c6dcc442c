package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/e2e/stage"
	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// TestFluxDriverRunsAllPhases runs the phases for three HelmReleases on a real API server, with a fake Flux that only answers
// requests.
func TestFluxDriverRunsAllPhases(t *testing.T) {
	for _, kind := range []string{helmRelease, "OCIRepository"} {
		serve(t, kind)
	}
	fakeFlux := startStandIn(t)
	args := "-driver flux -n 3 -quiet 300ms -phases upgrade,requested,one,restart,removal -chart-url oci://registry.example.com/charts -metrics " + fakeFlux.url
	s, err := parseSettings(strings.Fields(args), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newFlux(t.Context(), s.flux, env.Config)
	if err != nil {
		t.Fatal(err)
	}
	phases, err := s.drive(t.Context(), stage.NewTimeline(t.Output()), d, 3)
	if err != nil {
		t.Fatal(err)
	}
	// One read and one patch for each app with a request. The driver may not restart controllers of others.
	want := []phase{{Name: install, Apps: 3, Writes: 3}, {Name: upgrade, Apps: 3, Writes: 3}, {Name: requested, Apps: 3, Writes: 3}, {Name: oneOf, Apps: 1, Writes: 1}, {Name: removal, Apps: 3}}
	if len(phases) != len(want) {
		t.Fatalf("%d phases: %+v, want %d", len(phases), phases, len(want))
	}
	for i, p := range phases {
		if p.Name != want[i].Name || p.Apps != want[i].Apps || p.Writes != want[i].Writes || p.Reconciles != want[i].Writes || p.Audit != 0 {
			t.Errorf("got %+v, want %+v", p, want[i])
		}
	}
}

// serve creates a kind of Flux without validation.
func serve(t *testing.T, kind string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	at, anything := resources[kind], true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: at.Resource + "." + at.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: at.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: at.Resource},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: at.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
	if err := admin.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	objects := dynamic.NewForConfigOrDie(env.Config).Resource(at)
	err = stage.Until(t.Context(), time.Minute, kind+" is served", func(ctx context.Context) error {
		_, err := objects.List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fakeFlux reports every HelmRelease as ready and counts the requests for that.
type fakeFlux struct {
	t      *testing.T
	client dynamic.NamespaceableResourceInterface
	looks  atomic.Int64
	url    string
}

func startStandIn(t *testing.T) *fakeFlux {
	t.Helper()
	client := dynamic.NewForConfigOrDie(env.Config)
	s := &fakeFlux{t: t, client: client.Resource(resources[helmRelease])}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(resources[helmRelease]).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.look(o.(*unstructured.Unstructured).DeepCopy()) },
		UpdateFunc: func(_, o any) { s.look(o.(*unstructured.Unstructured).DeepCopy()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go informer.Run(t.Context().Done())
	return s
}

func (s *fakeFlux) look(o *unstructured.Unstructured) {
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	handled, _, _ := unstructured.NestedString(o.Object, "status", "lastHandledReconcileAt")
	token := o.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]
	if observed == o.GetGeneration() && handled == token {
		return
	}
	condition := func(kind string) any {
		return map[string]any{"type": kind, "status": "True", "observedGeneration": o.GetGeneration()}
	}
	o.Object["status"] = map[string]any{
		"observedGeneration": o.GetGeneration(), "lastHandledReconcileAt": token,
		"conditions": []any{condition("Released"), condition("Ready")},
	}
	s.looks.Add(1)
	if _, err := s.client.Namespace(o.GetNamespace()).UpdateStatus(s.t.Context(), o, metav1.UpdateOptions{}); err != nil {
		s.t.Errorf("%s: %v", o.GetName(), err)
	}
}

// ServeHTTP serves metrics.
func (s *fakeFlux) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	_, _ = fmt.Fprintf(w, "# TYPE rest_client_requests_total counter\nrest_client_requests_total{code=\"200\",method=\"PUT\"} %[1]d\n"+
		"# TYPE controller_runtime_reconcile_total counter\ncontroller_runtime_reconcile_total{controller=\"helmrelease\"} %[1]d\n", s.looks.Load())
}
