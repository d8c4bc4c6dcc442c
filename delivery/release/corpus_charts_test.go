package release

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// step is the next wanted state of a release; the first one is its installation.
type step struct {
	// chart is the folder of the sample that has the chart of this step; empty when there is only one.
	chart  string
	values string
	// before changes both sides by hand, person only the side of the helm command.
	before, person func(*side)
	// fails: both sides must fail.
	fails bool
	// actions change the defaults; flags are the same changes for the helm command.
	actions func(*v1alpha1.HelmActions)
	flags   []string
	// tested: the chart's tests run afterwards.
	tested bool
	// tried: kubeop records a failed revision, and keeps what it made, where helm refuses before it writes. kubeop finds out that an object
	// exists when it creates it; helm reads every object first, with one request each.
	tried bool
}

// sample is a chart and the steps that are taken with it. Without steps it is installed and upgraded with one value.
type sample struct {
	steps []step
	// folder of testdata/charts; empty when it has the name of the sample. files are generated instead.
	folder string
	files  func(*testing.T) fs.FS
	// kinds: the chart brings CustomResourceDefinitions.
	kinds bool
	// more: kubeop has more revisions, because of a tried step.
	more bool
}

var corpus = map[string]sample{
	"adopted":           {steps: []step{{before: given(helmsMarks)}, {values: "changed: true\n"}}},
	"api-version":       versions(),
	"capabilities":      {},
	"capabilities-helm": {},
	"chart-v1":          {},
	"crds-changed":      {kinds: true, steps: []step{{chart: "v1", actions: withKinds}, {chart: "v2", actions: withKinds, person: replaceKinds}}},
	"crds-instances":    {kinds: true, steps: []step{{actions: withKinds}, {values: "changed: true\n", actions: withKinds}}},
	"crds-subchart":     {kinds: true, steps: []step{{actions: withKinds}, {values: "changed: true\n", actions: withKinds}}},
	"edited":            {steps: []step{{}, {values: "color: red\n", before: edit}, {values: "image: web:v2\n"}}},
	"empty":             {},
	"fields-removed":    versions(),
	"files":             {},
	"functions":         {},
	"generated-names":   {},
	"hooks-events":      {},
	"hooks-failing":     {steps: []step{{}, {values: "ends: badly\n", fails: true}, {}}},
	"hooks-jobs":        {},
	"hooks-moved":       versions(),
	"hooks-policies":    {},
	"hooks-weights":     {},
	"immutable":         {steps: []step{{chart: "v1"}, {chart: "v2", fails: true}}},
	"keep":              {steps: []step{{chart: "v1"}, {chart: "v2", before: keepByHand}}},
	"kinds":             {},
	"labels":            {},
	"library":           {},
	"lists":             {steps: versions().steps, kinds: true}, // helm looks for kinds when it validates a List
	"lookup":            {steps: []step{{before: given(nil)}, {values: "password: second\n"}}},
	"namespaced":        {},
	"notes":             {},
	"ownership":         {more: true, steps: []step{{before: given(nil), fails: true, tried: true}}},
	"ownership-upgrade": {folder: "ownership", more: true, steps: []step{{values: "given: false\n"}, {before: given(nil), fails: true, tried: true}, {values: "given: false\nchanged: true\n"}}},
	"reference":         {},
	"renamed":           versions(),
	"schema":            {steps: []step{{}, {values: "image: {tag: v2}\nsub: {size: 10}\n"}}},
	"secrets":           {},
	"subcharts-conditions": {steps: []step{
		{},
		{values: "front: {enabled: false}\nback: {enabled: true, inner: {enabled: true}}\ntags: {extra: true}\ndecided: {enabled: false}\n"},
		{values: "tags: {more: true}\n"},
	}},
	"subcharts-globals": {steps: []step{{}, {values: "global: {registry: mine, nested: {b: mine}}\nchild: {table: {x: null}, list: []}\n"}}},
	"subcharts-import":  {steps: []step{{}, {values: "own: mine\nsource: {exports: {data: {port: 9090}}, settings: {database: {port: 1}}}\n"}}},
	"template-order":    {},
	"tests":             {},
	"tpl":               {},
	"values":            {steps: []step{{}, {values: oddValues}}},
	"windows":           {},
	"yaml-forms":        {},
	"keep-unknown":      {},

	// Actions other than the default.
	"crds-created":     {folder: "crds-changed", kinds: true, steps: []step{{chart: "v1", actions: createKinds}, {chart: "v1", values: "a: 1\n", actions: createKinds}}},
	"fails-and-cleans": {folder: "immutable", steps: []step{{chart: "v1"}, {chart: "v2", fails: true, flags: []string{"--cleanup-on-fail"}, actions: cleanUp}}},
	"hooks-disabled":   {folder: "hooks-events", steps: []step{{flags: []string{"--no-hooks"}, actions: withoutHooks}, {values: "changed: true\n", flags: []string{"--no-hooks"}, actions: withoutHooks}}},
	"immutable-forced": {folder: "immutable", steps: []step{{chart: "v1"}, {chart: "v2", person: removeImmutable, actions: force}}},
	"ownership-taken":  {folder: "ownership", steps: []step{{before: given(nil), flags: []string{"--take-ownership"}, actions: takeOver}}},
	"values-preserved": {folder: "values", steps: []step{{values: "new: 1\n"}, {values: "list: []\n", flags: []string{"--reuse-values"}, actions: preserve}}},

	"tests-run":     {folder: "tests", steps: []step{{tested: true, actions: withTests}, {values: "changed: true\n", tested: true, actions: withTests}}},
	"tests-failing": {folder: "tests", steps: []step{{values: "ends: badly\n", tested: true, actions: withTests}}},

	"unknown-fields":         {},
	"unknown-fields-ignored": {folder: "unknown-fields", steps: []step{{actions: ignoreFields, flags: []string{"--disable-openapi-validation"}}}},

	// Too large or binary, so they are generated.
	"huge":              {files: huge},
	"subcharts-archive": {files: archives},
}

// TestChartsOfTheCorpusEndAsWithHelm takes the same steps with kubeop and with the helm command, and compares everything that exists afterwards.
func TestChartsOfTheCorpusEndAsWithHelm(t *testing.T) {
	helm := newCommand(t)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: kindsRole},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"*"}}},
	}
	admin := adminClient(t)
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	go finish(t.Context(), admin)
	for name, c := range corpus {
		t.Run(name, func(t *testing.T) { c.run(t, name, helm) })
	}
}

func (c sample) run(t *testing.T, name string, helm *command) {
	all := sides(t, helm, c.source(t, name))
	if c.kinds {
		for _, s := range all {
			s.allowKinds()
		}
	}
	if c.steps == nil {
		c.steps = []step{{}, {values: "changed: true\n"}}
	}
	for number, st := range c.steps {
		advance(number, st, all, c.more)
	}
	if !c.more {
		alike("helm history", all, (*side).history)
	}
	for _, s := range all {
		s.remove(c.steps[len(c.steps)-1])
	}
	alike("objects after the uninstallation", all, (*side).objects)
}

func (c sample) source(t *testing.T, name string) fs.FS {
	if c.files != nil {
		return c.files(t)
	}
	return os.DirFS(filepath.Join("testdata/charts", cmp.Or(c.folder, name)))
}

// advance takes a step on both sides and compares them; where one side has more revisions, only the objects.
func advance(number int, st step, all []*side, more bool) {
	t := all[0].T
	t.Helper()
	for _, s := range all {
		if err := s.apply(number, st); (err != nil) != st.fails {
			t.Fatalf("step %d, by a person: %t: %v", number, s.person, err)
		}
	}
	if st.tested {
		for _, s := range all {
			s.test(st)
		}
	}
	if !st.tried {
		alike("objects", all, (*side).objects)
	}
	if !more {
		alike("helm status", all, (*side).status)
	}
}

func versions() sample { return sample{steps: []step{{chart: "v1"}, {chart: "v2"}, {chart: "v1"}}} }

const oddValues = `
table: {b: {c: null}, e: [1]}
gone: null
list: []
integer: 12345678901
float: 1.0e-7
port: "8080"
text: 007
dotted.key: {a: 1}
new: {deep: {er: true}}
`

// helmsMarks sets the metadata that Helm requires of an object before it adopts it.
func helmsMarks(s *side, c *corev1.ConfigMap) {
	c.Labels = map[string]string{cluster.ManagedByLabel: cluster.ManagedByHelm}
	c.Annotations = map[string]string{cluster.NameAnnotation: "web", cluster.NamespaceAnnotation: s.namespace}
}

// given creates the ConfigMap "given".
func given(mark func(*side, *corev1.ConfigMap)) func(*side) {
	return func(s *side) {
		s.Helper()
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "given"}, Data: map[string]string{"color": "green", "other": "kept"}}
		if mark != nil {
			mark(s, c)
		}
		if _, err := s.admin.CoreV1().ConfigMaps(s.namespace).Create(s.Context(), c, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

// edit changes objects as autoscalers, operators and people do.
func edit(s *side) {
	s.Helper()
	changed := s.configMap("changed")
	changed.Data = map[string]string{"color": "green", "mine": "yes"}
	changed.Labels["mine"] = "yes"
	s.update(changed)
	if err := s.admin.CoreV1().ConfigMaps(s.namespace).Delete(s.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	patch := []byte(`{"spec":{"paused":true,"template":{"metadata":{"annotations":{"restartedAt":"now"}},"spec":{"containers":[{"name":"web","image":"web:mine"},{"name":"injected","image":"side:v1"}]}}}}`)
	if _, err := s.admin.AppsV1().Deployments(s.namespace).Patch(s.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// keepByHand sets the policy on objects whose manifest lacks it.
func keepByHand(s *side) {
	s.Helper()
	for _, name := range []string{"by-hand", "dropped-late"} {
		c := s.configMap(name)
		c.Annotations["helm.sh/resource-policy"] = "keep"
		s.update(c)
	}
}

func withKinds(a *v1alpha1.HelmActions) {
	a.Install.CRDs, a.Upgrade.CRDs = v1alpha1.CRDsCreateReplace, v1alpha1.CRDsCreateReplace
}

func createKinds(a *v1alpha1.HelmActions) {
	a.Install.CRDs, a.Upgrade.CRDs = v1alpha1.CRDsCreate, v1alpha1.CRDsCreate
}

// withTests runs the tests and ignores their failures, as helm does.
func withTests(a *v1alpha1.HelmActions) { a.Test.Enable, a.Test.IgnoreFailures = true, true }

func ignoreFields(a *v1alpha1.HelmActions) {
	a.Install.DisableOpenAPIValidation, a.Upgrade.DisableOpenAPIValidation = true, true
}

func cleanUp(a *v1alpha1.HelmActions)  { a.Upgrade.CleanupOnFail = true }
func force(a *v1alpha1.HelmActions)    { a.Upgrade.Force = true }
func takeOver(a *v1alpha1.HelmActions) { a.Install.TakeOwnership = true }
func preserve(a *v1alpha1.HelmActions) { a.Upgrade.PreserveValues = true }

func withoutHooks(a *v1alpha1.HelmActions) {
	a.Install.DisableHooks, a.Upgrade.DisableHooks, a.Uninstall.DisableHooks = true, true, true
}

// replaceKinds replaces definitions before an upgrade, as a person does with kubectl: helm never changes an existing kind.
func replaceKinds(s *side) {
	s.Helper()
	for _, file := range s.read("v2/crds") {
		docs, err := manifest.Parse(file)
		if err != nil {
			s.Fatal(err)
		}
		for _, o := range manifest.Objects(docs) {
			s.replace(o)
		}
	}
}

// removeImmutable deletes an object that cannot be changed; no flag of helm 3 does that.
func removeImmutable(s *side) {
	s.Helper()
	background := metav1.DeletePropagationBackground
	err := errors.Join(
		s.admin.BatchV1().Jobs(s.namespace).Delete(s.Context(), "once", metav1.DeleteOptions{PropagationPolicy: &background}),
		s.admin.CoreV1().Secrets(s.namespace).Delete(s.Context(), "fixed", metav1.DeleteOptions{}))
	if err != nil {
		s.Fatal(err)
	}
}

// huge is a chart as large as Helm's record of it may be.
func huge(*testing.T) fs.FS {
	return sources.ChartFolder(map[string]string{
		"noise": noise(740 << 10),
		"templates/many.yaml": `{{- range until 50 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: many-{{ . }}}
data: {changed: {{ $.Values.changed | default false | quote }}, noise: {{ $.Files.Get "noise" | sha256sum }}}
{{- end }}
`})
}

// archives is a chart with packed subcharts, one of which has a packed subchart itself.
func archives(t *testing.T) fs.FS {
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata:\n  changed: {{ .Values.global.changed | quote }}\n"
	inner := string(sources.ChartArchive(t, "inner", map[string]string{"Chart.yaml": "apiVersion: v2\nname: inner\nversion: 3.0.0\n", "templates/a.yaml": config}))
	outer := string(sources.ChartArchive(t, "outer", map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: outer\nversion: 2.0.0\ndependencies: [{name: inner, version: ^3.0.0}]\n",
		"templates/a.yaml":       config,
		"charts/inner-3.0.0.tgz": inner,
	}))
	return sources.ChartFolder(map[string]string{
		"Chart.yaml":             sources.ChartYAML + "dependencies: [{name: outer, version: 2.x, repository: https://charts.example.com}]\n",
		"values.yaml":            "changed: false\nglobal: {changed: first}\n",
		"charts/outer-2.0.0.tgz": outer,
		"templates/a.yaml":       config + "  own: {{ .Values.changed | quote }}\n",
	})
}
