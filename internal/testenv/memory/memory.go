// Package memory serves objects over HTTP as an API server does, out of the fake client of controller-runtime. It is for tests of commands that
// connect by a kubeconfig, and need no validation, defaults, tables or rights.
package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// kinds are those that the server serves.
var kinds = []metav1.APIResource{
	{Kind: "Pod", Version: "v1", Name: "pods", Namespaced: true}, {Kind: "ConfigMap", Version: "v1", Name: "configmaps", Namespaced: true},
	{Kind: "Event", Version: "v1", Name: "events", Namespaced: true}, {Kind: "Namespace", Version: "v1", Name: "namespaces"},
	{Kind: "Deployment", Group: "apps", Version: "v1", Name: "deployments", Namespaced: true}, {Kind: "ReplicaSet", Group: "apps", Version: "v1", Name: "replicasets", Namespaced: true},
	{Kind: "StatefulSet", Group: "apps", Version: "v1", Name: "statefulsets", Namespaced: true}, {Kind: "DaemonSet", Group: "apps", Version: "v1", Name: "daemonsets", Namespaced: true},
	{Kind: "NetworkPolicy", Group: "networking.k8s.io", Version: "v1", Name: "networkpolicies", Namespaced: true},
	{Kind: "StorageClass", Group: "storage.k8s.io", Version: "v1", Name: "storageclasses"}, {Kind: "IngressClass", Group: "networking.k8s.io", Version: "v1", Name: "ingressclasses"},
	{Kind: "PriorityClass", Group: "scheduling.k8s.io", Version: "v1", Name: "priorityclasses"},
	{Kind: "Job", Group: "batch", Version: "v1", Name: "jobs", Namespaced: true}, {Kind: "CronJob", Group: "batch", Version: "v1", Name: "cronjobs", Namespaced: true},
	{Kind: "SelfSubjectAccessReview", Group: "authorization.k8s.io", Version: "v1", Name: "selfsubjectaccessreviews"},
	{Kind: v1alpha1.AppKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "apps", Namespaced: true},
	{Kind: v1alpha1.ProjectKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "projects", Namespaced: true},
	{Kind: v1alpha1.PolicyKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "policies"},
	{Kind: v1alpha1.GuardrailsKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "guardrails", Namespaced: true},
	{Kind: v1alpha1.RegistryKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "registries"},
	{Kind: v1alpha1.PriceListKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "pricelists"},
	{Kind: v1alpha1.ClusterKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "clusters"},
	{Kind: v1alpha1.TenantKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "tenants"},
	{Kind: v1alpha1.RepositoryKind, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Name: "repositories"},
}

// Server is an API server in memory.
type Server struct {
	// Client reads and writes the objects, also those of the status.
	client.WithWatch
	// Kubeconfig is a file that connects to the server.
	Kubeconfig string
	// Intercept answers requests before the server does, if it is not nil. It returns false for a request that the server should answer.
	Intercept func(w http.ResponseWriter, r *http.Request) bool
}

// Serve starts a server with objects.
func Serve(t testing.TB, objects ...client.Object) *Server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds {
		scope := meta.RESTScope(meta.RESTScopeRoot)
		if k.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}, scope)
	}
	s := &Server{
		WithWatch:  fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).Build(),
		Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"),
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	kubeconfig := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "memory",
"clusters": [{"name": "memory", "cluster": {"server": %q}}], "users": [{"name": "memory", "user": {}}],
"contexts": [{"name": "memory", "context": {"cluster": "memory", "user": "memory"}}]}`, server.URL)
	if err := os.WriteFile(s.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Intercept != nil && s.Intercept(w, r) {
		return
	}
	answer := discovery(strings.Trim(r.URL.Path, "/"))
	var err error
	if answer == nil {
		answer, err = s.objects(w, r)
	}
	code := http.StatusOK
	if err != nil {
		status := apierrors.APIStatus(apierrors.NewInternalError(err))
		errors.As(err, &status)
		answer, code = status.Status(), int(status.Status().Code)
	}
	if answer == nil {
		return // A watch has written its events.
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// An answer that is cut off is an error of the client.
	_ = json.NewEncoder(w).Encode(answer)
}

// discovery answers a request about the kinds; nil for another request.
func discovery(path string) any {
	group, version := "", ""
	switch parts := strings.Split(path, "/"); {
	case path == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case path == "apis":
		return groups()
	case len(parts) == 2 && parts[0] == "api":
		version = parts[1]
	case len(parts) == 3 && parts[0] == "apis":
		group, version = parts[1], parts[2]
	default:
		return nil
	}
	in := schema.GroupVersion{Group: group, Version: version}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: in.String()}
	for _, k := range kinds {
		if k.Group == group && k.Version == version {
			k.Verbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
			list.APIResources = append(list.APIResources, k)
		}
	}
	return list
}

func groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range kinds {
		if k.Group != "" && !slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group }) {
			version := metav1.GroupVersionForDiscovery{GroupVersion: k.Group + "/" + k.Version, Version: k.Version}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
	}
	return list
}

// request is what a URL asks for.
type request struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// parse reads the path of a request: /api/v1/namespaces/<namespace>/<resource>/<name>.
func parse(path string) (request, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group, unknown := "", fmt.Errorf("the server does not serve %s", path)
	if parts[0] == "apis" {
		group, parts = parts[1], parts[1:]
	}
	if len(parts) < 3 {
		return request{}, unknown
	}
	version, parts := parts[1], parts[2:]
	var r request
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.namespace, parts = parts[1], parts[2:]
	}
	i := slices.IndexFunc(kinds, func(k metav1.APIResource) bool { return k.Group == group && k.Version == version && k.Name == parts[0] })
	if i < 0 || len(parts) > 2 {
		return request{}, unknown
	}
	if len(parts) == 2 {
		r.name = parts[1]
	}
	r.kind = schema.GroupVersionKind{Group: group, Version: version, Kind: kinds[i].Kind}
	return r, nil
}

// objects answers a request about objects; a watch is answered by its events.
func (s *Server) objects(w http.ResponseWriter, r *http.Request) (any, error) {
	of, err := parse(r.URL.Path)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(of.kind)
	object.SetNamespace(of.namespace)
	object.SetName(of.name)
	switch {
	case r.URL.Query().Get("watch") != "":
		return nil, s.watch(w, r, of)
	case r.Method == http.MethodPatch:
		patch, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return object, s.Patch(r.Context(), object, client.RawPatch(types.PatchType(r.Header.Get("Content-Type")), patch))
	case r.Method != http.MethodGet:
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Group: of.kind.Group, Resource: of.kind.Kind}, r.Method)
	case of.name != "":
		return object, s.Get(r.Context(), client.ObjectKeyFromObject(object), object)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of.kind.GroupVersion().WithKind(of.kind.Kind + "List"))
	return list, s.List(r.Context(), list, client.InNamespace(of.namespace))
}

// watch writes the changes of the one object whose name the field selector has, since the version that the request has.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, of request) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of.kind.GroupVersion().WithKind(of.kind.Kind + "List"))
	changes, err := s.Watch(r.Context(), list, client.InNamespace(of.namespace))
	if err != nil {
		return err
	}
	defer changes.Stop()
	name, _ := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	send := func(kind watch.EventType, object any) bool {
		err := json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
		return err == nil && http.NewResponseController(w).Flush() == nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(of.kind)
	object.SetNamespace(of.namespace)
	object.SetName(name)
	switch err := s.Get(r.Context(), client.ObjectKeyFromObject(object), object); {
	case apierrors.IsNotFound(err):
		send(watch.Deleted, object)
		return nil
	case err != nil:
		return nil
	case object.GetResourceVersion() != r.URL.Query().Get("resourceVersion") && !send(watch.Modified, object):
		return nil
	case http.NewResponseController(w).Flush() != nil:
		return nil
	}
	for {
		select {
		case <-r.Context().Done():
			return nil
		case event, open := <-changes.ResultChan():
			if !open {
				return nil
			}
			changed, ok := event.Object.(client.Object)
			if !ok || changed.GetName() != name {
				continue
			}
			// The events of the fake client have objects without their kind.
			changed.GetObjectKind().SetGroupVersionKind(of.kind)
			if !send(event.Type, changed) {
				return nil
			}
		}
	}
}
