package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/delivery/crd"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// fakeAPI is an API server with at most one object, of a built-in kind. It creates, patches and deletes the object and counts its versions.
type fakeAPI struct {
	mu sync.Mutex
	// live is nil if there is no object.
	live *unstructured.Unstructured
	// fails are the errors of requests, by their name in requests. Each occurs once, if once has its name.
	fails map[string]*apierrors.StatusError
	once  map[string]bool
	// written is called with each change before it is stored, as by another writer or a webhook.
	written func(request string, live *unstructured.Unstructured)
	// read is called before the object is read for the n-th time, from 1.
	read func(n int)
	// watches are the events that one watch after the other sends before it ends.
	watches [][]string
	// requests are the names of the requests so far: the method, or WATCH, and whether it was a dry-run. queries are theirs.
	requests []string
	queries  []url.Values
	reads    int
	// fresh: each creation makes another object.
	fresh bool
	// propagation is that of the last deletion.
	propagation metav1.DeletionPropagation
}

// RoundTrip implements http.RoundTripper.
func (a *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, query := r.Method, r.URL.Query()
	switch {
	case query.Get("watch") != "":
		name = "WATCH"
	case query.Get("dryRun") != "":
		name += " dry-run"
	}
	a.requests, a.queries = append(a.requests, name), append(a.queries, query)
	if name == http.MethodGet && a.read != nil {
		a.reads++
		a.read(a.reads)
	}
	if failed := a.fails[name]; failed != nil {
		if a.once[name] {
			delete(a.fails, name)
		}
		return refusal(r, failed)
	}
	if name == "WATCH" {
		events := ""
		if len(a.watches) > 0 {
			events, a.watches = strings.Join(a.watches[0], "\n"), a.watches[1:]
		}
		return response(r, http.StatusOK, []byte(events)), nil
	}
	o, failed := a.act(r, name)
	if failed != nil {
		return refusal(r, failed)
	}
	return answer(r, http.StatusOK, o)
}

func (a *fakeAPI) act(r *http.Request, name string) (any, *apierrors.StatusError) {
	kind := schema.GroupResource{Resource: "objects"}
	if a.fresh && r.Method == http.MethodPost {
		a.live = nil
	}
	switch method := r.Method; {
	case a.live == nil && method != http.MethodPost:
		return nil, apierrors.NewNotFound(kind, "a")
	case a.live != nil && method == http.MethodPost:
		return nil, apierrors.NewAlreadyExists(kind, "a")
	case method == http.MethodGet:
		return a.live, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if r.Method == http.MethodDelete {
		options := metav1.DeleteOptions{}
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if want := options.Preconditions; want != nil && want.UID != nil && *want.UID != a.live.GetUID() {
			return nil, apierrors.NewConflict(kind, "a", nil)
		}
		if options.PropagationPolicy != nil {
			a.propagation = *options.PropagationPolicy
		}
		a.live = nil
		return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
	}
	return a.write(name, body)
}

// write creates or patches the object; a dry-run does not store it.
func (a *fakeAPI) write(name string, body []byte) (any, *apierrors.StatusError) {
	out, version := &unstructured.Unstructured{}, 0
	if a.live != nil {
		version, _ = strconv.Atoi(a.live.GetResourceVersion())
		before, err := a.live.MarshalJSON()
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		typed, err := builtIn().New(a.live.GroupVersionKind())
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if body, err = strategicpatch.StrategicMergePatch(before, body, typed); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if err := out.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if a.live == nil {
		out.SetUID("new")
	}
	dry := strings.HasSuffix(name, " dry-run")
	if !dry {
		version++
	}
	out.SetResourceVersion(strconv.Itoa(version))
	if a.written != nil {
		a.written(name, out)
	}
	if !dry {
		a.live = out
	}
	return out, nil
}

func refusal(r *http.Request, failed *apierrors.StatusError) (*http.Response, error) {
	status := failed.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	return answer(r, int(status.Code), status)
}

func answer(r *http.Request, code int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	return response(r, code, text), err
}

func response(r *http.Request, code int, body []byte) *http.Response {
	return &http.Response{StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}
}

// client returns a Client for release web of app web of project shop of tenant acme. Its pauses end at once.
func (a *fakeAPI) client(t *testing.T) *Client {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	for kind, version := range map[string]string{"ConfigMap": "v1", "PersistentVolumeClaim": "v1", "Secret": "v1", "Pod": "v1", "Service": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"} {
		mapper.Add(schema.FromAPIVersionAndKind(version, kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(crd.Kind, meta.RESTScopeRoot)
	c := &Client{
		Client: &kube.Client{Log: t.Logf},
		Terms:  Terms{App: "web", Ran: map[manifest.Identity]bool{}},
		kinds:  NewKinds(discovered{}, mapper),
		rest:   &restClients{config: &rest.Config{Host: "http://api.test", QPS: -1}, http: &http.Client{Transport: a}, known: map[schema.GroupVersion]*rest.RESTClient{}},
		clock:  &pauses{},
		owned:  ownedBy("", nil),
		Sent:   map[manifest.Identity]Applied{},
		hooked: map[types.UID]bool{},
	}
	c.Release = Objects{Client: c, Release: types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}, App: "web"}
	return c
}

// ownedBy returns what lists the claims with data that go with the object of a UID.
func ownedBy(uid types.UID, claims []string) func(context.Context) (map[types.UID][]string, error) {
	return func(context.Context) (map[types.UID][]string, error) { return map[types.UID][]string{uid: claims}, nil }
}

// target returns what the client knows of an object.
func target(t *testing.T, c *Client, o *unstructured.Unstructured) *resource.Info {
	t.Helper()
	info, err := c.info(o)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
