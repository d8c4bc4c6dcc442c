package release

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// web is a chart with three objects and one hook for each event.
func web(change map[string]string) map[string]string {
	files := map[string]string{
		"values.yaml":            "color: blue\n",
		"templates/config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  color: {{ .Values.color | quote }}\n  first: {{ .Release.IsInstall | quote }}\n",
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  ports:\n  - port: 80\n",
		"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:v1, env: [{name: COLOR, value: {{ .Values.color | quote }}}]}]}
`,
		"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-hook\n  annotations:\n    helm.sh/hook: pre-install\n",
	}
	for name, text := range change {
		files[name] = text
	}
	return files
}

func TestAReleaseIsInstalledUpgradedAndUninstalled(t *testing.T) {
	tm := newTeam(t)
	files := sources.ChartFolder(web(nil))

	out := tm.deploy(tm.request(files))
	digest := out.Release.Digest
	want := Info{Name: "web", Revision: 1, Status: "deployed", Chart: "web-1.2.3", AppVersion: "9", Digest: digest}
	if diff := cmp.Diff(want, out.Release); diff != "" || digest == "" {
		t.Errorf("after the install: %s", diff)
	}
	if len(out.Deployed.Objects) != 3 {
		t.Errorf("%d objects, want 3 without the hook", len(out.Deployed.Objects))
	}
	for _, name := range []string{"web", "web-hook"} {
		if got := tm.configMap(name).Labels[v1alpha1.TenantLabel]; got != "acme" {
			t.Errorf("ConfigMap %s belongs to tenant %q, want %q", name, got, "acme")
		}
	}

	out = tm.deploy(tm.request(files, "color=red"))
	if out.Release.Revision != 2 || tm.configMap("web").Data["color"] != "red" || tm.configMap("web").Data["first"] != "false" {
		t.Errorf("after the upgrade: %v, %v", out.Release, tm.configMap("web").Data)
	}

	out = tm.deploy(tm.request(files))
	if out.Release.Revision != 3 || tm.configMap("web").Data["color"] != "blue" {
		t.Errorf("after taking the value away: %v, %v", out.Release, tm.configMap("web").Data)
	}

	tm.uninstall(tm.request(files))
	if left := tm.versions(); len(left) != 1 || left["configmaps/web-hook"] == "" {
		t.Errorf("after the uninstallation: %v, want only the hook, which Helm leaves", left)
	}
}

// manifests are the objects as the chart declares them.
// correct corrects drift.
func (t *team) correct(r Request, all []cluster.Applied) {
	t.Helper()
	var refs []cluster.Ref
	for _, a := range all {
		refs = append(refs, a.Ref)
	}
	if _, err := t.Drift(t.Context(), r, refs, true); err != nil {
		t.Fatal(err)
	}
}

func TestASecondReconcileWritesNothing(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(web(nil)))
	out := tm.deploy(r)
	before := tm.settled()
	tm.requests.take()

	r.Recorded.Revision, r.Recorded.Content = 1, out.Deployed.Content
	again := tm.deploy(r)
	if again.Deployed.Objects != nil {
		t.Error("objects that the caller knows were reported again")
	}
	tm.restart("restarted")
	tm.deploy(r)
	if got := tm.requests.take(); len(got) != 0 {
		t.Errorf("passes with nothing to do asked %v", got)
	}
	tm.correct(r, out.Deployed.Objects)
	if diff := cmp.Diff(before, tm.versions()); diff != "" {
		t.Errorf("something was written: %s", diff)
	}
	if diff := cmp.Diff(out.Release, again.Release); diff != "" {
		t.Error(diff)
	}
}

// TestSealedDigestsAreRecognized: a sealed digest that the caller recorded is recognized without reading the record, and every reported
// digest is sealed.
func TestSealedDigestsAreRecognized(t *testing.T) {
	tm := newTeam(t)
	tm.opts.Seal = func(digest string) string { return decide.Digest([]byte("key" + digest)) }
	r := tm.request(sources.ChartFolder(web(nil)))
	out := tm.deploy(r)
	tm.settled()
	for what, digest := range map[string]string{"content": out.Deployed.Content, "digest": out.Records.Snapshots[0].Digest, "valuesDigest": out.Records.Snapshots[0].ValuesDigest} {
		if !strings.HasPrefix(digest, "hmac-sha256:") {
			t.Errorf("%s is %q, want an HMAC", what, digest)
		}
	}
	tm.requests.take()
	r.Recorded.Revision, r.Recorded.Content = 1, out.Deployed.Content
	if again := tm.deploy(r); again.Deployed.Objects != nil || again.Deployed.Content != out.Deployed.Content {
		t.Errorf("it is not known again: %d objects, %s", len(again.Deployed.Objects), again.Deployed.Content)
	}
	if got := tm.requests.take(); len(got) != 0 {
		t.Errorf("a pass with nothing to do asked %v", got)
	}
}

// fourObjects is a chart of four objects without hooks.
func fourObjects(change map[string]string) map[string]string {
	files := web(map[string]string{"templates/hook.yaml": "", "templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}\n"})
	maps.Copy(files, change)
	return files
}

func TestAnActionSendsNoNeedlessRequest(t *testing.T) {
	tm := newTeam(t)
	files := sources.ChartFolder(fourObjects(nil))
	got := map[string][]string{}
	step := func(name string, r Request) Request {
		out := tm.deploy(r)
		got[name] = tm.requests.take()
		r.Recorded.Revision, r.Recorded.Content = out.Deployed.Revision, out.Deployed.Content
		return r
	}
	tm.requests.take()
	r := step("install", tm.request(files))
	step("nothing", r)
	r.Input.Values = map[string]any{"color": "red"}
	r = step("upgrade of two objects, nothing known", r)
	r.Input.Values = map[string]any{"color": "green"}
	r.Recorded.Unmoved = func(*unstructured.Unstructured) bool { return true }
	r = step("upgrade of two objects, all known", r)
	step("nothing again", r)
	tm.uninstall(r)
	got["uninstall of three revisions"] = tm.requests.take()
	for name, budget := range map[string]int{
		"install": 6, "nothing": 0, "upgrade of two objects, nothing known": 10, "upgrade of two objects, all known": 6, "nothing again": 0,
		"uninstall of three revisions": 9,
	} {
		if len(got[name]) > budget {
			t.Errorf("%s: %d requests, want at most %d:\n%s", name, len(got[name]), budget, strings.Join(got[name], "\n"))
		}
		t.Logf("%s: %d requests", name, len(got[name]))
	}
}

func TestEditsByHandAreCorrected(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(web(nil)))
	out := tm.deploy(r)

	edited := tm.configMap("web")
	edited.Data = map[string]string{"color": "green"}
	edited.Labels = map[string]string{"mine": "yes"}
	tm.update(edited)
	if err := tm.admin.CoreV1().Services(tm.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.correct(r, out.Deployed.Objects)
	got := tm.configMap("web")
	if diff := cmp.Diff(map[string]string{"color": "blue", "first": "true"}, got.Data); diff != "" {
		t.Error(diff)
	}
	if got.Labels["mine"] != "yes" || got.Labels[v1alpha1.TenantLabel] != "acme" || got.Labels[cluster.ManagedByLabel] != cluster.ManagedByHelm {
		t.Errorf("labels %v", got.Labels)
	}
	if _, err := tm.admin.CoreV1().Services(tm.namespace).Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if again := tm.deploy(r); again.Release.Revision != 1 {
		t.Errorf("correcting made revision %d, want 1", again.Release.Revision)
	}
}

func TestTwoRequestsAtOnceInstallOnce(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(web(nil)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if out, err := tm.Reconcile(t.Context(), r); err != nil || !out.Running && out.Release.Revision != 1 {
				t.Errorf("got %v, %v", out, err)
			}
		})
	}
	wg.Wait()
	tm.await(r)
	out := tm.deploy(r)
	if out.Release.Revision != 1 || len(tm.notified) != 0 {
		t.Errorf("revision %d, %d more notices", out.Release.Revision, len(tm.notified))
	}
}

func TestPeopleReadTheHistory(t *testing.T) {
	tm := newTeam(t)
	files := sources.ChartFolder(web(nil))
	for _, color := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		tm.deploy(tm.request(files, "color="+color))
	}
	person := tm.helm()
	revisions, err := action.NewHistory(person.config).Run("web")
	if err != nil {
		t.Fatal(err)
	}
	if len(revisions) != maxHistory {
		t.Errorf("%d revisions are kept, want %d", len(revisions), maxHistory)
	}
	values, err := action.NewGetValues(person.config).Run("web")
	if err != nil || values["color"] != "g" {
		t.Errorf("helm get values: %v, %v", values, err)
	}
	status, err := action.NewStatus(person.config).Run("web")
	if err != nil || status.Info.Status != helm.StatusDeployed || status.Version != 7 {
		t.Errorf("helm status: %v, %v", status, err)
	}
}

func TestRevisionsMadeByHandAreReverted(t *testing.T) {
	tests := map[string]func(*testing.T, *person){
		"helm rollback": func(t *testing.T, s *person) {
			rollback := action.NewRollback(s.config)
			rollback.Version = 1
			if err := rollback.Run("web"); err != nil {
				t.Fatal(err)
			}
		},
		"helm upgrade --reuse-values --set": func(t *testing.T, s *person) {
			last, err := s.config.Releases.Last("web")
			if err != nil {
				t.Fatal(err)
			}
			u := action.NewUpgrade(s.config)
			u.ReuseValues = true
			if _, err := u.Run("web", last.Chart, map[string]any{"color": "pink"}); err != nil {
				t.Fatal(err)
			}
		},
		"helm uninstall --keep-history": func(t *testing.T, s *person) {
			u := action.NewUninstall(s.config)
			u.KeepHistory = true
			if _, err := u.Run("web"); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, person := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			files := sources.ChartFolder(web(nil))
			tm.deploy(tm.request(files, "color=old"))
			r := tm.request(files, "color=red")
			before := tm.deploy(r)
			person(t, tm.helm())
			tm.catchUp()
			out := tm.deploy(r)
			if tm.configMap("web").Data["color"] != "red" || out.Release.Digest != before.Release.Digest {
				t.Errorf("color %s, release %v", tm.configMap("web").Data["color"], out.Release)
			}
		})
	}
}

func TestClusterScopedObjectsAreRefused(t *testing.T) {
	hooked := strings.Replace(clusterRole, "metadata:\n", "metadata:\n  annotations:\n    helm.sh/hook: test\n", 1)
	listed := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: root}}\n"
	sub := map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/templates/a.yaml": clusterRole}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"plain":             {map[string]string{"templates/a.yaml": clusterRole}, "ClusterRole/root"},
		"in a List":         {map[string]string{"templates/a.yaml": listed}, "ClusterRole/root"},
		"in a hook":         {map[string]string{"templates/a.yaml": hooked}, "ClusterRole/root"},
		"in a subchart":     {sub, "ClusterRole/root"},
		"in crds/":          {map[string]string{"crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: a.example.com\n"}, "CustomResourceDefinition/a.example.com"},
		"foreign namespace": {map[string]string{"templates/a.yaml": strings.Replace(configMap, "  name: a\n", "  name: a\n  namespace: kube-system\n", 1)}, "ConfigMap/a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			out := tm.settle(tm.request(sources.ChartFolder(web(test.files))))
			if !errors.As(out.Failed, new(*fault.NotAllowed)) || !strings.Contains(out.Failed.Error(), test.want) {
				t.Errorf("got %v, want NotAllowed with %s", out.Failed, test.want)
			}
			if left := tm.versions(); len(left) > 0 {
				t.Errorf("something was written: %v", left)
			}
		})
	}
}
