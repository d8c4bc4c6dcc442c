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

// fieldManager is the name that the helm command uses, so that fields keep their manager when a person runs helm on the same release.
const fieldManager = "helm"

// Helm has one field manager for the whole process; its default is the name of the binary.
func init() { kube.ManagedFieldsManager = fieldManager }

// Connection gives access to a namespace with the rights of one user.
type Connection struct {
	// Secrets are the Secrets with the records of releases.
	Secrets typedcorev1.SecretInterface
	Client  *Client
	Getter  action.RESTClientGetter
	Kinds   *Kinds
}

// Options of a connection.
type Options struct {
	// User is the connection with the rights of the release's user. Operator is the connection as the operator, to read cluster-scoped
	// objects that the user may not read any more.
	User, Operator *rest.Config
	// Kinds are shared by all connections.
	Kinds *Kinds
	// Release is the release, App the label value of its app, and Platform whether that is an app of the platform itself.
	Release  types.NamespacedName
	App      string
	Platform bool
	// Explain returns why an object is not ready, without its name. Nil gives no explanations.
	Explain func(context.Context, *unstructured.Unstructured) string
	// Owned lists, by the UID of their owner, the claims with data that would be deleted with an object.
	Owned func(context.Context) (map[types.UID][]string, error)
	// Log receives the log lines of the client and of Helm.
	Log func(format string, args ...any)
}

// Connect returns a connection. It sends no request.
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

// Configuration returns the configuration for Helm's actions. It has Capabilities, because Helm would otherwise invalidate the shared
// discovery.
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

// getter provides Helm with clients.
type getter struct {
	config    *rest.Config
	namespace string
	kinds     *Kinds
}

// ToRESTConfig returns a copy, because Helm changes the configuration.
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
