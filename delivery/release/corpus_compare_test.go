package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// uncompared kinds are created by the cluster itself, under generated names.
var uncompared = map[string]bool{
	"events": true, "events.events.k8s.io": true, "leases.coordination.k8s.io": true,
	"endpoints": true, "endpointslices.discovery.k8s.io": true, "controllerrevisions.apps": true,
}

// alike compares what was read of two sides. Kubernetes' own controllers take some time, so only a lasting difference counts.
func alike(what string, all []*side, read func(*side) any) {
	kubeop, person := all[0], all[1]
	kubeop.Helper()
	diff := ""
	for range 100 {
		if diff = cmp.Diff(person.fields(read(person)), kubeop.fields(read(kubeop))); diff == "" {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	kubeop.Errorf("%s (-helm +kubeop):\n%s", what, diff)
}

// fields maps paths to the fields of a value, with the namespace's name replaced everywhere.
func (s *side) fields(value any) map[string]string {
	s.Helper()
	out := map[string]string{}
	flatten("", s.replaced(value, []string{s.namespace, "NAMESPACE"}), out)
	return out
}

// replaced returns a value with words replaced everywhere.
func (s *side) replaced(value any, words []string) (out any) {
	s.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		s.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(strings.NewReplacer(words...).Replace(string(data))))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		s.Fatal(err)
	}
	return out
}

func flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			into[path] = "{}"
		}
		for k, v := range value {
			flatten(path+" "+k, v, into)
		}
	case []any:
		if len(value) == 0 {
			into[path] = "[]"
		}
		for i, v := range value {
			flatten(fmt.Sprintf("%s %d", path, i), v, into)
		}
	default:
		into[path] = fmt.Sprintf("%#v", value)
	}
}

// objects returns all objects of the namespace by kind and name, and the kinds in its own group, without Helm's records and without what
// Kubernetes' controllers made from the others.
func (s *side) objects() any {
	s.Helper()
	all := s.kinds(s.Context())
	for _, kind := range s.resources() {
		all = append(all, s.listed(kind)...)
	}
	out := map[string]any{}
	var chosen []string // names and UIDs that the API server chose, each followed by its replacement
	for i := range all {
		u := &all[i]
		record := u.GetKind() == "Secret" && u.Object["type"] == "helm.sh/release.v1"
		if record || metav1.GetControllerOfNoCopy(u) != nil {
			continue
		}
		key := u.GetAPIVersion() + "/" + u.GetKind() + "/" + u.GetName()
		if prefix := u.GetGenerateName(); prefix != "" {
			key = fmt.Sprintf("%s/%s/%s%d", u.GetAPIVersion(), u.GetKind(), prefix, len(out))
			chosen = append(chosen, u.GetName(), prefix)
		}
		chosen = append(chosen, string(u.GetUID()), "UID")
		unmark(u)
		normalize(u)
		out[key] = u.Object
	}
	return s.replaced(out, chosen)
}

// unmark removes Helm's labels from a definition. kubeop sets them also on definitions of crds/, so that no chart changes what another one
// installed. Nothing else is added to what `helm` installs.
func unmark(u *unstructured.Unstructured) {
	if u.GetKind() != "CustomResourceDefinition" {
		return
	}
	without(u.Object, "metadata", "labels", cluster.ManagedByLabel)
	without(u.Object, "metadata", "annotations", cluster.NameAnnotation, cluster.NamespaceAnnotation)
	metadata := u.Object["metadata"].(map[string]any)
	managed, _ := metadata["managedFields"].([]any)
	for _, entry := range managed {
		fields, _ := entry.(map[string]any)["fieldsV1"].(map[string]any)
		without(fields, "f:metadata", "f:labels", "f:"+cluster.ManagedByLabel)
		without(fields, "f:metadata", "f:annotations", "f:"+cluster.NameAnnotation, "f:"+cluster.NamespaceAnnotation)
	}
}

// without deletes names from in[outer][inner], and the maps that are empty then.
func without(in map[string]any, outer, inner string, names ...string) {
	middle, _ := in[outer].(map[string]any)
	last, ok := middle[inner].(map[string]any)
	if !ok {
		return
	}
	for _, name := range names {
		delete(last, name)
	}
	if _, dot := last["."]; dot && len(last) == 1 || len(last) == 0 {
		delete(middle, inner)
	}
	if len(middle) == 0 {
		delete(in, outer)
	}
}

// resources returns the kinds of namespaced objects, except those that other cases installed.
func (s *side) resources() []schema.GroupVersionResource {
	s.Helper()
	lists, err := s.admin.Discovery().ServerPreferredNamespacedResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		s.Fatal(err)
	}
	var out []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			s.Fatal(err)
		}
		for _, r := range list.APIResources {
			resource := gv.WithResource(r.Name)
			foreign := strings.HasSuffix(gv.Group, ".example.com") && gv.Group != s.group()
			if slices.Contains(r.Verbs, "list") && !uncompared[resource.GroupResource().String()] && !foreign {
				out = append(out, resource)
			}
		}
	}
	return out
}

func (s *side) listed(kind schema.GroupVersionResource) []unstructured.Unstructured {
	s.Helper()
	path := []string{"/apis", kind.Group, kind.Version, "namespaces", s.namespace, kind.Resource}
	if kind.Group == "" {
		path = slices.Delete(path, 0, 2)
		path = append([]string{"/api"}, path...)
	}
	raw, err := s.admin.CoreV1().RESTClient().Get().AbsPath(path...).DoRaw(s.Context())
	if apierrors.IsNotFound(err) {
		return nil // The kind was deleted just now.
	}
	var list unstructured.UnstructuredList
	if err == nil {
		err = list.UnmarshalJSON(raw)
	}
	if err != nil {
		s.Fatalf("listing %s: %v", kind.Resource, err)
	}
	return list.Items
}

// kinds returns the CustomResourceDefinitions in the namespace's own group.
func (s *side) kinds(ctx context.Context) []unstructured.Unstructured {
	s.Helper()
	var list unstructured.UnstructuredList
	raw, err := s.admin.CoreV1().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").DoRaw(ctx)
	if err == nil {
		err = list.UnmarshalJSON(raw)
	}
	if err != nil {
		s.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		return !strings.HasSuffix(u.GetName(), "."+s.group())
	})
}

// normalize removes what always differs between two objects. Everything else has to be equal, managed fields and generation included.
func normalize(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	metadata := u.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		delete(metadata, field)
	}
	byManager := map[string]any{} // In the object they are sorted by time, to the second.
	managed, _ := metadata["managedFields"].([]any)
	for _, m := range managed {
		entry := m.(map[string]any)
		delete(entry, "time")
		if entry["subresource"] != "status" {
			byManager[fmt.Sprint(entry["manager"], entry["operation"], entry["apiVersion"])] = entry
		}
	}
	metadata["managedFields"] = byManager
	if u.GetKind() == "Service" {
		withoutAddresses(u.Object["spec"].(map[string]any))
	}
}

// withoutAddresses removes the fields of a Service that the API server chose.
func withoutAddresses(spec map[string]any) {
	if spec["clusterIP"] != corev1.ClusterIPNone {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		delete(p.(map[string]any), "nodePort")
	}
}

// status returns what `helm status` reads from the newest record, which is everything that `helm get` shows. Manifests are compared as
// objects, because kubeop formats them anew after checking them.
func (s *side) status() any {
	s.Helper()
	var r map[string]any
	if err := s.ask(s.T, s.namespace, &r, "status", "web"); err != nil {
		return err.Error() // No revision was recorded.
	}
	info := r["info"].(map[string]any)
	for _, field := range []string{"first_deployed", "last_deployed"} {
		delete(info, field)
	}
	info["description"] = why.ReplaceAllString(info["description"].(string), "")
	r["manifest"] = s.parsed(r["manifest"])
	hooks, _ := r["hooks"].([]any)
	r["ran"] = ran(hooks)
	for _, h := range hooks {
		hook := h.(map[string]any)
		hook["manifest"] = s.parsed(hook["manifest"])
		last := hook["last_run"].(map[string]any)
		delete(last, "started_at")
		delete(last, "completed_at")
	}
	return r
}

// kubeop has its own texts for why a revision failed; testdata/messages.golden lists them.
var why = regexp.MustCompile(`(?s)failed: .*`)

// ran returns the hooks in the order in which they ran.
func ran(hooks []any) []string {
	names := map[string]string{}
	for i, h := range hooks {
		hook := h.(map[string]any)
		if started := hook["last_run"].(map[string]any)["started_at"].(string); started != "" {
			names[fmt.Sprint(started, " ", i)] = fmt.Sprint(hook["kind"], "/", hook["name"])
		}
	}
	var out []string
	for _, started := range slices.Sorted(maps.Keys(names)) {
		out = append(out, names[started])
	}
	return out
}

// parsed reads a manifest: each object with the template it came from.
func (s *side) parsed(recorded any) any {
	s.Helper()
	text, _ := recorded.(string)
	docs, err := manifest.Parse(text)
	if err != nil {
		s.Fatal(err)
	}
	var out []any
	for _, d := range docs {
		for _, o := range d.Objects {
			out = append(out, map[string]any{"source": d.Source, "object": o.Object})
		}
	}
	return out
}

// history returns what `helm history` reads.
func (s *side) history() any {
	s.Helper()
	var revisions []map[string]any
	if err := s.ask(s.T, s.namespace, &revisions, "history", "web"); err != nil {
		return err.Error()
	}
	for _, r := range revisions {
		delete(r, "updated")
		r["description"] = why.ReplaceAllString(r["description"].(string), "")
	}
	return revisions
}
