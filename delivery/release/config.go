package release

import (
	"context"
	"fmt"
	"io"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// fieldManager is the helm command's: fields stay with one manager when a person's helm works on the same release.
const fieldManager = "helm"

// Helm names the field manager once for the process; its default is the name of the binary.
func init() { kube.ManagedFieldsManager = fieldManager }

// connection is a namespace as one user sees it.
type connection struct {
	// secrets opens the records of releases, on a context.
	secrets func(context.Context) driver.Driver
	kube    kube.Interface
	getter  action.RESTClientGetter
}

// connect makes a connection of the request's user. It makes no request.
func (e *Engine) connect(req Request) (*connection, error) {
	config := rest.CopyConfig(e.opts.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: req.User}
	config.QPS = -1
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := typedcorev1.NewForConfig(binary)
	if err != nil {
		return nil, fmt.Errorf("connecting as %s: %w", req.User, err)
	}
	g := &getter{config: config, namespace: req.Namespace, discovery: e.opts.Discovery, mapper: e.opts.Mapper}
	client := kube.New(g)
	client.Namespace = req.Namespace
	client.Log = e.logf
	return &connection{
		secrets: func(ctx context.Context) driver.Driver {
			return driver.NewSecrets(secrets{SecretInterface: core.Secrets(req.Namespace), ctx: ctx})
		},
		kube:   &helmClient{Client: client},
		getter: g,
	}, nil
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
		KubeClient:       c.kube,
		Capabilities:     caps,
		Log:              e.logf,
		HookOutputFunc:   func(_, _, _ string) io.Writer { return io.Discard },
	}, nil
}

// capabilities are asked for once: actions only read them.
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
	e.caps = &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		APIVersions: apis,
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	return e.caps, nil
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
