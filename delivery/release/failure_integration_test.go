package release

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	helm "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// stuck is a hook that never ends: no node runs its pod.
const stuck = `apiVersion: batch/v1
kind: Job
metadata:
  name: stuck
  annotations: {helm.sh/hook: "EVENT", helm.sh/hook-output-log-policy: hook-failed}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: "a:v1"}]}
`

func stuckAt(event string) string { return strings.Replace(stuck, "EVENT", event, 1) }

// noise returns text that does not compress.
func noise(size int) string {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(out) // It never fails.
	return string(out)
}

func soon(int) time.Duration  { return 0 }
func later(int) time.Duration { return time.Hour }

func TestAFailedRenderingNamesTheTemplate(t *testing.T) {
	schema := `{"type":"object","properties":{"color":{"pattern":"^[a-z]+$"}}}`
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"template":    {map[string]string{"templates/a.yaml": "{{ .Values.a.b.c }}"}, "web/templates/a.yaml:1"},
		"fail":        {map[string]string{"templates/a.yaml": `{{ fail (printf "no %s" .Values.color) }}`}, "no ***"},
		"broken YAML": {map[string]string{"templates/a.yaml": "a: [\n"}, "web/templates/a.yaml"},
		"no object":   {map[string]string{"templates/a.yaml": "kind: ConfigMap\n"}, "web/templates/a.yaml"},
		"schema":      {map[string]string{"values.schema.json": schema}, "'***' does not match pattern"},
		"kubeVersion": {map[string]string{"Chart.yaml": sources.ChartYAML + "kubeVersion: \">=9.0.0\"\n"}, "requires kubeVersion"},
		"hook":        {map[string]string{"templates/a.yaml": "metadata:\n  annotations:\n    helm.sh/hook: test\n"}, "web/templates/a.yaml"},
		"too large":   {map[string]string{"noise": noise(2 << 20)}, "do not fit into a Secret"},
		"Chart.yaml":  {map[string]string{"Chart.yaml": ""}, "Chart.yaml file is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			r := tm.request(sources.ChartFolder(web(test.files)), "color=Hunter22")
			r.Sensitive = []string{"Hunter22"}
			out := tm.settle(r)
			if !errors.Is(out.Failed, fault.ErrRender) || !strings.Contains(out.Failed.Error(), test.want) {
				t.Errorf("got %v, want ErrRender with %q", out.Failed, test.want)
			}
			if strings.Contains(out.Failed.Error(), "Hunter22") {
				t.Errorf("shows a secret: %v", out.Failed)
			}
			if left := tm.versions(); len(left) > 0 {
				t.Errorf("something was written: %v", left)
			}
			tm.requests.take()
			if again := tm.settle(r); !errors.Is(again.Failed, fault.ErrRender) || again.Retry.Attempts != 1 {
				t.Errorf("the second look: %v", again)
			}
		})
	}
}

func TestABadInputLeavesTheReleaseAlone(t *testing.T) {
	tm := newTeam(t)
	good := tm.request(sources.ChartFolder(web(nil)))
	tm.deploy(good)
	before := tm.versions()
	out := tm.settle(tm.request(sources.ChartFolder(web(map[string]string{"templates/a.yaml": "{{ fail \"no\" }}"}))))
	if !errors.Is(out.Failed, fault.ErrRender) || out.Release.Revision != 1 || len(out.Deployed.Objects) != 3 {
		t.Errorf("got %v", out)
	}
	tm.deploy(good)
	if after := tm.versions(); len(after) != len(before) {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestAFailedInstallIsInstalledAgain(t *testing.T) {
	tm := newTeam(t)
	bad := tm.request(sources.ChartFolder(web(map[string]string{
		"templates/a.yaml": stuckAt("post-install"), "templates/old.yaml": strings.Replace(configMap, "name: a", "name: old", 1),
	})))
	bad.Policy.Retry = later
	bad.Actions.Install.Timeout = &metav1.Duration{Duration: 2 * time.Second}
	out := tm.settle(bad)
	if out.Failed == nil || !strings.Contains(out.Failed.Error(), "post-install: hook Job/stuck has not ended after 2s (spec.helm.install.timeout)") || out.Retry.Attempts != 1 || out.Retry.At.IsZero() {
		t.Fatalf("got %v", out)
	}
	if out.Release.Status != "failed" || out.Deployed.Objects != nil {
		t.Errorf("release %v with %d objects", out.Release, len(out.Deployed.Objects))
	}

	bad.Policy.Retry = soon
	if again, err := tm.Reconcile(t.Context(), bad); err != nil || !again.Running || again.Action != "installing" {
		t.Fatalf("the retry: %v, %v", again, err)
	}
	tm.await(bad)
	bad.Policy.Retry = later
	if out = tm.settle(bad); out.Retry.Attempts != 2 || out.Release.Revision != 2 {
		t.Errorf("after the retry: %v", out)
	}

	good := tm.request(sources.ChartFolder(web(nil)))
	out = tm.deploy(good)
	if out.Release.Revision != 3 || tm.configMap("web").Data["first"] != "true" {
		t.Errorf("release %v, data %v; want an install as revision 3", out.Release, tm.configMap("web").Data)
	}
	if tm.versions()["configmaps/old"] != "" {
		t.Error("what only the failed attempt had is still there")
	}
}

func TestAFailedUpgradeIsCorrectedByTheNext(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.request(sources.ChartFolder(web(nil))))
	out := tm.settle(tm.request(sources.ChartFolder(web(map[string]string{
		"templates/a.yaml": stuckAt("post-upgrade"), "templates/new.yaml": strings.Replace(configMap, "name: a", "name: new", 1),
	})), "color=bad"))
	if out.Failed == nil || out.Release.Status != "failed" || !out.Retry.At.IsZero() || len(out.Deployed.Objects) != 3 {
		t.Fatalf("got %v", out)
	}
	if tm.versions()["configmaps/new"] == "" {
		t.Fatal("the test needs an upgrade that fails after it made something")
	}
	out = tm.deploy(tm.request(sources.ChartFolder(web(nil)), "color=red"))
	if out.Release.Revision != 3 || tm.configMap("web").Data["color"] != "red" {
		t.Errorf("got %v", out.Release)
	}
	if tm.versions()["configmaps/new"] != "" {
		t.Error("what only the failed upgrade had is still there")
	}
}

func TestUninstallAfterAFailedUpgradeLeavesNothing(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.request(sources.ChartFolder(web(map[string]string{"templates/hook.yaml": "", "templates/old.yaml": strings.Replace(configMap, "name: a", "name: old", 1)}))))
	bad := tm.request(sources.ChartFolder(web(map[string]string{"templates/hook.yaml": "", "templates/a.yaml": stuckAt("pre-upgrade")})))
	if out := tm.settle(bad); out.Failed == nil {
		t.Fatal("the upgrade did not fail")
	}
	tm.uninstall(bad)
	left := tm.versions()
	delete(left, "jobs/stuck")
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAForeignObjectIsNotAdopted(t *testing.T) {
	tm := newTeam(t)
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if _, err := tm.admin.CoreV1().ConfigMaps(tm.namespace).Create(t.Context(), taken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	out := tm.settle(tm.request(sources.ChartFolder(web(nil))))
	if out.Failed == nil || !strings.Contains(out.Failed.Error(), "ConfigMap/web exists and does not belong to this release") || errors.Is(out.Failed, fault.ErrRender) {
		t.Errorf("got %v", out.Failed)
	}
}

func TestAnObjectThatCannotBeCreatedIsNamed(t *testing.T) {
	number := func(name string) string {
		return strings.Replace(configMap, "name: a", "name: "+name, 1) + "data:\n  port: 80\n"
	}
	const why = `: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number`
	bad := map[string]string{"templates/n.yaml": number("port-one") + "---\n" + number("port-two")}
	tests := map[string]struct {
		before map[string]string
		want   []string
	}{
		"install": {nil, []string{"ConfigMap/port-one" + why, "; ConfigMap/port-two" + why}},
		"upgrade": {map[string]string{"templates/n.yaml": ""}, []string{"ConfigMap/port-one" + why, "; ConfigMap/port-two" + why}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			if test.before != nil {
				tm.deploy(tm.request(sources.ChartFolder(web(test.before))))
			}
			out := tm.settle(tm.request(sources.ChartFolder(web(bad))))
			if out.Failed == nil {
				t.Fatal("it did not fail")
			}
			for _, want := range test.want {
				if !strings.Contains(out.Failed.Error(), want) {
					t.Errorf("got %v, want %s", out.Failed, want)
				}
			}
		})
	}
}

// pend leaves the release as an interrupted action does.
func pend(t *testing.T, tm *team, status helm.Status, change func(*helm.Release)) {
	t.Helper()
	store := tm.helm().config.Releases
	r := &helm.Release{Name: "web", Namespace: tm.namespace, Version: 1, Info: &helm.Info{}, Labels: map[string]string{}}
	if last, err := store.Last("web"); err == nil {
		r = last
		r.Version++
	}
	r.Info.Status, r.Info.LastDeployed = status, helmtime.Now()
	r.Labels = map[string]string{decide.AppLabel: "shop", decide.DigestLabel: "x", decide.HolderLabel: "killed", decide.RevisionLabel: strconv.Itoa(r.Version)}
	change(r)
	if err := store.Create(r); err != nil {
		t.Fatal(err)
	}
}

func TestInterruptedActionsAreUnlocked(t *testing.T) {
	for name, deployed := range map[string]bool{"install": false, "upgrade": true} {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			files := sources.ChartFolder(web(nil))
			status, revision := helm.StatusPendingInstall, 2
			if deployed {
				tm.deploy(tm.request(files))
				status, revision = helm.StatusPendingUpgrade, 3
			}
			pend(t, tm, status, func(*helm.Release) {})
			tm.restart("me")
			out := tm.deploy(tm.request(files, "color=red"))
			if out.Release.Revision != revision || tm.configMap("web").Data["color"] != "red" {
				t.Errorf("got %v", out.Release)
			}
			if first := tm.configMap("web").Data["first"]; first != strconv.FormatBool(!deployed) {
				t.Errorf("IsInstall was %s", first)
			}
		})
	}
}

func TestAPersonsHelmIsNotTouched(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(web(nil)))
	tm.deploy(r)
	pend(t, tm, helm.StatusPendingUpgrade, func(r *helm.Release) { r.Labels[decide.RevisionLabel] = "1" })
	tm.catchUp()
	before := tm.versions()
	if _, err := tm.Reconcile(t.Context(), r); !errors.Is(err, fault.ErrLocked) || !strings.Contains(err.Error(), "someone outside kubeop") {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if _, err := tm.Uninstall(t.Context(), r); !errors.Is(err, fault.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	after := tm.versions()
	if len(before) != len(after) || before["secrets/sh.helm.release.v1.web.v2"] != after["secrets/sh.helm.release.v1.web.v2"] {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestAnotherAppsReleaseIsNotTouched(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(web(nil)))
	tm.deploy(r)
	before := tm.versions()
	r.App.Name = "other"
	_, err := tm.Reconcile(t.Context(), r)
	if !errors.Is(err, fault.ErrTaken) || err.Error() != "release web belongs to app shop; choose another spec.helm.releaseName" {
		t.Errorf("got %v, want ErrTaken that names the owner", err)
	}
	if done, err := tm.Uninstall(t.Context(), r); !done || err != nil {
		t.Errorf("uninstalling: %v, %v; want done, with nothing to do", done, err)
	}
	if after := tm.versions(); len(after) != len(before) {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestUninstallNamesRemainingObjects(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(web(nil)))
	tm.deploy(r)
	held := tm.configMap("web")
	held.Finalizers = []string{"example.com/hold"}
	tm.update(held)
	if done, err := tm.Uninstall(t.Context(), r); done || err != nil {
		t.Fatalf("%v, %v", done, err)
	}
	tm.await(r)
	var left *fault.Terminating
	if done, err := tm.Uninstall(t.Context(), r); done || !errors.As(err, &left) || left.Error() != "waiting for ConfigMap/web, which the finalizer example.com/hold holds to be gone" {
		t.Errorf("got %v, %v", done, err)
	}
	if _, err := tm.Reconcile(t.Context(), r); !errors.As(err, &left) {
		t.Errorf("installing into what is going away: %v", err)
	}
	held = tm.configMap("web")
	held.Finalizers = nil
	tm.update(held)
	tm.uninstall(r)
}

func TestWithoutRightsNothingHappens(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(web(nil)))
	r.User = "system:serviceaccount:elsewhere:nobody"
	r.Policy.Retry = later
	if out := tm.settle(r); out.Failed == nil || !strings.Contains(out.Failed.Error(), "forbidden") || !out.Environment || tm.versions()["configmaps/web"] != "" {
		t.Errorf("got %+v", out)
	}
	r.User = ""
	if _, err := tm.Reconcile(t.Context(), r); err == nil {
		t.Error("the operator itself acted")
	}
}

func TestDrainWaitsForRunningActions(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(web(map[string]string{"templates/a.yaml": stuckAt("post-install")})))
	if out, err := tm.Reconcile(t.Context(), r); err != nil || !out.Running {
		t.Fatalf("%v, %v", out, err)
	}
	if err := tm.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if last, err := tm.helm().config.Releases.Last("web"); err == nil && last.Info.Status.IsPending() {
		t.Errorf("the drained action left the release %s", last.Info.Status)
	}
}
