package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// server is an API server with some objects, by their paths. It refuses what refused names, and keeps nothing that is written.
type server struct {
	http.RoundTripper
	objects map[string]map[string]any
	refused map[string]int

	mu sync.Mutex
	// written are the writes: their method, path and dryRun, and users are who made them.
	written []string
	users   map[string]bool
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	at := r.URL.Path
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.users[r.Header.Get("Impersonate-User")] = true
	if r.Method != http.MethodGet {
		s.written = append(s.written, r.Method+" "+at+" "+r.URL.Query().Get("dryRun"))
	}
	s.mu.Unlock()
	if code := s.refused[r.Method+" "+at]; code != 0 {
		return answer(r, code, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Message: "the server says no",
			Reason: map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid}[code],
		})
	}
	switch {
	case r.Method == http.MethodPatch:
		var want map[string]any
		if err := json.Unmarshal(body, &want); err != nil {
			return nil, err
		}
		return answer(r, http.StatusOK, overlay(s.objects[at], want))
	case s.objects[at] != nil:
		o := maps.Clone(s.objects[at])
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			o["kind"], o["apiVersion"] = "PartialObjectMetadata", "meta.k8s.io/v1"
		}
		return answer(r, http.StatusOK, o)
	}
	return s.RoundTripper.RoundTrip(r)
}

func answer(r *http.Request, code int, of any) (*http.Response, error) {
	body, err := json.Marshal(of)
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

// has adds an object of the app web of the namespace of the project shop, with other fields.
func (s *server) has(resource, kind, name string, annotations map[string]any, fields map[string]any) {
	o := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{
		"namespace": "kubeop-acme-shop", "name": name, "uid": name, "annotations": annotations, "resourceVersion": "1",
		"labels": map[string]any{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"},
	}}
	maps.Copy(o, fields)
	s.objects["/api/v1/namespaces/kubeop-acme-shop/"+resource+"/"+name] = o
}

// world is a cluster with the tenant acme and its project shop, and a commit to plan.
type world struct {
	t      *testing.T
	server *server
	there  []client.Object
	itself bool
	files  fstest.MapFS
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config, err := Empty()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, server: &server{RoundTripper: config.Transport, objects: map[string]map[string]any{}, refused: map[string]int{}, users: map[string]bool{}},
		files: fstest.MapFS{"kubeop.yaml": {Data: []byte("layout: v1\n")}},
	}
	shop := newProject("shop")
	shop.UID = "shop"
	w.there = []client.Object{shop, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}}
	w.file("projects/shop/project.yaml", v1alpha1.ProjectKind, "shop", "")
	return w
}

// file adds the file of an object.
func (w *world) file(file, kind, name, spec string) {
	w.files[file] = &fstest.MapFile{Data: []byte("apiVersion: " + v1alpha1.GroupVersion.String() + "\nkind: " + kind + "\nmetadata: {name: " + name + "}\n" + spec)}
}

// app adds a Raw app of the project shop with manifests.
func (w *world) app(name string, manifests ...string) {
	dir := "projects/shop/apps/" + name + "/"
	w.file(dir+"app.yaml", v1alpha1.AppKind, name, "spec: {type: Raw, raw: {path: manifests}}\n")
	w.files[dir+"manifests/objects.yaml"] = &fstest.MapFile{Data: []byte(strings.Join(manifests, "---\n"))}
}

// live adds a live App that has applied objects, by their inventory IDs.
func (w *world) live(name string, ids ...string) *v1alpha1.App {
	app := newApp("shop", name)
	app.UID = "1"
	for _, id := range ids {
		app.Status.Inventory.Entries = append(app.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: "kubeop-acme-shop_" + id, Version: "v1", Digest: "x"})
	}
	w.there = append(w.there, app)
	return app
}

// commit returns a commit of the files.
func (w *world) commit(revision string) Commit {
	files := folder.FromFS(w.files)
	root := files.Folder(".")
	return Commit{Revision: revision, Author: "ann", Root: root, Folder: func(hash string) (*folder.Folder, error) {
		for file := range w.files {
			if found, err := root.Digest(path.Dir(file)); err == nil && found == hash {
				return files.Folder(path.Dir(file)), nil
			}
		}
		return nil, errors.New("no folder has the hash " + hash)
	}}
}

// newRenderer is render.New, which imports this package, so that UseRenderer sets it from outside.
var newRenderer NewRenderer

// UseRenderer sets what renders the Apps in the tests of this package.
func UseRenderer(n NewRenderer) { newRenderer = n }

// start makes the Planner, once everything is there.
func (w *world) start() (*Planner, *v1alpha1.Repository) {
	w.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			w.t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(w.there...).Build()
	config := &rest.Config{Host: "http://api.invalid", Transport: w.server, QPS: -1}
	p := &Planner{
		Client: c, Direct: c, Limits: budget.Default(), Clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)),
		Connect: func(ctx context.Context, folders Folders) (*Connection, error) {
			local, err := Local(ctx, DryRun(config, w.itself), c, w.t.TempDir())
			if err != nil {
				return nil, err
			}
			return &Connection{Renderer: newRenderer(local, folders), Itself: w.itself}, nil
		},
	}
	return p, &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme"}}
}

// plan plans the commit, and fails the test with an error.
func (w *world) plan(only identity.Ref) *Plan {
	w.t.Helper()
	p, repository := w.start()
	made, err := p.Plan(w.t.Context(), repository, w.commit("main@sha1:1"), only)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// applied lets the cluster have what the files declare.
func (w *world) applied() {
	w.t.Helper()
	w.there = w.there[1:] // The tenant is not in the files.
	p, repository := w.start()
	compared, err := p.compare(w.t.Context(), repository, w.commit("main@sha1:1"))
	if err != nil {
		w.t.Fatal(err)
	}
	compared.tree.Walk(func(n tree.Node) bool {
		if n.Ref().Project == "" {
			return true
		}
		o, err := compared.reader.Default(compared.tree.Object(n, "main@sha1:1"))
		if err != nil {
			w.t.Fatal(err)
		}
		meta := applied(o.GetNamespace(), o.GetName())
		o.SetManagedFields(meta.ManagedFields)
		o.SetFinalizers([]string{v1alpha1.Finalizer})
		o.SetUID("1")
		w.there = append(w.there, o)
		return true
	})
}

// wroteNothing checks that each write was a dry run.
func (w *world) wroteNothing() {
	w.t.Helper()
	for _, write := range w.server.written {
		if !strings.HasSuffix(write, " All") {
			w.t.Errorf("%s was sent", write)
		}
	}
}
