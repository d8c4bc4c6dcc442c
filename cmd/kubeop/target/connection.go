// Package target connects to a cluster as kubectl does, or to a manager, and finds the objects that arguments name.
package target

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Connection is the cluster of the kubeconfig, with the rights of the person who calls, and the tenant and project that the person works in.
type Connection struct {
	// Flags are those of kubectl.
	Flags *genericclioptions.ConfigFlags
	// Tenant and Project are the flags --tenant and --project. Empty: those of the namespace.
	Tenant, Project string
	// Server and ServerCA are the flags --server and --server-ca. Empty: those of the environment.
	Server, ServerCA string
	// All says that the command is about the objects of all tenants, whatever the flags and the namespace name.
	All bool
}

// New returns a connection without settings.
func New() *Connection {
	flags := genericclioptions.NewConfigFlags(true)
	flags.APIServer = nil // --server names a manager.
	return &Connection{Flags: flags}
}

// AddFlags adds the flags that choose the cluster, the user and the tenant. The flags of kubectl that only few people need are hidden; they work.
func (c *Connection) AddFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&c.Tenant, "tenant", "t", "", "tenant (default: that of the namespace)")
	flags.StringVarP(&c.Project, "project", "p", "", "project (default: that of the namespace)")
	flags.StringVar(&c.Server, "server", "", "URL of a manager, to read through its API (default: KUBEOP_SERVER, or else the cluster is read)")
	flags.StringVar(&c.ServerCA, "server-ca", "", "file with authorities of the manager's certificate, besides those of the system (default: KUBEOP_SERVER_CA)")
	kubectl := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	c.Flags.AddFlags(kubectl)
	kubectl.VisitAll(func(f *pflag.Flag) {
		f.Usage, f.Hidden = shown[f.Name], shown[f.Name] == ""
		flags.AddFlag(f)
	})
}

// shown are the flags of kubectl that --help shows.
var shown = map[string]string{
	"kubeconfig":      "kubeconfig file (default: that of KUBECONFIG, or ~/.kube/config)",
	"context":         "context of the kubeconfig (default: its current one)",
	"namespace":       "namespace (default: that of the context)",
	"as":              "user to impersonate",
	"request-timeout": "how long one request may take, such as 30s; 0 for no limit",
}

// Config returns the configuration of requests to the API server. With a manager there is none: a command that asks for it reads what the management API does not return.
func (c *Connection) Config() (*rest.Config, error) {
	manager, err := c.Manager()
	switch {
	case err != nil:
		return nil, err
	case manager.Server != "":
		// The URL is not repeated: it may have a password, which is refused only when it is used.
		return nil, errors.New("this needs the cluster itself, because the management API does not do it: leave out --server, and unset KUBEOP_SERVER")
	}
	config, err := c.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// A person's command sends few requests; the API server's own flow control is the limit.
	config.QPS, config.Burst = -1, -1
	return config, nil
}

// Client returns a client without a cache.
func (c *Connection) Client() (client.WithWatch, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	found, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return found, nil
}

// Read reads an object that arguments name.
func (c *Connection) Read(ctx context.Context, of Object) (client.Object, error) {
	reader, err := c.Client()
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, reader, of)
}

// Get is Read for a caller that has a client.
func (c *Connection) Get(ctx context.Context, reader client.Reader, of Object) (client.Object, error) {
	object := of.Kind.New()
	if err := reader.Get(ctx, of.Key(), object); err != nil {
		return nil, fmt.Errorf("reading the %s: %w", of, err)
	}
	return object, nil
}
