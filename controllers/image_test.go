package controllers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// images is a registry with the repository web for image policies, and written one for policies that write to Git.
var images, written = newTagRegistry("1.0.0"), newTagRegistry("1.0.0")

type tagRegistry struct {
	*httptest.Server
	mu   sync.Mutex
	tags string
	seen int
}

func newTagRegistry(tags ...string) *tagRegistry {
	r := &tagRegistry{}
	r.set(tags...)
	r.Server = httptest.NewServer(r)
	return r
}

func (r *tagRegistry) set(tags ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags = `"` + strings.Join(tags, `","`) + `"`
}

func (r *tagRegistry) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func (r *tagRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	if strings.HasSuffix(req.URL.Path, "/tags/list") {
		_, _ = fmt.Fprintf(w, `{"tags":[%s]}`, r.tags)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
	w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("a", 64))
	w.Header().Set("Content-Length", "2")
}

// TestRenderedImagesAreRestricted applies each golden file of delivery/render, with dry runs, in a namespace that enforces
// Pod Security "restricted", and creates a pod of each template.
func TestRenderedImagesAreRestricted(t *testing.T) {
	o, err := op()
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := o.admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"default", "reader"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "restricted", Name: name}}
		if err := client.IgnoreAlreadyExists(o.admin.Create(t.Context(), account)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("../delivery/render/workload/testdata/*.golden.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			pods := 0
			for _, object := range documentsOf(t, file) {
				if object.GetKind() == "HTTPRoute" {
					continue // Only a CustomResourceDefinition knows it.
				}
				pods += o.dryRun(t, object)
			}
			if pods != 1 {
				t.Errorf("the file has %d pod templates, want one", pods)
			}
		})
	}
	refused := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "restricted", Name: "root"}}
	refused.Spec.Containers = []corev1.Container{{Name: "root", Image: "root"}}
	if err := o.admin.Create(t.Context(), refused, client.DryRunAll); err == nil {
		t.Error("the namespace admits an unrestricted pod, so this test proves nothing")
	}
}

func documentsOf(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

// dryRun applies an object and creates a pod of its template, if it has one. It returns the number of pods.
func (o *operator) dryRun(t *testing.T, object *unstructured.Unstructured) int {
	t.Helper()
	object.SetNamespace("restricted")
	template, found := map[string]any(nil), false
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		if inner, ok, _ := unstructured.NestedMap(object.Object, path...); ok {
			template, found = inner, true
		}
	}
	apply := client.ApplyConfigurationFromUnstructured(object)
	if err := o.admin.Apply(t.Context(), apply, client.FieldOwner("test"), client.DryRunAll); err != nil {
		t.Errorf("%s: %v", object.GetKind(), err)
	}
	if !found {
		return 0
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, pod); err != nil {
		t.Fatal(err)
	}
	pod.Namespace, pod.Name = "restricted", "pod"
	if err := o.admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("a pod of the %s: %v", object.GetKind(), err)
	}
	return 1
}

const imageHead = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n  type: Image\n%s"

func imageFile(name, spec string) map[string]string {
	return map[string]string{"projects/shop/apps/" + name + "/app.yaml": fmt.Sprintf(imageHead, name, spec)}
}

// TestAnImageAppFollowsItsConfigImageAndKind changes the config, the image and the kind of workload of an Image app.
func TestAnImageAppFollowsItsConfigImageAndKind(t *testing.T) {
	n := newTeam(t, "imaging")
	namespace := "kubeop-imaging-shop"
	spec := "  image: {reference: registry.example/web:v1, replicas: 0, configFiles: [{path: web.conf, mountPath: /etc/web.conf}]}\n"
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	files := imageFile("web", spec)
	files["projects/shop/apps/web/web.conf"] = "one"
	n.push(files)
	n.ready(n.app("shop", "web"))
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	digest := n.templateDigest(deployment)
	if got := n.configMap("shop", "web-config").Data["web.conf"]; got != "one" {
		t.Errorf("the config file holds %q, want %q", got, "one")
	}
	n.push(map[string]string{"projects/shop/apps/web/web.conf": "two"})
	n.eventually(func() error {
		if now := n.templateDigest(deployment); now == digest || n.configMap("shop", "web-config").Data["web.conf"] != "two" {
			return fmt.Errorf("the pods' annotation is %s", now)
		}
		return nil
	})

	// A Job in place of the Deployment, and another Job for another image.
	n.push(imageFile("web", "  image: {reference: registry.example/web:v1, job: {}}\n"))
	n.until(n.app("shop", "web"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	n.gone(deployment, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-config"}})
	first := n.onlyJob(namespace)
	n.push(imageFile("web", "  image: {reference: registry.example/web:v2, job: {}}\n"))
	n.gone(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: first}})
	if second := n.onlyJob(namespace); second == first || !strings.HasPrefix(second, "web-") {
		t.Errorf("the Job %s was followed by %s, want another Job", first, second)
	}

	// An invalid schedule is reported in the API server's words.
	n.push(imageFile("web", "  image: {reference: registry.example/web:v2, schedule: '0 3 * *'}\n"))
	message := n.until(n.app("shop", "web"), v1alpha1.AppliedCondition, metav1.ConditionFalse, v1alpha1.ApplyFailedReason)
	if !strings.Contains(message, "CronJob/web") || !strings.Contains(message, "spec.schedule") || !strings.Contains(message, "expected exactly 5 fields") {
		t.Errorf("the message is %q", message)
	}
	n.push(imageFile("web", "  image: {reference: registry.example/web:v2, schedule: '0 3 * * *'}\n"))
	n.ready(n.app("shop", "web"))

	n.push(imageFile("web", "  image: {reference: registry.example/web:v2, replicas: 2, volumes: [{name: data, mountPath: /data, size: 1Gi}]}\n"))
	message = n.until(n.app("shop", "web"), v1alpha1.RenderedCondition, metav1.ConditionFalse, v1alpha1.RenderFailedReason)
	if want := "accessMode: ReadWriteMany"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
}

func (n *team) templateDigest(d *appsv1.Deployment) string {
	n.t.Helper()
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		n.t.Fatal(err)
	}
	return d.Spec.Template.Annotations["checksum/config"]
}

// onlyJob waits until there is one Job, and returns its name.
func (n *team) onlyJob(namespace string) string {
	n.t.Helper()
	jobs := &batchv1.JobList{}
	n.eventually(func() error {
		err := n.admin.List(n.t.Context(), jobs, client.InNamespace(namespace))
		if err == nil && len(jobs.Items) != 1 {
			err = fmt.Errorf("%d Jobs", len(jobs.Items))
		}
		return err
	})
	return jobs.Items[0].Name
}

// routes is a minimal definition of the Gateway API's HTTPRoute.
const routes = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: httproutes.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/gateway-api"}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {plural: httproutes, singular: httproute, kind: HTTPRoute, listKind: HTTPRouteList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// serveRoutes defines the kinds of the Gateway API that have host names, TLSRoute and XListenerSet in the versions that they had first, if no other test has.
func (n *team) serveRoutes() {
	n.t.Helper()
	of := func(kind string, more ...string) string {
		return strings.NewReplacer(append(more, "httproute", strings.ToLower(kind), "HTTPRoute", kind)...).Replace(routes)
	}
	for _, text := range []string{
		routes, of("GRPCRoute"), of("Gateway"), of("ListenerSet"), of("TLSRoute", "name: v1\n", "name: v1alpha2\n"),
		of("XListenerSet", "name: v1\n", "name: v1alpha1\n", "gateway.networking.k8s.io", "gateway.networking.x-k8s.io"),
	} {
		if err := n.admin.Create(n.t.Context(), n.object("", text)); client.IgnoreAlreadyExists(err) != nil {
			n.t.Fatal(err)
		}
	}
}

func TestHostsBehindAGatewayBecomeHTTPRoutes(t *testing.T) {
	n := newTeam(t, "gated")
	n.serveRoutes() // Before the first quota of the project, which does not count them as long as Kubernetes may not know them.
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	n.push(imageFile("web", "  image: {reference: registry.example/web:v1, replicas: 0, ports: [{name: http, port: 8080, servicePort: 80}]}\n"+
		"  hosts: [{host: a.gated.example}, {host: b.gated.example, path: /b}]\n"))
	n.until(n.app("shop", "web"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	for host, path := range map[string]string{"a.gated.example": "/", "b.gated.example": "/b"} {
		route := n.object("kubeop-gated-shop", "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web."+host+"}}")
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(route), route); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"hostnames": []any{host}, "parentRefs": []any{map[string]any{"namespace": "infra", "name": "public"}},
			"rules": []any{map[string]any{
				"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": path}}},
				"backendRefs": []any{map[string]any{"name": "web", "port": int64(80)}},
			}},
		}
		if diff := cmp.Diff(want, route.Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", host, diff)
		}
	}
	// The route of a removed host is deleted.
	n.push(imageFile("web", "  image: {reference: registry.example/web:v1, replicas: 0, ports: [{name: http, port: 8080, servicePort: 80}]}\n"+
		"  host: a.gated.example\n"))
	n.gone(n.object("kubeop-gated-shop", "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web.b.gated.example}}"))
}

// TestAnImagePolicyIsFollowed checks what is deployed, what is reported and what the registry is asked.
func TestAnImagePolicyIsFollowed(t *testing.T) {
	n := newTeam(t, "policies")
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	name := images.Listener.Addr().String() + "/web"
	n.push(imageFile("web", "  image: {reference: '"+name+"', replicas: 0, policy: {semver: ^1, interval: 1s}}\n"))
	app := n.app("shop", "web")
	n.ready(app)
	digest := "@sha256:" + strings.Repeat("a", 64)
	if got := app.Status.Image; got == nil || got.Reference != name+":1.0.0"+digest || got.Tag != "1.0.0" {
		t.Fatalf("status.image is %+v", got)
	}
	images.set("1.0.0", "1.3.0", "2.0.0")
	deployment := &appsv1.Deployment{}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: app.Namespace, Name: "web"}, deployment); err != nil {
			return err
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != name+":1.3.0"+digest {
			return fmt.Errorf("the Deployment runs %s", got)
		}
		return nil
	})
	n.eventually(func() error {
		events := &corev1.EventList{}
		err := n.admin.List(t.Context(), events, client.InNamespace(app.Namespace))
		reported := func(e corev1.Event) bool {
			return e.Reason == v1alpha1.ImageChosenReason && e.Message == "web: 1.0.0 → 1.3.0"
		}
		if err == nil && !slices.ContainsFunc(events.Items, reported) {
			err = errors.New("no event reports the new image")
		}
		return err
	})

	// Neither a registry without a fitting tag nor one that asks for a long wait stops the app.
	n.push(imageFile("web", "  image: {reference: '"+name+"', replicas: 0, policy: {semver: ^9, interval: 1s}}\n"))
	message := n.until(app, v1alpha1.SourceReadyCondition, metav1.ConditionFalse, v1alpha1.SourceNotFoundReason)
	if want := "none of the 3 tags is what the policy wants: semver ^9"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}

	before := images.requests()
	files := map[string]string{}
	for i := range 10 {
		for file, content := range imageFile(fmt.Sprintf("plain-%d", i), "  image: {reference: '"+name+":1.0.0', replicas: 0}\n") {
			files[file] = content
		}
	}
	files["projects/shop/apps/web"] = "-"
	n.push(files)
	n.gone(app)
	before = max(before, images.requests())
	for i := range 10 {
		n.ready(n.app("shop", fmt.Sprintf("plain-%d", i)))
	}
	if now := images.requests(); now != before {
		t.Errorf("apps without a policy asked the registry %d times, want 0", now-before)
	}
}
