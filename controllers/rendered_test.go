package controllers

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// large is an app of one ConfigMap of so many bytes.
func large(name string, size int) string {
	return rawApp(configOfSize(name, size))["app.yaml"]
}

// TestAnAppBeyondItsTenantsBudgetIsRefusedAlone: the tenant's apps may deliver 64Ki.
func TestAnAppBeyondItsTenantsBudgetIsRefusedAlone(t *testing.T) {
	n := newTeam(t, "rendering")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.RenderedBytes = ptr.To(resource.MustParse("64Ki")) })
	files := shopFiles("shop", "web")
	files["projects/shop/apps/bad/app.yaml"] = large("first", 40_000)
	n.push(files)
	bad := n.app("shop", "bad")
	n.ready(n.app("shop", "web"), bad)
	if got := bad.Status.RenderedBytes; got < 40_000 || got > 41_000 {
		t.Errorf("the status reports %d bytes", got)
	}

	second := strings.ReplaceAll(large("second", 30_000), "name: bad", "name: late")
	n.push(map[string]string{"projects/shop/apps/late/app.yaml": second})
	late := n.app("shop", "late")
	message := n.until(late, v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.TooLargeReason)
	for _, want := range []string{
		"what all apps of tenant rendering deliver", "the largest others: kubeop-rendering-shop/bad 40", "and the limit is 64Ki", "spec.limits.renderedBytes of the Tenant",
	} {
		if !strings.Contains(message, want) {
			t.Errorf("the message of the app does not contain %q: %s", want, message)
		}
	}
	n.ready(n.app("shop", "web"), bad)
	n.eventually(func() error {
		used, may := n.gauges("kubeop_tenant_used")["renderedBytes"], n.gauges("kubeop_tenant_limit")["renderedBytes"]
		if may != 64<<10 || used < 40_000 || used > 42_000 {
			return fmt.Errorf("used %v of %v", used, may)
		}
		return nil
	})

	// The other app shrinks, and the refused one is retried without a request.
	n.push(map[string]string{"projects/shop/apps/bad/app.yaml": large("first", 10_000)})
	n.ready(late)
	if got := n.configMap("shop", "second").Data["x"]; len(got) != 30_000 {
		t.Errorf("the ConfigMap has %d bytes, want 30000", len(got))
	}

	// The app grows too large: the applied version stays.
	n.push(map[string]string{"projects/shop/apps/bad/app.yaml": large("first", 50_000)})
	n.until(bad, v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.TooLargeReason)
	if got := n.configMap("shop", "first").Data["x"]; len(got) != 10_000 {
		t.Errorf("the applied ConfigMap has %d bytes, want 10_000", len(got))
	}
	n.push(map[string]string{"projects/shop/apps/late": "-"})
	n.ready(bad)
}

// TestAReleaseBeyondItsTenantsBudgetIsNotRecorded: five records of a release count, and a refused chart is retried after the limit was raised.
func TestAReleaseBeyondItsTenantsBudgetIsNotRecorded(t *testing.T) {
	n := newTeam(t, "rendering2")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.RenderedBytes = ptr.To(resource.MustParse("64Ki")) })
	files := shopFiles("shop")
	for name, content := range chartApp("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {x: " + strings.Repeat("x", 70_000) + "}\n") {
		files["projects/shop/apps/bad/"+name] = content
	}
	n.push(files)
	bad := n.app("shop", "bad")
	message := n.until(bad, v1alpha1.ReleasedCondition, metav1.ConditionFalse, v1alpha1.TooLargeReason)
	if !strings.Contains(message, "what all apps of tenant rendering2 deliver") || !strings.Contains(message, "(the largest others: none)") {
		t.Errorf("the message of the app is %q", message)
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.RenderedBytes = nil })
	n.ready(bad)
	if got := bad.Status.RenderedBytes; got < 70_000 || got > 90_000 {
		t.Errorf("the status reports %d bytes", got)
	}
}
