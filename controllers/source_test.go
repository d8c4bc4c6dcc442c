package controllers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const gitAppFile = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec: {type: Git, interval: %s, git: %s}\n"

func configNamed(name, greeting string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {greeting: %s}}", name, greeting)
}

// TestACommitIsFetchedOnceForManyApps: a commit that changes one app is applied by that app and the one
// that uses its folder.
func TestACommitIsFetchedOnceForManyApps(t *testing.T) {
	const apps = 100
	n := newTeam(t, "many")
	source := env.Repo(t, "many-source", "", "")
	through, fetches := counting(t, source.URL)
	manifests, files := map[string]string{}, map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")}
	n.push(files)
	n.ready(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-many", Name: "shop"}})
	n.deploySecret("kubeop-many-shop", "login", map[string]string{"username": source.User, "password": source.Password})
	for i := range apps {
		name := fmt.Sprintf("a%d", i)
		manifests["apps/"+name+"/config.yaml"] = configNamed(name, "hello")
		if i%2 == 0 {
			manifests["apps/"+name+"/kustomization.yaml"] = "resources: [config.yaml]"
		}
		interval := "1h"
		if i == 7 {
			interval = "2s" // Only this app polls.
		}
		files["projects/shop/apps/"+name+"/app.yaml"] = fmt.Sprintf(gitAppFile, name, interval, "{url: '"+through+"', path: apps/"+name+", secretRef: {name: login}}")
	}
	manifests["apps/a45/kustomization.yaml"] = "{resources: [../a42/config.yaml], nameSuffix: -beside}"
	manifests["apps/chart/Chart.yaml"] = "{apiVersion: v2, name: chart, version: 1.0.0}"
	files["projects/shop/apps/chart/app.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: chart}\n" +
		"spec: {type: Helm, interval: 1h, helm: {git: {url: '" + through + "', path: apps/chart, secretRef: {name: login}}}}\n"
	first := source.Push(manifests)
	n.push(files)
	for i := range apps {
		n.ready(n.app("shop", fmt.Sprintf("a%d", i)))
	}
	n.ready(n.app("shop", "chart"))
	t.Logf("%d apps were installed with %d fetches", apps, fetches.Load())
	fetches.Store(0)
	before, looks := n.resourceVersions(), n.looks()
	second := source.Push(map[string]string{"apps/a42/config.yaml": configNamed("a42", "bye")})
	pushed := time.Now()
	n.eventually(func() error {
		if got := n.configMap("shop", "a42").Data["greeting"]; got != "bye" {
			return fmt.Errorf("the greeting is %q, want %q", got, "bye")
		}
		return nil
	})
	t.Logf("applied after %s; one app polls every 2s", time.Since(pushed))
	time.Sleep(3 * time.Second)
	looks = n.looks() - looks
	t.Logf("apps were reconciled %d times", looks)
	if looks > 20 {
		t.Errorf("apps were reconciled %d times, though the commit changed two of them", looks)
	}
	var changed []string
	for o, version := range n.resourceVersions() {
		if before[o] != version && !strings.HasPrefix(o, "ResourceQuota ") { // Quotas change when another test defines a kind.
			changed = append(changed, o)
		}
	}
	if fetches.Load() != 1 {
		t.Errorf("the commit was fetched %d times, want 1", fetches.Load())
	}
	slices.Sort(changed)
	if len(changed) != 2 || !strings.HasSuffix(changed[0], "a42") || !strings.HasSuffix(changed[1], "a42-beside") {
		t.Errorf("the commit changes a42 and a45, which uses its folder; the changed apps are %v", changed)
	}
	for name, want := range map[string]string{"a42": second, "a43": first, "a44": first, "a45": second, "chart": first} {
		n.applied(name, want)
	}
	third := source.Push(map[string]string{"apps/chart/Chart.yaml": "{apiVersion: v2, name: chart, version: 1.0.1}"})
	for name, want := range map[string]string{"a42": second, "a44": first, "a45": second, "chart": third} {
		n.applied(name, want)
	}
}

// looks counts the reconciles of the apps of the team's projects.
func (n *team) looks() (count uint64) {
	n.t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "gotk_reconcile_duration_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			of := map[string]string{}
			for _, label := range m.GetLabel() {
				of[label.GetName()] = label.GetValue()
			}
			if of["kind"] == "App" && strings.HasPrefix(of["namespace"], "kubeop-"+n.name+"-") {
				count += m.GetHistogram().GetSampleCount()
			}
		}
	}
	if count == 0 {
		n.t.Fatal("the metrics count no reconcile of an app")
	}
	return count
}

// counting returns a proxy of a repository, and the number of packs fetched through it.
func counting(t *testing.T, repository string) (at string, fetches *atomic.Int32) {
	t.Helper()
	to, err := url.Parse(repository)
	if err != nil {
		t.Fatal(err)
	}
	fetches = &atomic.Int32{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			fetches.Add(1)
		}
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	return server.URL + to.Path, fetches
}

func (n *team) deploySecret(namespace, name string, data map[string]string) {
	n.t.Helper()
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{}}}
	secret.SetNamespace(namespace)
	secret.SetName(name)
	for k, v := range data {
		secret.Object["stringData"].(map[string]any)[k] = v
	}
	n.create(secret)
}

// artifacts serves archives as Flux's source-controller does.
type artifacts struct {
	*httptest.Server
	mu    sync.Mutex
	held  map[string][]byte
	asked int
}

func serveArtifacts(t *testing.T) *artifacts {
	t.Helper()
	a := &artifacts{held: map[string][]byte{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked++
		content, ok := a.held[req.URL.Path]
		if !ok {
			http.NotFound(w, req)
			return
		}
		if strings.Contains(req.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", digestOf(content))
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(a.Close)
	return a
}

// archiveOf is a tar within gzip with one file.
func archiveOf(t *testing.T, manifest string) []byte {
	t.Helper()
	var archive bytes.Buffer
	squeezed := gzip.NewWriter(&archive)
	out := tar.NewWriter(squeezed)
	err := out.WriteHeader(&tar.Header{Name: "deploy/config.yaml", Mode: 0o644, Size: int64(len(manifest))})
	_, also := out.Write([]byte(manifest))
	if err := errors.Join(err, also, out.Close(), squeezed.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// put adds an archive of one file and returns the artifact for a source's status.
func (a *artifacts) put(t *testing.T, revision, manifest string) map[string]any {
	t.Helper()
	archive := archiveOf(t, manifest)
	a.mu.Lock()
	defer a.mu.Unlock()
	path := "/gitrepository/kubeop-flux-shop/source/" + strings.ReplaceAll(revision, ":", "-") + ".tar.gz"
	a.held[path] = archive
	return map[string]any{
		"url": a.URL + path, "path": path, "revision": revision, "size": int64(len(archive)),
		"digest": digestOf(archive), "lastUpdateTime": "2026-01-01T00:00:00Z",
	}
}

// publish serves an archive as an artifact under a tag, as a registry does.
func (a *artifacts) publish(t *testing.T, tag, manifest string) (digest string) {
	t.Helper()
	archive := archiveOf(t, manifest)
	about := fmt.Appendf(nil, `{"schemaVersion": 2, "layers": [{"mediaType": "application/vnd.cncf.flux.content.v1.tar+gzip", "digest": %q, "size": %d}]}`, digestOf(archive), len(archive))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held["/v2/web/manifests/"+tag], a.held["/v2/web/manifests/"+digestOf(about)], a.held["/v2/web/blobs/"+digestOf(archive)] = about, about, archive
	return digestOf(about)
}

func TestAnArtifactIsFollowed(t *testing.T) {
	n := newTeam(t, "oci")
	registry := serveArtifacts(t)
	files := map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")}
	at := strings.TrimPrefix(registry.URL, "http://")
	files["projects/shop/apps/web/app.yaml"] = fmt.Sprintf(gitAppFile, "web", "1s", "{oci: {url: 'oci://"+at+"/web', tag: v1, insecure: true}, path: deploy, ignore: '*.txt'}")
	n.push(files)
	for _, greeting := range []string{"hello", "bye"} {
		revision := "v1@" + registry.publish(t, "v1", configNamed("web", greeting))
		web := n.app("shop", "web")
		n.eventually(func() error {
			err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web)
			if err == nil && web.Status.LastAppliedRevision != revision {
				err = fmt.Errorf("applied %q: %+v", web.Status.LastAppliedRevision, web.Status.Conditions)
			}
			return err
		})
		if got := n.configMap("shop", "web").Data["greeting"]; got != greeting {
			t.Errorf("the greeting is %q, want %q", got, greeting)
		}
	}
}

const fluxCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gitrepositories.source.toolkit.fluxcd.io}
spec:
  group: source.toolkit.fluxcd.io
  names: {kind: GitRepository, listKind: GitRepositoryList, plural: gitrepositories, singular: gitrepository}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestAFluxSourceIsFollowed(t *testing.T) {
	n := newTeam(t, "flux")
	flux := serveArtifacts(t)
	files := map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")}
	files["projects/shop/apps/web/app.yaml"] = fmt.Sprintf(gitAppFile, "web", "1h", "{sourceRef: {kind: GitRepository, name: source}, path: deploy}")
	n.push(files)
	web := n.app("shop", "web")
	n.says(web, "does not serve GitRepository")
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(fluxCRD), &crd.Object); err != nil {
		t.Fatal(err)
	}
	n.create(crd)
	n.says(web, "GitRepository kubeop-flux-shop/source does not exist")

	source := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "spec": map[string]any{}}}
	source.SetNamespace("kubeop-flux-shop")
	source.SetName("source")
	n.create(source)
	n.says(web, "has no artifact yet")
	n.fluxStatus(source, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "no such host"}}})
	n.says(web, "is not ready: \"no such host\"")
	n.fluxStatus(source, map[string]any{"artifact": map[string]any{"url": "http://169.254.169.254/latest/meta-data", "revision": "x", "digest": "sha256:" + strings.Repeat("0", 64)}})
	n.says(web, "169.254.169.254 is not a host from which artifacts are fetched")

	for i, greeting := range []string{"hello", "bye"} {
		revision := fmt.Sprintf("main@sha1:%d", i)
		began := time.Now()
		n.fluxStatus(source, map[string]any{"artifact": flux.put(t, revision, configNamed("web", greeting))})
		n.eventually(func() error {
			err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web)
			if err == nil && web.Status.LastAppliedRevision != revision {
				err = fmt.Errorf("applied %q", web.Status.LastAppliedRevision)
			}
			return err
		})
		t.Logf("%s was applied after %s", revision, time.Since(began))
		if got := n.configMap("shop", "web").Data["greeting"]; got != greeting {
			t.Errorf("the greeting is %q, want %q", got, greeting)
		}
	}
	n.ready(web)
	n.reconcile(web)
	flux.mu.Lock()
	if flux.asked != 2 {
		t.Errorf("the artifact was downloaded %d times, want 2", flux.asked)
	}
	flux.mu.Unlock()
	n.fluxStatus(source, map[string]any{"artifact": map[string]any{"url": flux.URL + "/gitrepository/kubeop-flux-shop/source/main@sha1-1.tar.gz", "revision": "main@sha1:9", "digest": "sha256:" + strings.Repeat("0", 64)}})
	n.says(web, "is expected")
	if got := n.configMap("shop", "web").Data["greeting"]; got != "bye" {
		t.Errorf("the applied greeting changed to %q, want %q", got, "bye")
	}
}

// fluxStatus writes the status of a source, as Flux's controllers do.
func (n *team) fluxStatus(source *unstructured.Unstructured, status map[string]any) {
	n.t.Helper()
	patch := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": source.GetAPIVersion(), "kind": source.GetKind(), "status": status,
		"metadata": map[string]any{"name": source.GetName(), "namespace": source.GetNamespace()},
	}}
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
		n.t.Fatal(err)
	}
	patch.SetResourceVersion(source.GetResourceVersion())
	if err := n.admin.Status().Update(n.t.Context(), patch); err != nil {
		n.t.Fatal(err)
	}
}

// says waits until the app's source is not ready, with a message that contains the text.
func (n *team) says(app *v1alpha1.App, text string) {
	n.t.Helper()
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		for _, c := range app.Status.Conditions {
			if c.Type == v1alpha1.SourceReadyCondition && strings.Contains(c.Message, text) && c.Status != metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", app.Status.Conditions)
	})
}
