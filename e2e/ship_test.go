//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const shop = "kubeop-acme-shop"

// TestADeveloperShipsEachTypeOfApp checks the sample tenant as a developer would.
func TestADeveloperShipsEachTypeOfApp(t *testing.T) {
	apps := []string{"web", "docs", "api", "tools"}
	for _, app := range apps {
		until(t, app+" is ready", func(ctx context.Context) error { return platform.Ready(ctx, &v1alpha1.App{}, shop, app) })
		answers(t, shop, app, "hello from "+app)
	}
	kubectl(t, "wait", "apps", "--all", "-n", shop, "--for=condition=Ready", "--timeout=30s")
	table := kubectl(t, "get", "apps", "-n", shop)
	for _, want := range []string{"NAME", "TYPE", "READY", "REVISION", "STATUS", "Image", "Git", "Helm", "Raw", "main@sha1:"} {
		if !strings.Contains(table, want) {
			t.Errorf("kubectl get apps does not show %s:\n%s", want, table)
		}
	}
	for what, want := range map[string]string{"list": "hello-0.1.0", "history api": "Install complete", "get values api": "replicas: 1"} {
		out, err := platform.Helm(t.Context(), append(strings.Fields(what), "-n", shop)...)
		must(t, err)
		if !strings.Contains(out, want) {
			t.Errorf("helm %s does not show %q:\n%s", what, want, out)
		}
	}
}

func TestAChangeIsLiveAfterThePush(t *testing.T) {
	n := newTeam(t, "quick")
	n.deliver("web", image("v1"), "one")
	n.push("Ship")
	n.appReady("web")
	n.answers("web", "one")

	n.deliver("web", image("v1"), "two")
	pushed := time.Now()
	n.push("Say two")
	until(t, "the Deployment follows", func(ctx context.Context) error {
		out, err := platform.Kubectl(ctx, "get", "deployment", "web", "-n", n.namespace(), "-o", "jsonpath={..env[?(@.name=='MESSAGE')].value}")
		if err == nil && out != "two" {
			err = fmt.Errorf("MESSAGE is %q", out)
		}
		return err
	})
	t.Logf("push → Deployment updated: %.2f s, git push and kubectl included", time.Since(pushed).Seconds())
	n.answers("web", "two")
}

// TestAnImageThatCannotBePulled checks that the message names the app, the pod's problem and the image. Another app stays healthy,
// and a fix recovers the app.
func TestAnImageThatCannotBePulled(t *testing.T) {
	n := newTeam(t, "typo")
	n.deliver("web", image("v1"), "web")
	n.deliver("side", image("v1"), "side")
	n.push("Ship")
	n.appReady("web")
	n.appReady("side")

	n.deliver("web", image("v11"), "web")
	n.push("Ship a tag that is not there")
	app := &v1alpha1.App{}
	until(t, "the app reports why", func(ctx context.Context) error {
		err := platform.Ready(ctx, app, n.namespace(), "web")
		if err == nil || !strings.Contains(err.Error(), "Unhealthy") {
			return fmt.Errorf("it reports: %w", err)
		}
		for _, want := range []string{"Deployment/web", "cannot be pulled", image("v11")} {
			if !strings.Contains(err.Error(), want) {
				return fmt.Errorf("it does not report %q: %w", want, err)
			}
		}
		return nil
	})
	must(t, platform.Ready(t.Context(), &v1alpha1.App{}, n.namespace(), "side"))
	n.answers("web", "web")

	n.deliver("web", image("v1"), "mended")
	n.push("Mend the tag")
	n.appReady("web")
	n.answers("web", "mended")
}

// TestAQuotaThatIsFullIsNamed requests more than the project's quota.
func TestAQuotaThatIsFullIsNamed(t *testing.T) {
	n := newTeam(t, "greedy")
	n.deliver("web", image("v1"), "web")
	content, err := n.Read("projects/shop/apps/web/app.yaml")
	must(t, err)
	n.write("projects/shop/apps/web/app.yaml", string(content)+"    resources: {requests: {cpu: \"64\"}}\n")
	n.push("Request 64 cores")
	until(t, "the app names the quota", func(ctx context.Context) error {
		err := platform.Ready(ctx, &v1alpha1.App{}, n.namespace(), "web")
		if err == nil || !strings.Contains(err.Error(), "exceeded quota: kubeop") {
			return fmt.Errorf("it reports: %w", err)
		}
		return nil
	})
}

// TestOwnersSeeTheirOwn checks the permissions of a tenant's owners with the API server.
func TestOwnersSeeTheirOwn(t *testing.T) {
	n := newTeam(t, "owners")
	n.deliver("web", image("v1"), "web")
	n.push("Ship")
	n.appReady("web")
	cases := []struct {
		user, verb, what, namespace string
		may                         bool
	}{
		{"owners-viewer", "get", "apps.paas.kubeop.io", n.namespace(), true},
		{"owners-viewer", "get", "pods/log", n.namespace(), true},
		{"owners-viewer", "get", "secrets", n.namespace(), false},
		{"owners-viewer", "patch", "apps.paas.kubeop.io", n.namespace(), false},
		{"owners-viewer", "get", "apps.paas.kubeop.io", shop, false},
		{"owners-admin", "get", "secrets", n.namespace(), true},
		{"owners-admin", "delete", "resourcequotas", n.namespace(), false},
		{"owners-admin", "create", "rolebindings", n.namespace(), false},
		{"owners-admin", "get", "secrets", shop, false},
		{"owners-admin", "get", "repositories.paas.kubeop.io/owners", "", true},
		{"owners-admin", "get", "repositories.paas.kubeop.io/acme", "", false},
	}
	for _, c := range cases {
		args := []string{"auth", "can-i", c.verb, c.what, "--as", c.user, "-q"}
		if c.namespace != "" {
			args = append(args, "-n", c.namespace)
		}
		if _, err := platform.Kubectl(t.Context(), args...); (err == nil) != c.may {
			t.Errorf("%s may %s %s in %q: %t, want %t", c.user, c.verb, c.what, c.namespace, err == nil, c.may)
		}
	}
}
