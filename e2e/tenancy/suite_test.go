//go:build e2e

// Package tenancy makes the checks of the archived benchmarks for multi-tenancy (kubernetes-sigs/multi-tenancy): the 18 that it has, those that it removed, and
// those that it planned. docs/security.md lists them. Each role of a tenant's people and an account with all rights of the deployer make each of them.
package tenancy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
	"github.com/kubeop/kubeop/e2e/tenants"
)

var (
	own    = v1alpha1.ProjectNamespace("acme", "shop")
	open   = v1alpha1.ProjectNamespace("acme", "open")
	theirs = v1alpha1.ProjectNamespace("beta", "shop")
	// people are the tenant's, by their roles, and account has all rights of the deployer.
	people  = []string{"acme-view", "acme-edit", "acme-admin"}
	account = "system:serviceaccount:" + own + ":bot"
)

const (
	project = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\n"
	policy  = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: fresh}\nspec: {images: {pullPolicies: [Always]}}\n"
	app     = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: bot}
spec:
  type: Raw
  raw:
    manifests:
    - {apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: bot}}
    - {apiVersion: v1, kind: Service, metadata: {name: bot}, spec: {ports: [{port: 80}]}}
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: RoleBinding
      metadata: {name: bot}
      roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeop-deployer}
      subjects: [{kind: ServiceAccount, name: bot, namespace: %s}]
`
	// openProject may have NetworkPolicies of its own, and openApp has one.
	openProject = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: open}\nspec: {network: {policies: Own}}\n"
	openApp     = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: rules}\nspec: {type: Raw, raw: {manifests: [" + networkControl + "]}}\n"
)

var platform *tenants.Platform

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // The client's.
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tenancy:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	platform, err = tenants.Up(ctx, "tenancy")
	if platform != nil {
		defer func() { err = errors.Join(err, platform.Close()) }()
	}
	if err == nil {
		err = prepare(ctx)
	}
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func prepare(ctx context.Context) error {
	if err := platform.Declare(ctx, map[string]string{"policies/fresh.yaml": policy}); err != nil {
		return err
	}
	const owners = "policies: [fresh]\nowners: [{kind: User, name: acme-view, role: view}, {kind: User, name: acme-edit, role: edit}, {kind: User, name: acme-admin, role: admin}]"
	for tenant, spec := range map[string]string{"acme": owners, "beta": "owners: []"} {
		namespace := v1alpha1.ProjectNamespace(tenant, "shop")
		files := map[string]string{"projects/shop/project.yaml": project, "projects/shop/apps/bot/app.yaml": fmt.Sprintf(app, namespace)}
		if tenant == "acme" {
			files["projects/open/project.yaml"], files["projects/open/apps/rules/app.yaml"] = openProject, openApp
		}
		if _, err := platform.Tenant(ctx, tenant, spec, files); err != nil {
			return err
		}
		if err := platform.AppReady(ctx, namespace, "bot"); err != nil {
			return err
		}
	}
	return platform.AppReady(ctx, open, "rules")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func as(t *testing.T, user string) client.Client {
	t.Helper()
	c, err := platform.As(user)
	must(t, err)
	return c
}

// soon waits until look has no error.
func soon(t *testing.T, what string, look func(context.Context) error) {
	t.Helper()
	must(t, stage.Until(t.Context(), time.Minute, what, look))
}
