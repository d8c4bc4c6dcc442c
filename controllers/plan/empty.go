package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Empty returns a connection to a cluster without objects, of the Kubernetes version of this program's libraries. It is a function in this
// process: it serves the kinds that every cluster with kubeop serves, finds no object, and refuses to write.
func Empty() (*rest.Config, error) {
	served, err := newEmpty()
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: "http://empty.invalid", Transport: served, QPS: -1}, nil
}

// minor is the minor version of Kubernetes. It is that of the client library, whose version is v0.<minor>.
const minor = "37"

// empty implements http.RoundTripper.
type empty struct {
	version version.Info
	groups  metav1.APIGroupList
	// resources by group and version, such as "v1" and "apps/v1".
	resources map[string]*metav1.APIResourceList
}

// stable are the versions that are no alpha or beta.
var stable = regexp.MustCompile(`^v[0-9]+$`)

func newEmpty() (*empty, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("collecting the kinds of Kubernetes: %w", err)
	}
	e := &empty{version: version.Info{Major: "1", Minor: minor, GitVersion: "v1." + minor + ".0"}, resources: map[string]*metav1.APIResourceList{}}
	for kind := range scheme.AllKnownTypes() {
		e.add(scheme, kind)
	}
	for served, list := range e.resources {
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		group, version, named := strings.Cut(served, "/")
		if !named {
			continue
		}
		about := metav1.GroupVersionForDiscovery{GroupVersion: served, Version: version}
		i := slices.IndexFunc(e.groups.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
		if i < 0 {
			i, e.groups.Groups = len(e.groups.Groups), append(e.groups.Groups, metav1.APIGroup{Name: group})
		}
		g := &e.groups.Groups[i]
		g.Versions = append(g.Versions, about)
		slices.SortFunc(g.Versions, func(a, b metav1.GroupVersionForDiscovery) int { return strings.Compare(b.Version, a.Version) })
		g.PreferredVersion = g.Versions[0]
	}
	return e, nil
}

// add serves a kind, if it is one of objects that clusters keep.
func (e *empty) add(scheme *runtime.Scheme, kind schema.GroupVersionKind) {
	object, err := scheme.New(kind)
	if _, isObject := object.(metav1.Object); err != nil || !isObject || !served(kind) || slices.Contains(notKept, kind.Kind) {
		return
	}
	in := kind.GroupVersion().String()
	if e.resources[in] == nil {
		e.resources[in] = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: in}
	}
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	if slices.Contains(plurals, kind.Kind) {
		plural = singular
	}
	e.resources[in].APIResources = append(e.resources[in].APIResources, metav1.APIResource{
		Name: plural.Resource, SingularName: singular.Resource, Namespaced: !slices.Contains(clusterScoped, kind.Kind), Kind: kind.Kind,
		Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
	})
}

// served reports whether clusters with kubeop serve the version of a kind without being asked to.
func served(kind schema.GroupVersionKind) bool {
	return stable.MatchString(kind.Version) || kind.GroupVersion() == v1alpha1.GroupVersion
}

// plurals are the kinds whose name is a plural already.
var plurals = []string{"Endpoints", "Guardrails"}

// clusterScoped are the kinds without a namespace. Tests compare those of Kubernetes with those of an API server, and those of kubeop with its
// CustomResourceDefinitions.
var clusterScoped = []string{
	"CSIDriver", "CSINode", "CertificateSigningRequest", "Cluster", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "ComponentStatus", "CustomResourceDefinition",
	"DeviceClass", "DeviceTaintRule", "FlowSchema", "HostnameClaim", "IPAddress", "IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
	"Namespace", "Node", "PersistentVolume", "Policy", "PriceList", "PriorityClass", "PriorityLevelConfiguration", "Registry", "Repository", "ResourceSlice", "RuntimeClass", "ServiceCIDR", "StorageClass",
	"StorageVersionMigration", "Tenant",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
}

// notKept are kinds with metadata that the API server answers and does not keep.
var notKept = []string{
	"Binding", "Eviction", "LocalSubjectAccessReview", "PodStatusResult", "RangeAllocation", "Scale", "SelfSubjectAccessReview", "SelfSubjectReview",
	"SelfSubjectRulesReview", "SubjectAccessReview", "TokenRequest", "TokenReview",
}

// RoundTrip answers a request.
func (e *empty) RoundTrip(r *http.Request) (*http.Response, error) {
	code, answer := http.StatusOK, e.discovery(strings.Trim(r.URL.Path, "/"))
	switch parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case r.Method != http.MethodGet:
		code, answer = http.StatusMethodNotAllowed, status(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, r)
	case answer != nil:
	case e.collection(parts):
		answer = map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}}
	default:
		missing := status(http.StatusNotFound, metav1.StatusReasonNotFound, r)
		if last := len(parts) - 1; last > 0 && e.collection(parts[:last]) {
			missing.Details = &metav1.StatusDetails{Name: parts[last]} // By the name, clients know that the kind is served.
		}
		code, answer = http.StatusNotFound, missing
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("answering %s: %w", r.URL.Path, err)
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// discovery returns the answer to a request about the served kinds; nil for another request.
func (e *empty) discovery(path string) any {
	switch path {
	case "version":
		return e.version
	case "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case "apis":
		list := e.groups
		list.TypeMeta = metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}
		return list
	}
	for _, prefix := range []string{"api/", "apis/"} {
		if served, ok := strings.CutPrefix(path, prefix); ok {
			if list := e.resources[served]; list != nil {
				return list
			}
		}
	}
	return nil
}

// collection reports whether a path names the objects of a kind, in all namespaces or in one.
func (e *empty) collection(parts []string) bool {
	if parts[0] == "api" {
		parts = parts[min(2, len(parts)):]
	} else {
		parts = parts[min(3, len(parts)):]
	}
	return len(parts) == 1 || len(parts) == 3 && parts[0] == "namespaces"
}

func status(code int32, reason metav1.StatusReason, r *http.Request) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: "an empty cluster has no answer to " + r.Method + " " + r.URL.Path,
	}
}
