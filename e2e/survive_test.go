//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	chartApp = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: %s}
spec: {type: Helm, helm: {path: chart}}
`
	chartFile = "apiVersion: v2\nname: small\nversion: 0.1.0\n"
	// Enough objects that the operator is killed between two of them.
	templates = `{{- range $i := until 12 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-{{ $i }}}
data: {turn: "%d"}
{{- end }}
`
)

// release writes a Helm app of many objects.
func (n *team) release(app string, turn int) {
	n.t.Helper()
	folder := "projects/shop/apps/" + app + "/"
	n.write(folder+"app.yaml", fmt.Sprintf(chartApp, app))
	n.write(folder+"chart/Chart.yaml", chartFile)
	n.write(folder+"chart/templates/all.yaml", fmt.Sprintf(templates, turn))
}

// TestAKilledOperatorLosesNothing kills the operator at five points of a delivery. Each time everything must be delivered, and no
// release may be installed twice.
func TestAKilledOperatorLosesNothing(t *testing.T) {
	n := newTeam(t, "killed")
	for turn, after := range []time.Duration{50, 250, 500, 900, 1500} {
		name := fmt.Sprintf("app%d", turn)
		n.release(name+"r", turn)
		n.deliver(name, image("v1"), name)
		n.push("Ship " + name)
		time.Sleep(after * time.Millisecond)
		must(t, platform.KillOperator(t.Context()))
		n.appReady(name)
		n.appReady(name + "r")
		n.deployedOnce(name + "r")
		count := kubectl(t, "get", "configmaps", "-n", n.namespace(), "-l", v1alpha1.AppLabel+"="+name+"r", "-o", "name")
		if got := len(strings.Fields(count)); got != 12 {
			t.Errorf("%s has %d ConfigMaps, want 12:\n%s", name, got, count)
		}
	}
}

// deployedOnce checks that exactly one revision of a release is deployed and none is pending.
func (n *team) deployedOnce(name string) {
	n.t.Helper()
	out, err := platform.Helm(n.t.Context(), "history", name, "-n", n.namespace(), "-o", "json")
	must(n.t, err)
	var history []struct {
		Revision int
		Status   string
	}
	must(n.t, json.Unmarshal([]byte(out), &history))
	deployed := 0
	for _, h := range history {
		switch h.Status {
		case "deployed":
			deployed++
		case "failed", "superseded":
		default:
			n.t.Errorf("revision %d of %s is %s", h.Revision, name, h.Status)
		}
	}
	if deployed != 1 {
		n.t.Errorf("%d revisions of %s are deployed:\n%s", deployed, name, out)
	}
}

// TestATenantLeavesWithinAMinute removes a tenant with all its objects from the platform repository and confirms the deletion.
func TestATenantLeavesWithinAMinute(t *testing.T) {
	n := newTeam(t, "leaver")
	n.release("chart", 0)
	n.deliver("web", image("v1"), "web")
	n.push("Ship")
	n.appReady("web")
	n.appReady("chart")
	must(t, samples.Platform.Remove("tenants/leaver"))
	must(t, samples.Platform.Push(t.Context(), "Say goodbye"))
	until(t, "the deletion is held", func(ctx context.Context) error { return platform.Confirm(ctx, v1alpha1.PlatformRepository) })
	left := time.Now()
	until(t, "nothing is left", func(ctx context.Context) error {
		out, err := platform.Kubectl(ctx, "get", "tenants,repositories,namespaces,clusterroles,clusterrolebindings", "-l", v1alpha1.TenantLabel+"=leaver", "-o", "name")
		if err == nil && out != "" {
			err = fmt.Errorf("still there: %s", out)
		}
		return err
	})
	if took := time.Since(left); took > time.Minute {
		t.Errorf("it took %s, at most a minute is promised", took)
	}
	t.Logf("a tenant with one project and two apps was gone after %.1f s", time.Since(left).Seconds())
}
