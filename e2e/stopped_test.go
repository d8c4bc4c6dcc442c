//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/e2e/stage"
)

const (
	// pausedVolume is on the node's /tmp, to which every user may write, and only for the claim of the app data.
	pausedVolume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: paused}
spec:
  capacity: {storage: 16Mi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /tmp}
  claimRef: {namespace: kubeop-paused-shop, name: data-data}
`
	pausedData = `    env: [{name: STARTS, value: /data/paused-starts}]
    volumes: [{name: data, mountPath: /data, size: 16Mi}]
    security: {runAsUser: 65532, runAsGroup: 65532}
    terminationGracePeriodSeconds: 1
`
	pausedScale = "    autoscale: {min: 2, max: 3, cpu: 70}\n    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}\n    terminationGracePeriodSeconds: 1\n"
	pausedApp   = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n  type: Image\n  image:\n    reference: %s\n"
	pausedPorts = "    ports: [{name: http, port: 8080, servicePort: 80}]\n    probes: {readiness: {path: /healthz, periodSeconds: 1}}\n"
)

// workloads are the specs of what a tenant has: a stop must change none of them.
func workloads(t *testing.T, namespace string) string {
	t.Helper()
	return kubectl(t, "get", "deployments,hpa,cronjobs,pvc,pdb,services,configmaps,secrets", "-n", namespace, "--sort-by=.metadata.uid",
		"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.labels} {.spec}{"\n"}{end}`)
}

// TestAStoppedTenantIsStartedAgainExactlyAsItWas: no pod of it runs meanwhile, and replicas, autoscaling, CronJobs and data are as before.
func TestAStoppedTenantIsStartedAgainExactlyAsItWas(t *testing.T) {
	volume := &corev1.PersistentVolume{}
	must(t, yaml.Unmarshal([]byte(pausedVolume), volume))
	must(t, platform.Client.Create(t.Context(), volume))
	n := newTeam(t, "paused")
	for app, fields := range map[string]string{
		"data": pausedData + pausedPorts, "scaled": pausedScale + pausedPorts, "nightly": "    schedule: \"0 3 * * *\"\n    args: [-say]\n",
	} {
		n.write("projects/shop/apps/"+app+"/app.yaml", fmt.Sprintf(pausedApp, app, image("v1"))+fields)
	}
	n.push("Ship")
	for _, app := range []string{"data", "scaled", "nightly"} {
		n.appReady(app)
	}
	n.starts("1")
	before := workloads(t, n.namespace())

	tenant, err := samples.Platform.Read("tenants/paused/tenant.yaml")
	must(t, err)
	must(t, samples.Platform.Write("tenants/paused/tenant.yaml", append(tenant, "  stopped: true\n"...)))
	must(t, samples.Platform.Push(t.Context(), "Stop paused"))
	began := time.Now()
	until(t, "no pod runs", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := platform.Client.List(ctx, pods, client.InNamespace(n.namespace())); err != nil || len(pods.Items) > 0 {
			return errors.Join(err, fmt.Errorf("there are %d", len(pods.Items)))
		}
		return nil
	})
	t.Logf("push → no pod runs: %.1f s", time.Since(began).Seconds())
	until(t, "the tenant says so", func(ctx context.Context) error {
		out, err := platform.Kubectl(ctx, "get", "tenant", "paused", "-o", `jsonpath={.status.conditions[?(@.type=="Stopped")].status}`)
		if err == nil && out != "True" {
			err = fmt.Errorf("Stopped is %q", out)
		}
		return err
	})
	if now := workloads(t, n.namespace()); now != before {
		t.Errorf("a stop changed\n%s\nto\n%s", before, now)
	}
	if out, err := platform.Kubectl(t.Context(), "create", "job", "by-hand", "--from=cronjob/nightly", "-n", n.namespace()); err == nil || !strings.Contains(err.Error(), "Stopped: Job/by-hand") {
		t.Errorf("a Job by hand is not refused: %s %v", out, err)
	}

	must(t, samples.Platform.Write("tenants/paused/tenant.yaml", tenant))
	must(t, samples.Platform.Push(t.Context(), "Start paused"))
	began = time.Now()
	for _, app := range []string{"data", "scaled"} {
		kubectl(t, "wait", "deployment/"+app, "-n", n.namespace(), "--for=jsonpath={.status.readyReplicas}="+map[string]string{"data": "1", "scaled": "2"}[app], "--timeout=120s")
	}
	t.Logf("push → all pods are ready: %.1f s", time.Since(began).Seconds())
	for _, app := range []string{"data", "scaled", "nightly"} {
		n.appReady(app)
	}
	if now := workloads(t, n.namespace()); now != before {
		t.Errorf("afterwards\n%s\nbecame\n%s", before, now)
	}
	n.starts("2")
}

// starts waits until the volume of the app data has this number of starts.
func (n *team) starts(want string) {
	n.t.Helper()
	until(n.t, "the volume has "+want+" starts", func(ctx context.Context) error {
		service := &corev1.Service{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: n.namespace(), Name: "data"}, service); err != nil {
			return err
		}
		got, err := stage.Get(ctx, "http://"+service.Spec.ClusterIP+"/starts")
		if err == nil && got != want {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}
