//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestGuardrailsHoldWithoutTheOperator: with no operator at all, pods start again, restart and scale, and what a policy refuses is still refused.
func TestGuardrailsHoldWithoutTheOperator(t *testing.T) {
	n := newTeam(t, "alone")
	const policy = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: alone}\nspec: {images: {allow: [%q]}, services: {types: [ClusterIP]}, hostnames: {suffixes: [alone.example]}}\n"
	tenant, err := samples.Platform.Read("tenants/alone/tenant.yaml")
	must(t, err)
	must(t, samples.Platform.Write("tenants/alone/tenant.yaml", append(tenant, "  policies: [alone]\n"...)))
	must(t, samples.Platform.Write("policies/alone.yaml", fmt.Appendf(nil, policy, platform.Cluster.Registry.Host)))
	must(t, samples.Platform.Push(t.Context(), "Limit the images of alone"))
	n.deliver("web", image("v1"), "web")
	n.push("Ship")
	n.appReady("web")
	in := []string{"-n", n.namespace()}
	refused := func(what, want string, args ...string) {
		t.Helper()
		until(t, what+" is refused", func(ctx context.Context) error {
			out, err := platform.Kubectl(ctx, append(append(args, "--dry-run=server"), in...)...)
			if err == nil || !strings.Contains(err.Error()+out, want) {
				return fmt.Errorf("%s: %w", out, err)
			}
			return nil
		})
	}
	refuse := func() {
		t.Helper()
		refused("an image", "Images: Deployment/other has the image registry.elsewhere.example/x, which is not among the allowed ones", "create", "deployment", "other", "--image=registry.elsewhere.example/x")
		refused("a type of Service", "Services: Service/other is of type NodePort; allowed are: ClusterIP", "create", "service", "nodeport", "other", "--tcp=80")
		refused("a host", "Hostnames: Ingress/other has the host www.other.example, which is not below the allowed domains: alone.example", "create", "ingress", "other", "--rule=www.other.example/*=web:80")
	}
	refuse()

	must(t, platform.ScaleOperator(t.Context(), 0))
	defer func() {
		must(t, platform.ScaleOperator(t.Context(), 1))
		n.appReady("web")
	}()
	refuse()
	kubectl(t, append(in, "delete", "pods", "-l", v1alpha1.AppLabel+"=web")...)
	kubectl(t, append(in, "scale", "deployment/web", "--replicas=2")...)
	kubectl(t, append(in, "rollout", "status", "deployment/web", "--timeout=120s")...)
	kubectl(t, append(in, "rollout", "restart", "deployment/web")...)
	kubectl(t, append(in, "rollout", "status", "deployment/web", "--timeout=120s")...)
	n.answers("web", "web")
}
