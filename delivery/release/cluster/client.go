// Package cluster works on the objects of one release in the cluster, as the release's user: it creates, changes, adopts, compares, waits for
// and deletes them. What it leaves there is what the helm command leaves.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// Client is what Helm's actions work on the cluster with: what they leave there is what Helm's own client leaves, for
// fewer requests and with errors that name the object and keep their type. It embeds Helm's: Helm asserts its other
// interfaces.
type Client struct {
	*kube.Client
	// Faults are the errors of its requests.
	Faults  fault.Faults
	Terms   Terms
	Release Objects
	kinds   *Kinds
	rest    *restClients
	// operator looks at cluster-scoped objects that the user may not look at any more. It writes nothing.
	operator func() (*restClients, error)
	clock    clock.WithTicker
	// Explain returns why an object is not ready; nil: no explanations.
	Explain  func(context.Context, *unstructured.Unstructured) string
	deleting []error
	// Sent are the objects of the release that the action created, changed or found as they should be; no hooks.
	Sent map[manifest.Identity]Applied
	// owned names for objects, by UID, the claims with data that would go with them.
	owned func(context.Context) (map[types.UID][]string, error)
	// hooked are the UIDs of the hooks that this action created; they carry no marks of the release.
	hooked map[types.UID]bool
}

// Terms are the settings of one action. The zero value is safe.
type Terms struct {
	// Lenient says nothing of fields that the API server does not know; else it warns of them.
	Lenient bool
	// Force deletes and makes anew what cannot be changed.
	Force bool
	// TakeOwnership adopts what belongs to no release or to another one.
	TakeOwnership bool
	// Wary: the objects come from a failed revision, so some of them may belong to others.
	Wary bool
	// Ran are the hooks that earlier revisions ran, and app is whom hooks are labeled with.
	Ran map[manifest.Identity]bool
	App string
	// Timeout bounds the waiting for an object that force deleted. Default 5 minutes.
	Timeout time.Duration
	// Unmoved reports that the live object is exactly what applying this object of the original manifest left. Nil: unknown.
	Unmoved func(*unstructured.Unstructured) bool
	// Idle runs what only waits, several such things at once maybe. Nil: it is just called.
	Idle func(func() error) error
	// Superseded is closed when a newer input makes waiting for objects pointless.
	Superseded <-chan struct{}
}

// whileIdle runs f as something that waits.
func (c *Client) whileIdle(f func() error) error {
	if c.Terms.Idle == nil {
		return f()
	}
	return c.Terms.Idle(f)
}

// IsReachable makes no request, because storage was just read.
func (c *Client) IsReachable() error { return nil }

// Build reads a manifest and leaves validation to the API server. Manifests that Helm would not validate, an earlier one or a hook to
// delete, may have kinds that the cluster no longer serves: they are left out, or used at a version that it serves, because otherwise
// nothing could be changed any more. The infos' Get finds nothing and makes no request until one of this client's methods works on them:
// Helm checks whether each object exists before it creates any, and Create finds that out without extra requests.
func (c *Client) Build(in io.Reader, validate bool) (list kube.ResourceList, err error) {
	defer fault.Recovered("reading the manifest", &err)
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	docs, err := manifest.Parse(string(text))
	if err != nil {
		return nil, err
	}
	var failed error
	for _, u := range manifest.Objects(docs) {
		info, err := c.info(u)
		if !validate && meta.IsNoMatchError(err) {
			info, err = c.formerly(u)
		}
		if err != nil {
			failed = fault.Join(failed, c.Faults.Note(err))
			continue
		}
		if info == nil {
			c.Log("%s %s/%s is left alone: the cluster serves no such kind", u.GetAPIVersion(), u.GetKind(), u.GetName())
			continue
		}
		info.Client = requestless{info.Client}
		list = append(list, info)
	}
	if failed != nil {
		return nil, failed
	}
	return list, nil
}

// info says where an object belongs, and gives a namespaced one its namespace.
func (c *Client) info(u *unstructured.Unstructured) (*resource.Info, error) {
	kind := u.GroupVersionKind()
	if u.GetName() == "" && u.GetGenerateName() == "" {
		return nil, fault.Render(fmt.Errorf("a %s has no name", kind.Kind))
	}
	mapping, err := c.kinds.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", kind.Kind, u.GetName(), err)
	}
	return c.infoAs(u, mapping)
}

// formerly returns the info of an object with a version that is not served: with another version, or nil when its kind is gone.
func (c *Client) formerly(u *unstructured.Unstructured) (*resource.Info, error) {
	kind := u.GroupVersionKind()
	mapping, err := c.kinds.mapper.RESTMapping(kind.GroupKind())
	if err == nil {
		return c.infoAs(u, mapping)
	}
	if !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s/%s: %w", kind.Kind, u.GetName(), err)
	}
	// Discovery distinguishes a removed kind from one with an unavailable API server.
	_, err = c.kinds.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, memory.ErrCacheNotFound) {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("asking whether %s is served: %v", kind.GroupVersion(), err))
	}
	return nil, nil
}

func (c *Client) infoAs(u *unstructured.Unstructured, mapping *meta.RESTMapping) (*resource.Info, error) {
	client, err := c.rest.of(mapping.GroupVersionKind.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", u.GetKind(), u.GetName(), err)
	}
	info := &resource.Info{Client: client, Mapping: mapping, Name: u.GetName(), Object: u}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if u.GetNamespace() == "" {
			u.SetNamespace(c.Release.Release.Namespace)
		}
		info.Namespace = u.GetNamespace()
	}
	return info, nil
}

// restClients are one user's clients, one for each group and version.
type restClients struct {
	config *rest.Config
	http   *http.Client
	mu     sync.Mutex
	known  map[schema.GroupVersion]*rest.RESTClient
}

func newRESTClients(config *rest.Config) (*restClients, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &restClients{config: config, http: client, known: map[schema.GroupVersion]*rest.RESTClient{}}, nil
}

// WarningPrefix begins a line about a warning.
const WarningPrefix = "warning of the API server: "

// warnings puts the API server's warnings among Helm's messages.
type warnings struct{ *Client }

// HandleWarningHeader logs a warning, such as that of a kind which will be gone.
func (w warnings) HandleWarningHeader(_ int, _, text string) {
	w.Log(WarningPrefix+"%s", text)
}

func (r *restClients) of(gv schema.GroupVersion) (*rest.RESTClient, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if client, ok := r.known[gv]; ok {
		return client, nil
	}
	config := rest.CopyConfig(r.config)
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(config, r.http)
	if err != nil {
		return nil, err
	}
	r.known[gv] = client
	return client, nil
}

// requestless is a client; its Get finds nothing without a request.
type requestless struct{ resource.RESTClient }

// Get answers 404 without a request. Building the request fails, so that none is made and none is counted.
func (requestless) Get() *rest.Request {
	content := rest.ClientContentConfig{Negotiator: nothing{}}
	return rest.NewRequestWithClient(&url.URL{}, "", content, nil).Body(&metav1.Status{})
}

// nothing is the negotiator of a request that is never made.
type nothing struct{ runtime.ClientNegotiator }

// Encoder fails the request.
func (nothing) Encoder(string, map[string]string) (runtime.Encoder, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "what was not requested")
}

// withClient gives the infos their real client.
func withClient(list kube.ResourceList) kube.ResourceList {
	for _, info := range list {
		if c, ok := info.Client.(requestless); ok {
			info.Client = c.RESTClient
		}
	}
	return list
}

func helper(info *resource.Info) *resource.Helper {
	return resource.NewHelper(info.Client, info.Mapping).WithFieldManager(fieldManager)
}

// named adds the object's name to an error that lacks it.
func named(info *resource.Info, err error) error {
	if err == nil || strings.Contains(err.Error(), strconv.Quote(info.Name)) || strings.Contains(err.Error(), nameOf(info)) {
		return err
	}
	return fmt.Errorf("%s: %w", nameOf(info), err)
}

func nameOf(info *resource.Info) string { return info.Mapping.GroupVersionKind.Kind + "/" + info.Name }

// GetPodList finds none: Helm's way of showing the logs of hooks goes nowhere.
func (c *Client) GetPodList(string, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{}, nil
}

// build reads objects of a manifest for the client.
func build(client kube.Interface, docs []manifest.Document) (kube.ResourceList, error) {
	text, err := manifest.Write(docs)
	if err != nil {
		return nil, err
	}
	list, err := client.Build(bytes.NewBufferString(text), false)
	return withClient(list), err
}
