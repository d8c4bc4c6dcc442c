// Package tenants runs a platform without nodes, with tenants from Git, for tests that ask the API server what it admits.
package tenants

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// stepTimeout limits each wait.
const stepTimeout = 2 * time.Minute

// Platform is a platform whose operator is a process of this machine.
type Platform struct {
	*stage.Stage
	Operator *stage.Operator

	root *stage.Repository
}

// Up starts a platform. If it returns one with an error, the caller must call Close.
func Up(ctx context.Context, name string) (*Platform, error) {
	dir, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	s, err := stage.Up(ctx, stage.Options{Dir: dir, Node: "none", Out: os.Stdout})
	if s == nil {
		return nil, err
	}
	p := &Platform{Stage: s}
	if err != nil {
		return p, err
	}
	if p.Operator, err = s.StartOperator(ctx); err != nil {
		return p, err
	}
	if p.root, err = p.repository(ctx, v1alpha1.PlatformRepository); err != nil {
		return p, err
	}
	return p, p.Declare(ctx, map[string]string{"kubeop.yaml": "layout: v1\n"})
}

// Declare writes files of the platform repository, and pushes them.
func (p *Platform) Declare(ctx context.Context, files map[string]string) error {
	return Push(ctx, p.root, files)
}

// Tenant declares a tenant with a repository of these files. spec is YAML of the Tenant's spec.
func (p *Platform) Tenant(ctx context.Context, name, spec string, files map[string]string) (*stage.Repository, error) {
	own, err := p.repository(ctx, name)
	if err != nil {
		return nil, err
	}
	files["kubeop.yaml"] = "layout: v1\n"
	if err := Push(ctx, own, files); err != nil {
		return nil, err
	}
	return own, p.SetTenant(ctx, own, spec)
}

// SetTenant declares the tenant of a repository, for the first time or with another spec.
func (p *Platform) SetTenant(ctx context.Context, own *stage.Repository, spec string) error {
	return p.Declare(ctx, map[string]string{"tenants/" + own.Name + "/tenant.yaml": fmt.Sprintf(`apiVersion: paas.kubeop.io/v1alpha1
kind: Tenant
metadata: {name: %s}
spec:
  repository: {url: %q, secretRef: {name: %[1]s-git}, hookSecretRef: {name: %[1]s-hook}}
  %[3]s
`, own.Name, own.OperatorURL, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))})
}

// AppReady waits until an app is ready. The error has all its conditions.
func (p *Platform) AppReady(ctx context.Context, namespace, name string) error {
	app := &v1alpha1.App{}
	err := stage.Until(ctx, stepTimeout, "app "+name+" is ready", func(ctx context.Context) error { return p.Ready(ctx, app, namespace, name) })
	if err != nil {
		return fmt.Errorf("%w: %+v", err, app.Status.Conditions)
	}
	return nil
}

// As returns a client that acts as a user.
func (p *Platform) As(user string, groups ...string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.Cluster.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst, config.Impersonate = -1, -1, rest.ImpersonationConfig{UserName: user, Groups: groups}
	return client.New(config, client.Options{Scheme: p.Client.Scheme(), Mapper: p.Client.RESTMapper()})
}

// Object reads YAML into an object of a namespace.
func Object(namespace, text string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", text, err)
	}
	o.SetNamespace(namespace)
	return o, nil
}

// repository creates a repository whose pushes are announced to the operator.
func (p *Platform) repository(ctx context.Context, name string) (*stage.Repository, error) {
	key := rand.Text()
	r, err := p.CreateRepository(ctx, name, key)
	if err != nil {
		return nil, err
	}
	return r, errors.Join(
		p.SetSecret(ctx, name+"-git", map[string]string{"username": r.User, "password": r.Password}),
		p.SetSecret(ctx, name+"-hook", map[string]string{"token": key}))
}

// Push writes files of a repository, and pushes them.
func Push(ctx context.Context, r *stage.Repository, files map[string]string) error {
	for name, content := range files {
		if err := r.Write(name, []byte(content)); err != nil {
			return err
		}
	}
	return r.Push(ctx, "Change")
}
