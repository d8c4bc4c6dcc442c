package release

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
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

	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// fieldManager is the helm command's: fields stay with one manager when a person's helm works on the same release.
const fieldManager = "helm"

// helmVersion is what charts are told, as the helm command of this version tells them: go.mod's. The SDK by itself knows no
// more than "v3.22".
const helmVersion = "v3.22.0"

// Helm names the field manager once for the process; its default is the name of the binary.
func init() { kube.ManagedFieldsManager = fieldManager }

// connection is a namespace as one user sees it.
type connection struct {
	namespace string
	// secrets are where the records of releases are.
	secrets typedcorev1.SecretInterface
	client  *helmClient
	getter  action.RESTClientGetter
}

// connect makes a connection of the request's user. It makes no request.
func (e *Engine) connect(req Request) (*connection, error) {
	config := e.impersonated(req)
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := typedcorev1.NewForConfig(binary)
	if err != nil {
		return nil, fmt.Errorf("connecting as %s: %w", req.User, err)
	}
	client := &helmClient{
		mapper: e.opts.Mapper, discovery: e.opts.Discovery, clock: clock.RealClock{}, explain: e.explainer(req), owned: req.Owned,
		sent: map[manifest.Identity]Applied{}, hooked: map[types.UID]bool{},
	}
	config.WarningHandler = warnings{client}
	if client.rest, err = newRESTClients(config); err != nil {
		return nil, fmt.Errorf("connecting as %s: %w", req.User, err)
	}
	client.release = objects{client: client, release: req.key(), app: decide.LabelValue(req.App.Name)}
	client.operator = sync.OnceValues(func() (*restClients, error) {
		own := rest.CopyConfig(e.opts.Config)
		own.QPS = -1
		return newRESTClients(own)
	})
	g := &getter{config: rest.CopyConfig(config), namespace: req.Namespace, discovery: e.opts.Discovery, mapper: e.opts.Mapper}
	g.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return client.faults.Witness(next) })
	client.Client = kube.New(g)
	client.Namespace = req.Namespace
	client.Log = e.logf
	return &connection{
		namespace: req.Namespace,
		secrets:   core.Secrets(req.Namespace),
		client:    client,
		getter:    g,
	}, nil
}

// explainer says what ails the request's objects; nil when nobody can.
func (e *Engine) explainer(req Request) func(context.Context, *unstructured.Unstructured) string {
	if e.opts.Explain == nil {
		return nil
	}
	hide := mask.Of(req.Sensitive)
	return func(ctx context.Context, u *unstructured.Unstructured) string {
		return e.opts.Explain(ctx, req.Namespace, hide, u)
	}
}

// impersonated is how the API server is reached as the request's user, through the fence of the action if there is one.
func (e *Engine) impersonated(req Request) *rest.Config {
	config := rest.CopyConfig(e.opts.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: req.User}
	config.QPS = -1
	if req.fence != nil {
		config.Wrap(req.fence.Wrap)
	}
	return config
}

// configuration is what Helm's actions work with. Capabilities are given, or Helm would throw the shared discovery away.
func (e *Engine) configuration(c *connection, d driver.Driver) (*action.Configuration, error) {
	caps, err := e.capabilities()
	if err != nil {
		return nil, err
	}
	return &action.Configuration{
		RESTClientGetter: c.getter,
		Releases:         storage.Init(d),
		KubeClient:       c.client,
		Capabilities:     caps,
		Log:              e.logf,
		HookOutputFunc:   func(_, _, _ string) io.Writer { return io.Discard },
	}, nil
}

// capabilities are asked for once until Refresh: actions only read them. What discovery holds costs no request; what an
// aggregated API server that is away would add is left out.
func (e *Engine) capabilities() (*chartutil.Capabilities, error) {
	e.capsMu.Lock()
	defer e.capsMu.Unlock()
	if e.caps != nil {
		return e.caps, nil
	}
	version, err := e.opts.Discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for the cluster's version: %w", err)
	}
	apis, err := action.GetVersionSet(e.opts.Discovery)
	if err != nil {
		return nil, fmt.Errorf("asking for the cluster's APIs: %w", err)
	}
	helm := chartutil.DefaultCapabilities.HelmVersion
	helm.Version = helmVersion
	e.caps = &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		APIVersions: apis,
		HelmVersion: helm,
	}
	return e.caps, nil
}

// Refresh has discovery, the mapper and the capabilities asked for anew when they are next needed. It is to be called
// when kinds came or went: CustomResourceDefinitions or APIServices changed. It makes no request.
func (e *Engine) Refresh() {
	e.capsMu.Lock()
	defer e.capsMu.Unlock()
	e.caps = nil
	e.opts.Discovery.Invalidate()
	if m, ok := e.opts.Mapper.(meta.ResettableRESTMapper); ok {
		m.Reset()
	}
}

func (e *Engine) logf(format string, args ...any) {
	if log := e.opts.Log.V(1); log.Enabled() {
		log.Info("Helm", "says", fmt.Sprintf(format, args...))
	}
}

// getter is how Helm asks for clients.
type getter struct {
	config    *rest.Config
	namespace string
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

// ToRESTConfig returns a copy, because Helm changes what it gets.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient returns the shared client.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

// ToRESTMapper returns the shared mapper.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader tells the namespace; Helm asks it for nothing else.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	override := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), override)
}

// store opens the records of one release.
func (c *connection) store(release string, m *records.Memo, now func() time.Time) records.Store {
	return records.NewStore(c.secrets, types.NamespacedName{Namespace: c.namespace, Name: release}, m, now)
}
