package controllers

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// badInput is an app that cannot be delivered as it is.
type badInput struct {
	// helm is the content of spec.helm, chart the files of its chart beside or instead of the plain one's, others files
	// beside app.yaml.
	helm          string
	chart, others map[string]string
	// project is the project of the app, "shop" by default, and more the other fields of the spec.
	project, more string

	condition, reason string
	stalled           bool
	// say are the texts that the message has to contain.
	say []string
	// mend is pushed and mended called, after which the app is ready; with neither it stays broken.
	mend   *badInput
	mended func(*team)
}

// plainChart holds one ConfigMap of the release's name.
var plainChart = map[string]string{
	"Chart.yaml":            chartFile,
	"values.yaml":           "greeting: hello\n",
	"templates/config.yaml": configTemplate("{{ .Release.Name }}", "greeting: {{ .Values.greeting }}"),
}

func configTemplate(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  " + data + "\n"
}

const (
	badFile      = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n  type: Helm\n  retryInterval: 1s\n  %s\n  helm: {%s}\n"
	smallProject = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: %s}\nspec:\n  quota: {%s}\n"
	numberSchema = `{"properties": {"greeting": {"type": "number"}}}`
	anyWidget    = "apiVersion: bad.example/v1\nkind: Widget\nmetadata: {name: x}\n"
	definition   = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.bad.example}
spec:
  group: bad.example
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	refusedHook = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: migration, annotations: {helm.sh/hook: pre-install}}\ndata: {not/a/key: x}\n"
)

func (b *badInput) in() string { return cmp.Or(b.project, "shop") }

// files returns the app's, in the tenant's repository.
func (b *badInput) files(name string) map[string]string {
	folder := "projects/" + b.in() + "/apps/" + name + "/"
	files := map[string]string{folder + "app.yaml": fmt.Sprintf(badFile, name, b.more, b.helm)}
	if strings.Contains(b.helm, "path: chart") {
		for file, content := range plainChart {
			files[folder+"chart/"+file] = content
		}
	}
	for file, content := range b.chart {
		files[folder+"chart/"+file] = content
	}
	for file, content := range b.others {
		files[folder+file] = content
	}
	return files
}

// chartServer is a Helm repository of one chart in sizes that fit and that do not, and may be down.
type chartServer struct {
	url    string
	digest string
	down   atomic.Bool
}

func newChartServer(t *testing.T) *chartServer {
	t.Helper()
	noise := rand.NewChaCha8([32]byte{})
	random := func(size int) string {
		content := make([]byte, size)
		_, _ = noise.Read(content)
		return string(content)
	}
	heavy := maps.Clone(plainChart)
	heavy["files/picture"] = random(2 << 20)
	archives := map[string][]byte{
		"/good.tgz": packed(t, plainChart), "/other.tgz": packed(t, plainChart), "/heavy.tgz": packed(t, heavy), "/huge.tgz": append([]byte{0x1f, 0x8b, 8}, random(20<<20)...),
		"/page.tgz": []byte("<html>not an archive</html>"),
	}
	s := &chartServer{digest: fmt.Sprintf("%x", sha256.Sum256(archives["/good.tgz"]))}
	list := "apiVersion: v1\nentries:\n"
	for path := range archives {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "/"), ".tgz")
		list += fmt.Sprintf("  %s:\n  - {name: %s, version: 0.1.0, urls: [%s.tgz]", name, name, name)
		if name == "other" {
			list += ", digest: " + strings.Repeat("0", 64)
		}
		list += "}\n"
	}
	archives["/index.yaml"] = []byte(list)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := archives[r.URL.Path]
		switch {
		case s.down.Load():
			http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = w.Write(content)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// chart refers to a chart of the server in spec.helm.
func (s *chartServer) chart(name string) string {
	return fmt.Sprintf("repository: %q, chart: %s", s.url, name)
}

func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := strings.Replace(files[name], "name: hello", "name: good", 1)
		if err := archive.WriteHeader(&tar.Header{Name: "good/" + name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// badInputs are apps by their names; gone is a server that is down when they are pushed.
func badInputs(charts, gone *chartServer) map[string]badInput {
	wrong, right := "sha256:"+strings.Repeat("0", 64), "sha256:"+charts.digest
	const source, rendered, released = v1alpha1.SourceReadyCondition, v1alpha1.RenderedCondition, v1alpha1.ReleasedCondition
	inPath := func(more string) *badInput { return &badInput{helm: "path: chart" + more} }
	return map[string]badInput{
		"reference": {
			helm: "path: chart, valuesFrom: [{kind: ConfigMap, name: settings}]", condition: rendered, reason: v1alpha1.ValuesFailedReason,
			say: []string{"valuesFrom", "ConfigMap settings does not exist"},
			mended: func(n *team) {
				n.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "settings"}, Data: map[string]string{"values.yaml": "greeting: hi"}})
			},
		},
		"notyaml": {
			helm: "path: chart, valuesFiles: [production.yaml]", others: map[string]string{"production.yaml": "greeting: hi\n  oops: [\n"},
			condition: rendered, reason: v1alpha1.ValuesFailedReason, stalled: true, say: []string{"production.yaml:2:"},
		},
		"chartfile": {
			helm: "path: chart, chartValuesFiles: [values-production.yaml]", condition: released, reason: v1alpha1.RenderFailedReason, stalled: true,
			say: []string{"chart hello", "values file values-production.yaml"},
		},
		"schema": {
			helm: "path: chart", chart: map[string]string{"values.schema.json": numberSchema}, condition: released, reason: v1alpha1.RenderFailedReason, stalled: true,
			say:  []string{"greeting", "got string, want number", "schema"},
			mend: &badInput{helm: "path: chart, values: {greeting: 5}", chart: map[string]string{"values.schema.json": numberSchema, "templates/config.yaml": configTemplate("{{ .Release.Name }}", "greeting: {{ .Values.greeting | quote }}")}},
		},
		"template": {
			helm: "path: chart", chart: map[string]string{"templates/config.yaml": configTemplate("x", "greeting: {{ .Values.nothing.here }}")},
			condition: released, reason: v1alpha1.RenderFailedReason, stalled: true, say: []string{"templates/config.yaml:6:", ".Values.nothing.here"}, mend: inPath(""),
		},
		"syntax": {
			helm: "path: chart", chart: map[string]string{"templates/config.yaml": configTemplate("x", "greeting: {{ if }}")},
			condition: released, reason: v1alpha1.RenderFailedReason, stalled: true, say: []string{"templates/config.yaml:6", "missing value for if"},
		},
		"indent": {
			helm: "path: chart", chart: map[string]string{"templates/config.yaml": configTemplate("x", "greeting: a\n bad: b")},
			condition: released, reason: v1alpha1.RenderFailedReason, stalled: true, say: []string{"templates/config.yaml", "line"},
		},
		"kubeversion": {
			helm: "path: chart", chart: map[string]string{"Chart.yaml": chartFile + "kubeVersion: '>=99.0.0'\n"},
			condition: released, reason: v1alpha1.RenderFailedReason, stalled: true, say: []string{"kubeVersion", ">=99.0.0", "v1."}, mend: inPath(""),
		},
		"huge": {helm: charts.chart("huge"), condition: source, reason: v1alpha1.TooLargeReason, stalled: true, say: []string{"chart", "20 MiB"}},
		"heavy": {
			helm: charts.chart("heavy"), condition: released, reason: v1alpha1.TooLargeReason, stalled: true, say: []string{"1 MiB", ".helmignore"},
		},
		"page":  {helm: charts.chart("page"), condition: source, reason: v1alpha1.InvalidSourceReason, stalled: true, say: []string{charts.url}},
		"index": {helm: charts.chart("other"), condition: source, reason: v1alpha1.FetchFailedReason, say: []string{charts.url, right, "the repository lists " + wrong}},
		"digest": {
			helm: charts.chart("good") + ", digest: " + wrong, condition: source, reason: v1alpha1.DigestMismatchReason, stalled: true,
			say: []string{"good", wrong, right}, mend: &badInput{helm: charts.chart("good") + ", digest: " + right},
		},
		"down": {
			helm: gone.chart("good"), condition: source, reason: v1alpha1.FetchFailedReason, say: []string{gone.url, "503"},
			mended: func(*team) { gone.down.Store(false) },
		},
		"nobody": {helm: "repository: \"http://127.0.0.1:1\", chart: good", condition: source, reason: v1alpha1.FetchFailedReason, say: []string{"http://127.0.0.1:1", "refused"}},
		"many": {
			project: "small", helm: "path: chart", chart: map[string]string{"templates/more.yaml": "{{ range until 9 }}\n---\n" + configTemplate("more-{{ . }}", "a: b") + "{{ end }}"},
			condition: released, reason: v1alpha1.RetryingReason, say: []string{"configmaps \"more-", "exceeded quota: kubeop", "limited: count/configmaps=4"}, mended: func(*team) {},
		},
		"record": {
			project: "bare", helm: "path: chart", condition: released, reason: v1alpha1.RetryingReason,
			say: []string{"recording revision 1", "sh.helm.release.v1.record.v1", "exceeded quota: kubeop", "count/secrets=0"}, mended: func(*team) {},
		},
		"pods": {
			project: "still", helm: "path: chart, values: {replicas: 1}", more: "timeout: 2s", chart: shopChart, condition: v1alpha1.HealthyCondition, reason: v1alpha1.UnhealthyReason,
			say: []string{"Deployment/pods", "exceeded quota"},
		},
		"kind": {
			helm: "path: chart", chart: map[string]string{"templates/role.yaml": clusterRole}, condition: released, reason: v1alpha1.NotAllowedReason, stalled: true,
			say: []string{"ClusterRole/taken-over", "cluster-scoped"},
		},
		"hook": {
			helm: "path: chart", chart: map[string]string{"templates/hook.yaml": refusedHook}, condition: released, reason: v1alpha1.InstallFailedReason,
			say:  []string{"pre-install", "templates/hook.yaml", `ConfigMap "migration"`, "not/a/key"},
			mend: &badInput{helm: "path: chart, install: {disableHooks: true}", chart: map[string]string{"templates/hook.yaml": refusedHook}},
		},
		"widget": {
			helm: "path: chart", chart: map[string]string{"templates/widget.yaml": anyWidget}, condition: released, reason: v1alpha1.NotAllowedReason,
			say: []string{"Widget/x", "bad.example/v1", "does not know"}, mended: (*team).serveWidgets,
		},
		"crds": {
			helm: "path: chart", chart: map[string]string{"crds/widget.yaml": definition}, condition: released, reason: v1alpha1.NotAllowedReason, stalled: true,
			say:  []string{"CustomResourceDefinition/widgets.bad.example", "crds/widget.yaml", "administrator", "crds: Skip"},
			mend: &badInput{helm: "path: chart, install: {crds: Skip}", chart: map[string]string{"crds/widget.yaml": definition}},
		},
		"patch": {
			helm:      `path: chart, postRenderers: [{kustomize: {patches: [{patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: nowhere}, data: {a: b}}"}]}}]`,
			condition: released, reason: v1alpha1.RenderFailedReason, stalled: true,
			say:  []string{"postRenderers[0].kustomize.patches[0]", "ConfigMap", "nowhere"},
			mend: inPath(`, postRenderers: [{kustomize: {patches: [{patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: patch}, data: {a: b}}"}]}}]`),
		},
		"badpatch": {
			helm:      `path: chart, postRenderers: [{kustomize: {patches: [{patch: "[{op: remove, path: /data/none}]", target: {kind: ConfigMap}}]}}]`,
			condition: released, reason: v1alpha1.RenderFailedReason, stalled: true, say: []string{"postRenderers[0].kustomize.patches[0]", "ConfigMap/badpatch", "/data/none"},
		},
		"labels": {
			helm: "path: chart, commonMetadata: {labels: {paas.kubeop.io/tenant: road}}", condition: released, reason: v1alpha1.NotAllowedReason, stalled: true,
			say: []string{"commonMetadata", "paas.kubeop.io/tenant"}, mend: inPath(", commonMetadata: {labels: {team: road}}"),
		},
	}
}

// TestBadInputIsExplainedAndTheAppIsReadyOnceCorrected pushes, in one commit beside a good app, apps that cannot be delivered: each reports what is wrong, where, and
// what to do, is Stalled only if a retry cannot help, and is ready after the correction.
func TestBadInputIsExplainedAndTheAppIsReadyOnceCorrected(t *testing.T) {
	n := newTeam(t, "badinput")
	charts, gone := newChartServer(t), newChartServer(t)
	gone.down.Store(true)
	inputs := badInputs(charts, gone)
	files := shopFiles("shop", "good")
	files["projects/small/project.yaml"] = fmt.Sprintf(smallProject, "small", `count/configmaps: "4"`)
	files["projects/still/project.yaml"] = fmt.Sprintf(smallProject, "still", `pods: "0"`)
	files["projects/bare/project.yaml"] = fmt.Sprintf(smallProject, "bare", `count/secrets: "0"`)
	for name, b := range inputs {
		maps.Copy(files, b.files(name))
	}
	n.push(files)
	for name, b := range inputs {
		t.Run(name, func(t *testing.T) {
			each := *n
			each.t = t
			each.reportsBadInput(name, b)
		})
	}
	n.ready(n.app("shop", "good"))
	n.logsNoErrors()

	mends := map[string]string{}
	for _, project := range []string{"small", "bare"} {
		mends["projects/"+project+"/project.yaml"] = fmt.Sprintf(smallProject, project, `count/configmaps: "100"`)
	}
	for name, b := range inputs {
		if b.mended != nil {
			b.mended(n)
		}
		if b.mend != nil {
			maps.Copy(mends, b.mend.files(name))
		}
	}
	n.push(mends)
	for name, b := range inputs {
		if b.mend == nil && b.mended == nil {
			continue
		}
		app := n.app(b.in(), name)
		n.ready(app)
		if conditions.IsStalled(app) {
			t.Errorf("%s is Stalled though ready", name)
		}
	}
}

// logsNoErrors checks that the operator's log has the failures of the tenant's objects as information, and that it has them.
func (n *team) logsNoErrors() {
	n.t.Helper()
	information := 0
	for line := range strings.Lines(n.log()) {
		if !strings.Contains(line, n.namespace()) {
			continue
		}
		if strings.Contains(line, `"level"=0 "msg"="An object of a tenant failed`) {
			information++
		}
		if strings.Contains(line, `"error"=`) {
			n.t.Errorf("the log blames the operator: %s", line)
		}
	}
	if information == 0 {
		n.t.Error("the log has no failure of a tenant")
	}
}

// TestMissingFilesAreNamedInTheirApp refers to a chart and a values file that are not beside app.yaml: the Repository names them
// with line and column, and the project stays as it was.
func TestMissingFilesAreNamedInTheirApp(t *testing.T) {
	n := newTeam(t, "lostfiles")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	lost := badInput{helm: "path: nowhere, valuesFiles: [production.yaml]"}
	repository := n.synced(n.push(lost.files("lost")), metav1.ConditionFalse)
	problems := strings.Join(repository.Status.Problems, "\n")
	t.Log(problems)
	for _, want := range []string{"projects/shop/apps/lost/app.yaml:8:39: spec.helm.valuesFiles[0]", `no file "production.yaml"`, "spec.helm.path", `"nowhere"`} {
		if !strings.Contains(problems, want) {
			t.Errorf("the problems do not say %q", want)
		}
	}
	n.ready(n.app("shop", "web"))
	n.synced(n.push(map[string]string{"projects/shop/apps/lost": "-"}), metav1.ConditionTrue)
}

// TestAnUpgradeRefusedByTheQuotaIsRetriedWithoutRollback: it is retried as often as needed, neither held nor rolled back, and without filling
// the storage. An upgrade whose input is wrong, afterwards, is rolled back to the last good revision.
func TestAnUpgradeRefusedByTheQuotaIsRetriedWithoutRollback(t *testing.T) {
	n := newTeam(t, "stormy")
	const project = "projects/shop/project.yaml"
	app := n.app("shop", "web")
	ship := func(quota string, b badInput) {
		t.Helper()
		files := b.files("web")
		files[project] = fmt.Sprintf(smallProject, "shop", "count/configmaps: \""+quota+"\"")
		n.push(files)
	}
	more := badInput{helm: "path: chart, values: {greeting: more}", chart: map[string]string{"templates/more.yaml": configTemplate("more", "a: b")}}
	ship("2", badInput{helm: "path: chart, values: {greeting: one}"})
	n.ready(app)
	n.eventually(func() error { // Kubernetes makes this one in its own time.
		return n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	})
	// The quota has room for the ConfigMaps that are counted. One that is about as old as the quota may not be.
	quota := &corev1.ResourceQuota{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "kubeop"}, quota); err != nil {
		t.Fatal(err)
	}
	used := quota.Status.Used["count/configmaps"]
	full := used.String()
	ship(full, more)
	n.until(app, v1alpha1.ReleasedCondition, metav1.ConditionFalse, v1alpha1.RetryingReason)
	n.eventually(func() error {
		if history := n.history(app); app.Status.Release.Revision < 9 {
			return fmt.Errorf("the history is %v", history)
		}
		return nil
	})
	if got := n.history(app); len(got) > 6 || !slices.Contains(got, "1 deployed") {
		t.Errorf("the history is %v, want revision 1 deployed and at most 5 others", got)
	}
	if conditions.IsStalled(app) || conditions.Has(app, v1alpha1.RemediatedCondition) {
		t.Errorf("the app was held or rolled back, want retries: %+v", app.Status.Conditions)
	}
	ship(full, badInput{helm: "path: chart, values: {greeting: bad}", chart: map[string]string{"templates/more.yaml": configTemplate("more", "not/a/key: b")}})
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.HeldReason)
	if !strings.Contains(message, "rolled back to revision 1") || !strings.Contains(message, "not/a/key") {
		t.Errorf("the message of Ready is %q, want a rollback to revision 1 because of not/a/key", message)
	}
	n.greets("one")
	ship("9", more)
	n.greets("more")
	n.ready(app)
}

// TestAnUpgradeThatDoesNotRenderLeavesTheRelease: it is neither counted nor held. It is released once the cluster knows the
// kind, or the template is right, it is released.
func TestAnUpgradeThatDoesNotRenderLeavesTheRelease(t *testing.T) {
	n := newTeam(t, "unrendered")
	app := n.app("shop", "web")
	ship := func(template string) {
		t.Helper()
		files := (&badInput{helm: "path: chart", chart: map[string]string{"templates/more.yaml": template}}).files("web")
		maps.Copy(files, shopFiles("shop"))
		n.push(files)
	}
	ship("")
	n.ready(app)
	cases := map[string]struct {
		template, reason string
		stalled          bool
	}{
		"a template": {"{{ fail \"set the greeting\" }}", v1alpha1.RenderFailedReason, true},
		"a kind":     {"apiVersion: never.example/v1\nkind: Thing\nmetadata: {name: x}\n", v1alpha1.NotAllowedReason, false},
	}
	for name, c := range cases {
		ship(c.template)
		n.until(app, v1alpha1.ReleasedCondition, metav1.ConditionFalse, c.reason)
		time.Sleep(3 * time.Second)
		n.until(app, v1alpha1.ReleasedCondition, metav1.ConditionFalse, c.reason)
		if got := n.history(app); conditions.IsStalled(app) != c.stalled || len(got) != 1 || got[0] != "1 deployed" {
			t.Errorf("%s: Stalled is %t, the history %v; want Stalled %t and one revision", name, conditions.IsStalled(app), got, c.stalled)
		}
	}
	ship(configTemplate("more", "a: b"))
	n.ready(app)
	if got := n.history(app); len(got) != 2 {
		t.Errorf("the history is %v, want 2 revisions", got)
	}
}

// serveWidgets defines the kind Widget and lets apps hold it, as an administrator would.
func (n *team) serveWidgets() {
	n.t.Helper()
	n.create(n.object("", definition))
	n.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets", Labels: map[string]string{
			"paas.kubeop.io/aggregate-to-deployer": "true", "paas.kubeop.io/aggregate-to-watch": "true",
		}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"bad.example"}, Resources: []string{"widgets"}, Verbs: []string{rbacv1.VerbAll}}},
	})
}

// reportsBadInput checks the conditions of an app that cannot be delivered.
func (n *team) reportsBadInput(name string, b badInput) {
	t := n.t
	t.Helper()
	app := n.app(b.in(), name)
	message := n.until(app, b.condition, metav1.ConditionFalse, "")
	c := conditions.Get(app, b.condition)
	t.Logf("%s=%s %s (Stalled %t): %s", b.condition, c.Status, c.Reason, conditions.IsStalled(app), message)
	if c.Reason != b.reason {
		t.Errorf("the reason is %s, want %s", c.Reason, b.reason)
	}
	if conditions.GetReason(app, v1alpha1.ReadyCondition) != c.Reason || conditions.GetMessage(app, v1alpha1.ReadyCondition) != message {
		t.Errorf("Ready is %s: %s, want reason and message of %s", conditions.GetReason(app, v1alpha1.ReadyCondition), conditions.GetMessage(app, v1alpha1.ReadyCondition), b.condition)
	}
	if conditions.IsStalled(app) != b.stalled || conditions.IsReconciling(app) == b.stalled {
		t.Errorf("Stalled is %t, Reconciling %t; want Stalled %t", conditions.IsStalled(app), conditions.IsReconciling(app), b.stalled)
	}
	for _, want := range b.say {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q in it", message, want)
		}
	}
}
