//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestPlatformAppsStayWithinTheirNamespaces runs the operator with platformApps Namespaced. What an app of the platform has in its own namespace is
// delivered with the rights of the platform's account, and everything else is refused with the setting that would allow it.
func TestPlatformAppsStayWithinTheirNamespaces(t *testing.T) {
	must(t, platform.Install(t.Context(), "platformApps=Namespaced"))
	t.Cleanup(func() { must(t, platform.Install(context.WithoutCancel(t.Context()))) })
	const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: reads-all%[2]s}
rules: [{apiGroups: [""], resources: [secrets], verbs: ["*"]}]
`
	// The rights in this Role are more than those of any tenant's deployer.
	apps := map[string]string{
		"own":     fmt.Sprintf(role, "Role", ""),
		"cluster": fmt.Sprintf(role, "ClusterRole", ""),
		"other":   fmt.Sprintf(role, "Role", ", namespace: kube-system"),
	}
	write := func(name, content string) {
		t.Helper()
		must(t, samples.Platform.Write("platform/tools/"+name, []byte(content)))
	}
	write("project.yaml", "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: tools}\nspec: {namespace: {podSecurity: privileged}}\n")
	for app, manifest := range apps {
		write("apps/"+app+"/app.yaml", "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: "+app+"}\nspec: {type: Raw, raw: {path: manifests}}\n")
		write("apps/"+app+"/manifests/role.yaml", manifest)
	}
	must(t, samples.Platform.Push(t.Context(), "Deliver tools"))
	until(t, "own is ready", func(ctx context.Context) error { return platform.Ready(ctx, &v1alpha1.App{}, "tools", "own") })
	if out := kubectl(t, "get", "role", "reads-all", "-n", "tools", "-o", "name"); !strings.Contains(out, "reads-all") {
		t.Errorf("the Role is not there: %s", out)
	}
	for _, app := range []string{"cluster", "other"} {
		refused := &v1alpha1.App{}
		until(t, app+" is refused", func(ctx context.Context) error {
			_ = platform.Ready(ctx, refused, "tools", app)
			if reason := conditions.GetReason(refused, v1alpha1.ReadyCondition); reason != v1alpha1.NotAllowedReason {
				return fmt.Errorf("Ready has the reason %q: %s", reason, conditions.GetMessage(refused, v1alpha1.ReadyCondition))
			}
			return nil
		})
		if message := conditions.GetMessage(refused, v1alpha1.ReadyCondition); !strings.Contains(message, "platformApps of kubeop's chart is Namespaced") || !strings.Contains(message, "ClusterAdmin") {
			t.Errorf("%s does not name the setting: %s", app, message)
		}
	}
	for _, gone := range [][]string{{"clusterrole", "reads-all"}, {"role", "reads-all", "-n", "kube-system"}} {
		if out, err := platform.Kubectl(t.Context(), append([]string{"get", "--ignore-not-found", "-o", "name"}, gone...)...); err != nil || out != "" {
			t.Errorf("%v was delivered: %s, %v", gone, out, err)
		}
	}
	// The API server holds the account to the same, whatever the operator asks for in its name.
	for verb, allowed := range map[string]bool{"create roles -n tools": true, "create clusterroles": false, "create roles -n kube-system": false, "get secrets -n kubeop-acme-shop": false} {
		args := append([]string{"auth", "can-i", "--as", "system:serviceaccount:kubeop-system:" + v1alpha1.PlatformDeployer}, strings.Fields(verb)...)
		if _, err := platform.Kubectl(t.Context(), args...); (err == nil) != allowed {
			t.Errorf("the account may %s: %t, want %t (%v)", verb, err == nil, allowed, err)
		}
	}

	must(t, samples.Platform.Remove("platform"))
	must(t, samples.Platform.Push(t.Context(), "Remove the tools"))
	until(t, "the project is removed", func(ctx context.Context) error {
		out, err := platform.Kubectl(ctx, "get", "namespace", "tools", "--ignore-not-found")
		if err == nil && out != "" { // Its removal may be held.
			err = errors.Join(errors.New("the namespace is there"), platform.Confirm(ctx, v1alpha1.PlatformRepository))
		}
		return err
	})
}
