// Package cluster handles the objects of one release in the cluster, with the rights of the release's user: it creates, changes, adopts,
// compares and deletes them, and waits for them. The result in the cluster is the same as with the helm command.
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

// Client is the Kubernetes client for Helm's actions. Its result in the cluster is the same as with Helm's own client, but it sends fewer
// requests, and its errors name the object and keep their type. It embeds Helm's client, because Helm asserts the client's other
// interfaces.
type Client struct {
	*kube.Client
	// Faults collects the errors of its requests.
	Faults  fault.Faults
	Terms   Terms
	Release Objects
	kinds   *Kinds
	rest    *restClients
	// operator returns clients with the operator's rights, to read cluster-scoped objects that the user may not read any more. They write
	// nothing.
	operator func() (*restClients, error)
	clock    clock.WithTicker
	// Explain returns why an object is not ready, without its name; nil gives no explanations.
	Explain  func(context.Context, *unstructured.Unstructured) string
	deleting []error
	// Sent are the objects of the release, without hooks, that the action created, changed, or found to be already as wanted.
	Sent map[manifest.Identity]Applied
	// owned lists, by the UID of their owner, the claims with data that would be deleted with an object.
	owned func(context.Context) (map[types.UID][]string, error)
	// hooked are the UIDs of the hooks that this action created. Hooks do not have the release's annotations.
	hooked map[types.UID]bool
}

// Terms are the settings of one action. The zero value is safe.
type Terms struct {
	// Lenient ignores fields that the API server does not know. If false, they cause a warning.
	Lenient bool
	// Force deletes and recreates objects that cannot be changed.
	Force bool
	// TakeOwnership adopts objects that belong to no release, or to another one.
	TakeOwnership bool
	// ReadFirst: objects that the previous manifest does not have may exist nevertheless, so each is read before it is created.
	ReadFirst bool
	// Wary: the objects come from a failed revision, so some of them may not belong to this release.
	Wary bool
	// Ran are the hooks that earlier revisions ran. App is the app in the hooks' label.
	Ran map[manifest.Identity]bool
	App string
	// Timeout limits the wait for an object that Force deleted. Default 5 minutes. TimeoutField is the field of the App with the timeout of
	// the action, for messages; "" if there is none.
	Timeout      time.Duration
	TimeoutField string
	// Unmoved reports that the live object is exactly what applying this object of the original manifest left. Nil: unknown.
	Unmoved func(*unstructured.Unstructured) bool
	// Idle runs a function that only waits, possibly several at once. With nil, the function is just called.
	Idle func(func() error) error
	// Superseded is closed when a newer input makes waiting for objects unnecessary.
	Superseded <-chan struct{}
}

// whileIdle runs f, which only waits, with Terms.Idle.
func (c *Client) whileIdle(f func() error) error {
	if c.Terms.Idle == nil {
		return f()
	}
	return c.Terms.Idle(f)
}

// IsReachable makes no request, because storage was just read.
func (c *Client) IsReachable() error { return nil }

// Build parses a manifest and leaves validation to the API server. Manifests that Helm does not validate, such as an earlier one or a hook
// to delete, may have kinds that the cluster no longer serves. Such objects are left out, or used in a version that is served, because
// otherwise nothing could be changed any more. The infos' Get reports "not found" without a request until one of this client's methods uses
// them: Helm checks whether each object exists before it creates any, and Create finds that out without extra requests.
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

// info returns the info of an object, and sets the namespace of a namespaced object.
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

// formerly returns the info of an object whose version is not served, with another version; nil if its kind is gone.
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

// restClients are the clients of one user, one for each group and version.
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

// WarningPrefix is the beginning of a log line with a warning.
const WarningPrefix = "warning of the API server: "

// warnings adds the API server's warnings to Helm's log.
type warnings struct{ *Client }

// HandleWarningHeader logs a warning, for example that a kind will be removed.
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

// requestless is a client whose Get reports "not found" without a request.
type requestless struct{ resource.RESTClient }

// Get returns a request that fails while it is built, so that no request is sent or counted. Helm sees a 404.
func (requestless) Get() *rest.Request {
	content := rest.ClientContentConfig{Negotiator: nothing{}}
	return rest.NewRequestWithClient(&url.URL{}, "", content, nil).Body(&metav1.Status{})
}

// nothing is the negotiator of a request that is never sent.
type nothing struct{ runtime.ClientNegotiator }

// Encoder fails the request.
func (nothing) Encoder(string, map[string]string) (runtime.Encoder, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "what was not requested")
}

// withClient sets the real client of the infos.
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

// named adds the object's name to an error whose text does not have it. Nothing depends on the result but the message.
func named(info *resource.Info, err error) error {
	if err == nil || strings.Contains(err.Error(), strconv.Quote(info.Name)) || strings.Contains(err.Error(), nameOf(info)) {
		return err
	}
	return fmt.Errorf("%s: %w", nameOf(info), err)
}

func nameOf(info *resource.Info) string { return info.Mapping.GroupVersionKind.Kind + "/" + info.Name }

// GetPodList returns no pods, so Helm cannot copy the logs of hooks anywhere.
func (c *Client) GetPodList(string, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{}, nil
}

// build builds the infos of the objects of a manifest.
func build(client kube.Interface, docs []manifest.Document) (kube.ResourceList, error) {
	text, err := manifest.Write(docs)
	if err != nil {
		return nil, err
	}
	list, err := client.Build(bytes.NewBufferString(text), false)
	return withClient(list), err
}
