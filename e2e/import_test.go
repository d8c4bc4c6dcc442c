//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	fluxSync = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: %s, ref: {branch: main}, secretRef: {name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/production, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`
	fluxKustomizations = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: infrastructure, namespace: flux-system}
spec: {interval: 1m, path: ./infrastructure, prune: true, wait: true, sourceRef: {kind: GitRepository, name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 1m
  path: ./apps/production
  prune: true
  serviceAccountName: reconciler
  dependsOn: [{name: infrastructure}]
  postBuild: {substitute: {cluster: production}}
  sourceRef: {kind: GitRepository, name: flux-system}
`
	fluxReleases = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: db, namespace: fleet}
spec:
  interval: 1m
  chart: {spec: {chart: ./charts/db, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
  valuesFrom: [{kind: ConfigMap, name: db-values}]
  values: {replicas: 1}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: queue, namespace: flux-system}
spec: {interval: 1m, url: oci://%s/charts/queue, ref: {tag: 1.0.0}, insecure: true}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: queue, namespace: fleet}
spec: {interval: 1m, chartRef: {kind: OCIRepository, name: queue, namespace: flux-system}, dependsOn: [{name: db}]}
`
	fleetPod = `
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: hello
        image: %s
        env: [{name: MESSAGE, value: %s}]
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
`
	fleetDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: fleet}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:` + fleetPod
	fleetService = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}\n"
)

// TestImportFromFluxKeepsThePods imports what Flux delivers: an overlay with variables, a folder it waits for, a release with values from a ConfigMap,
// and one of a chart from an OCIRepository that waits for it. Flux itself is not needed: its objects and the marks of its controllers are what it leaves.
func TestImportFromFluxKeepsThePods(t *testing.T) {
	ctx := t.Context()
	must(t, platform.Install(ctx, "platformApps=Namespaced"))
	t.Cleanup(func() { must(t, platform.Install(context.WithoutCancel(t.Context()))) })
	fleet, err := platform.CreateRepository(ctx, "fleet", rand.Text())
	must(t, err)
	for name, content := range map[string]string{
		"clusters/production/flux-system/gotk-sync.yaml": fmt.Sprintf(fluxSync, fleet.OperatorURL),
		"clusters/production/kustomizations.yaml":        fluxKustomizations,
		"clusters/production/releases.yaml":              fmt.Sprintf(fluxReleases, platform.Cluster.Registry.Pods),
		"infrastructure/kustomization.yaml":              "resources: [cache.yaml]\n",
		"infrastructure/cache.yaml":                      fmt.Sprintf(fleetDeployment, "cache", image("v1"), "cache"),
		"apps/base/web/kustomization.yaml":               "resources: [web.yaml]\n",
		"apps/base/web/web.yaml":                         strings.Replace(fmt.Sprintf(fleetDeployment, "web", image("v1"), "base"), ", namespace: fleet", "", 1) + fleetService,
		"apps/production/kustomization.yaml":             "namespace: fleet\nresources: [../base/web]\npatches: [{path: message.yaml}]\n",
		"apps/production/message.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: hello, env: [{name: MESSAGE, " +
			"value: \"from ${cluster}\"}]}]}}}\n",
		"charts/db/Chart.yaml":          "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"charts/db/templates/db.yaml":   strings.NewReplacer("namespace: fleet", "namespace: {{ .Release.Namespace }}", "value: db", "value: {{ .Values.message }}").Replace(fmt.Sprintf(fleetDeployment, "db", image("v1"), "db")),
		"charts/db/values.yaml":         "message: unset\nreplicas: 2\n",
		"charts/queue/Chart.yaml":       "apiVersion: v2\nname: queue\nversion: 1.0.0\n",
		"charts/queue/templates/q.yaml": strings.Replace(fmt.Sprintf(fleetDeployment, "queue", image("v1"), "queue"), "namespace: fleet", "namespace: {{ .Release.Namespace }}", 1),
	} {
		must(t, fleet.Write(name, []byte(content)))
	}
	must(t, fleet.Push(ctx, "What Flux delivers"))

	// What Flux has delivered before.
	kubectl(t, "create", "namespace", "fleet")
	t.Cleanup(func() {
		if _, err := platform.Kubectl(context.WithoutCancel(t.Context()), "delete", "namespace", "fleet", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	})
	kubectl(t, "create", "configmap", "db-values", "-n", "fleet", "--from-literal=values.yaml=message: from flux")
	for name, dir := range map[string]string{"infrastructure": "infrastructure", "apps": "apps/production"} {
		_, err := platform.Shell(ctx, fleet.Dir, `kubectl kustomize `+dir+` | sed 's/${cluster}/production/' | kubectl apply --server-side --field-manager kustomize-controller -f -
kubectl kustomize `+dir+` | kubectl label --field-manager kustomize-controller -f - kustomize.toolkit.fluxcd.io/name=`+name+` kustomize.toolkit.fluxcd.io/namespace=flux-system`)
		must(t, err)
	}
	_, err = platform.Helm(ctx, "install", "db", fleet.Dir+"/charts/db", "-n", "fleet", "--set", "message=from flux,replicas=1", "--wait")
	must(t, err)
	_, err = platform.Shell(ctx, fleet.Dir, "helm package -d .. charts/queue && helm push ../queue-1.0.0.tgz oci://"+platform.Cluster.Registry.Host+"/charts --plain-http && helm install queue charts/queue -n fleet --wait")
	must(t, err)
	kubectl(t, "rollout", "status", "deployment", "-n", "fleet", "--timeout=2m")
	pods := func() string {
		return kubectl(t, "get", "pods", "-n", "fleet", "--sort-by=.metadata.name", "-o", `jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount}{"\n"}{end}`)
	}
	before := pods()
	if strings.Count(before, "\n") < 3 {
		t.Fatalf("before the import there are the pods\n%s", before)
	}

	out, err := platform.Shell(ctx, fleet.Dir, "kubeop import flux clusters/production --tenant platform --out "+samples.Platform.Dir+` || [ $? = 2 ]`)
	must(t, err)
	t.Log(out)
	for _, want := range []string{"spec.serviceAccountName: ", "the Secret flux-system has to be in the namespace fleet: copy it from flux-system", "flux suspend kustomization --all"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	kubectl(t, "create", "secret", "generic", "flux-system", "-n", "fleet", "--from-literal=username="+fleet.User, "--from-literal=password="+fleet.Password)
	must(t, samples.Platform.Push(ctx, "Take the fleet over from Flux"))
	for _, app := range []string{"infrastructure", "apps", "db", "queue"} {
		until(t, app+" is ready", func(ctx context.Context) error { return platform.Ready(ctx, &v1alpha1.App{}, "fleet", app) })
	}
	if after := pods(); after != before {
		t.Errorf("the pods are not the same: before\n%s\nafter\n%s\n%s", before, after, kubectl(t, "get", "pods,apps", "-n", "fleet", "-o", "wide"))
	}
	answers(t, "fleet", "web", "from production")
	for _, release := range []string{"db", "queue"} {
		if history, err := platform.Helm(ctx, "history", release, "-n", "fleet"); err != nil || !strings.Contains(history, "superseded") || !strings.Contains(history, "deployed") {
			t.Errorf("the release %s was not taken over: %v\n%s", release, err, history)
		}
	}
	t.Log(kubectl(t, "get", "apps", "-n", "fleet"))

	must(t, samples.Platform.Remove("platform"))
	must(t, samples.Platform.Push(ctx, "Remove the fleet"))
	until(t, "the project is removed", func(ctx context.Context) error {
		out, err := platform.Kubectl(ctx, "get", "project", "fleet", "-n", v1alpha1.HomeNamespace(v1alpha1.PlatformTenant), "--ignore-not-found")
		if err == nil && out != "" { // Its removal may be held.
			err = errors.Join(errors.New("the project is there"), platform.Confirm(ctx, v1alpha1.PlatformRepository))
		}
		return err
	})
}
