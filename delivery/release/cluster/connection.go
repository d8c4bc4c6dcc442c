package cluster

import (
	"context"
	"io"
	"net/http"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// fieldManager is the helm command's: fields stay with one manager when a person's helm works on the same release.
const fieldManager = "helm"

// Helm names the field manager once for the process; its default is the name of the binary.
func init() { kube.ManagedFieldsManager = fieldManager }

// Connection is a namespace as one user sees it.
type Connection struct {
	// Secrets are where the records of releases are.
	Secrets typedcorev1.SecretInterface
	Client  *Client
	Getter  action.RESTClientGetter
	Kinds   *Kinds
}

// Options of a connection.
type Options struct {
	// User reaches the API server as the user of the release, Operator as the operator, who looks at cluster-scoped objects that the
	// user may not look at any more.
	User, Operator *rest.Config
	// Kinds are shared by all connections.
	Kinds *Kinds
	// Release that is worked on, the label value of its app, and whether that is one of the platform itself.
	Release  types.NamespacedName
	App      string
	Platform bool
	// Explain returns why an object is not ready. Nil: no explanations.
	Explain func(context.Context, *unstructured.Unstructured) string
	// Owned names for objects, by UID, the claims with data that would go with them.
	Owned func(context.Context) (map[types.UID][]string, error)
	// Log gets what the client and Helm say.
	Log func(format string, args ...any)
}

// Connect makes a connection. It makes no request.
func Connect(o Options) (*Connection, error) {
	config := rest.CopyConfig(o.User)
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := typedcorev1.NewForConfig(binary)
	if err != nil {
		return nil, err
	}
	client := &Client{
		kinds: o.Kinds, clock: clock.RealClock{}, Explain: o.Explain, owned: o.Owned,
		Sent: map[manifest.Identity]Applied{}, hooked: map[types.UID]bool{},
	}
	config.WarningHandler = warnings{client}
	if client.rest, err = newRESTClients(config); err != nil {
		return nil, err
	}
	client.Release = Objects{Client: client, Release: o.Release, App: o.App, Platform: o.Platform}
	client.operator = sync.OnceValues(func() (*restClients, error) {
		own := rest.CopyConfig(o.Operator)
		own.QPS = -1
		return newRESTClients(own)
	})
	g := &getter{config: rest.CopyConfig(config), namespace: o.Release.Namespace, kinds: o.Kinds}
	g.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return client.Faults.Witness(next) })
	client.Client = kube.New(g)
	client.Namespace = o.Release.Namespace
	client.Log = o.Log
	return &Connection{
		Kinds:   o.Kinds,
		Secrets: core.Secrets(o.Release.Namespace),
		Client:  client,
		Getter:  g,
	}, nil
}

// Configuration is what Helm's actions work with. Capabilities are given, or Helm would throw the shared discovery away.
func (c *Connection) Configuration(d driver.Driver) (*action.Configuration, error) {
	caps, err := c.Kinds.Capabilities()
	if err != nil {
		return nil, err
	}
	return &action.Configuration{
		RESTClientGetter: c.Getter,
		Releases:         storage.Init(d),
		KubeClient:       c.Client,
		Capabilities:     caps,
		Log:              c.Client.Log,
		HookOutputFunc:   func(_, _, _ string) io.Writer { return io.Discard },
	}, nil
}

// getter gives clients to Helm.
type getter struct {
	config    *rest.Config
	namespace string
	kinds     *Kinds
}

// ToRESTConfig returns a copy, because Helm changes what it gets.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient returns the shared client.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.kinds.discovery, nil
}

// ToRESTMapper returns the shared mapper.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.kinds.mapper, nil }

// ToRawKubeConfigLoader returns the namespace; Helm uses it for nothing else.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	override := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), override)
}
