package release

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

var update = flag.Bool("update", false, "write testdata/messages.golden anew")

// Classes of what can be wrong with a chart.
const (
	isRendering = "rendering" // ErrRender: only another chart or other values help
	isRefused   = "refused"   // *NotAllowed: the platform does not allow it to an app
	isFailed    = "failed"    // the API server or a hook failed, which may succeed the next time
)

// templateOf is a template with one object.
func templateOf(apiVersion, kind, rest string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\n%s", apiVersion, kind, rest)
}

func configOf(data string) string {
	return templateOf("v1", "ConfigMap", "metadata:\n  name: web\ndata:\n  a: "+data+"\n")
}

func inTemplate(text string) map[string]string { return map[string]string{"templates/a.yaml": text} }

const roleRest = "metadata: {name: web}\nrules: []\n"

// bad are charts that cannot be installed. testdata/messages.golden has the message about each.
var bad = map[string]struct {
	files  map[string]string
	values string
	before func(*side)
	class  string
	// environment: the environment is the cause.
	environment bool
}{
	"Chart.yaml missing":            {files: map[string]string{"Chart.yaml": ""}, class: isRendering},
	"Chart.yaml unreadable":         {files: map[string]string{"Chart.yaml": "name: [web\n"}, class: isRendering},
	"Chart.yaml without a version":  {files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\n"}, class: isRendering},
	"dependency missing":            {files: map[string]string{"Chart.yaml": sources.ChartYAML + "dependencies: [{name: db, version: 1.x, repository: https://charts.example.com}]\n"}, class: isRendering},
	"kubeVersion that does not fit": {files: map[string]string{"Chart.yaml": sources.ChartYAML + "kubeVersion: \">=9.0.0\"\n"}, class: isRendering},
	"library chart":                 {files: map[string]string{"Chart.yaml": sources.ChartYAML + "type: library\n"}, class: isRendering},
	"too large to record":           {files: map[string]string{"noise": noise(1 << 20)}, class: isRendering},
	"values unreadable":             {files: map[string]string{"values.yaml": "a: [\n"}, class: isRendering},

	"schema violated":                 {files: map[string]string{"values.schema.json": `{"properties":{"image":{"required":["tag"],"properties":{"replicas":{"type":"integer"}}}}}`}, values: "image: {replicas: two}", class: isRendering},
	"schema violated in a subchart":   {files: map[string]string{"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/values.schema.json": `{"properties":{"size":{"maximum":10}}}`}, values: "db: {size: 11}", class: isRendering},
	"schema unreadable":               {files: map[string]string{"values.schema.json": `{"type":`}, class: isRendering},
	"schema that refers to elsewhere": {files: map[string]string{"values.schema.json": `{"$ref":"file:///etc/passwd"}`}, class: isRendering},

	"template: value that is required": {files: inTemplate(configOf(`{{ required "set image.tag to a version" .Values.tag }}`)), class: isRendering},
	"template: table that is not set":  {files: inTemplate("\n\n" + configOf("{{ .Values.image.tag.name }}")), class: isRendering},
	"template: fail":                   {files: inTemplate(`{{ fail "persistence needs a size" }}`), class: isRendering},
	"template: unknown function":       {files: inTemplate("\n" + configOf("{{ nosuch 1 }}")), class: isRendering},
	"template: unknown include":        {files: inTemplate(configOf(`{{ include "web.labels" . }}`)), class: isRendering},
	"template: include without an end": {files: inTemplate(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), class: isRendering},
	"template: unclosed":               {files: inTemplate("{{ if .Values.a }}\n"), class: isRendering},
	"template: in a subchart":          {files: map[string]string{"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/templates/x.yaml": configOf("{{ .Values.a.b }}")}, class: isRendering},
	"template: in a named template":    {files: map[string]string{"templates/_h.tpl": "{{ define \"x\" }}\n{{ .Values.a.b }}{{ end }}", "templates/a.yaml": configOf(`{{ include "x" . }}`)}, class: isRendering},
	"template: lookup of no kind":      {files: inTemplate(configOf(`{{ lookup "example.com/v1" "Nothing" "" "" | len }}`)), class: isFailed, environment: true},
	"template: lookup elsewhere":       {files: inTemplate(configOf(`{{ lookup "v1" "Secret" "kube-system" "" | len }}`)), class: isFailed},

	"manifest: broken YAML":     {files: inTemplate(templateOf("v1", "ConfigMap", "metadata:\n  name: web\n data: {}\n")), class: isRendering},
	"manifest: tab":             {files: inTemplate(templateOf("v1", "ConfigMap", "metadata:\n\tname: web\n")), class: isRendering},
	"manifest: no kind":         {files: inTemplate("metadata:\n  name: web\n"), class: isRendering},
	"manifest: no name":         {files: inTemplate(templateOf("v1", "ConfigMap", "data: {}\n")), class: isRendering},
	"manifest: invalid name":    {files: inTemplate(templateOf("v1", "ConfigMap", "metadata: {name: Web_1}\n")), class: isFailed},
	"manifest: object twice":    {files: inTemplate(configOf("one") + "---\n" + configOf("two")), class: isFailed},
	"manifest: wrong type":      {files: inTemplate(templateOf("v1", "ConfigMap", "metadata: {name: web}\ndata: {port: 80}\n")), class: isFailed},
	"manifest: invalid service": {files: inTemplate(templateOf("v1", "Service", "metadata: {name: web}\nspec: {type: ClusterIp, ports: [{port: 0}]}\n")), class: isFailed},
	"manifest: two are invalid": {files: inTemplate(templateOf("v1", "Service", "metadata: {name: one}\n---\n") + templateOf("v1", "ConfigMap", "metadata: {name: two, labels: {a: \"b c\"}}\n")), class: isFailed},

	"policy: cluster-wide object": {files: inTemplate(templateOf("rbac.authorization.k8s.io/v1", "ClusterRole", roleRest)), class: isRefused},
	"policy: cluster-wide hook":   {files: inTemplate(templateOf("rbac.authorization.k8s.io/v1", "ClusterRole", "metadata: {name: web, annotations: {helm.sh/hook: pre-install}}\n")), class: isRefused},
	"policy: kind in templates":   {files: inTemplate(templateOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "metadata: {name: things.example.com}\n")), class: isRefused},
	"policy: another namespace":   {files: inTemplate(templateOf("v1", "ConfigMap", "metadata: {name: web, namespace: kube-system}\n")), class: isRefused},
	"policy: kind nobody knows":   {files: inTemplate(templateOf("example.com/v1", "Nothing", "metadata: {name: web}\n")), class: isRefused},
	"policy: several":             {files: inTemplate(templateOf("rbac.authorization.k8s.io/v1", "ClusterRole", roleRest+"---\n") + templateOf("v1", "Namespace", "metadata: {name: web}\n")), class: isRefused},
	"cluster: a foreign object":   {files: inTemplate(templateOf("v1", "ConfigMap", "metadata: {name: given}\n")), before: given(nil), class: isFailed},
	"cluster: quota":              {files: inTemplate(configOf("one")), before: noRoom, class: isFailed, environment: true},
	"cluster: rights":             {files: inTemplate(templateOf("v1", "ResourceQuota", "metadata: {name: web}\nspec: {hard: {pods: \"1\"}}\n")), class: isRefused},
	"hook: invalid":               {files: inTemplate(templateOf("v1", "ConfigMap", "metadata: {name: Web_1, annotations: {helm.sh/hook: pre-install}}\n")), class: isFailed},
	"hook: job fails":             {files: inTemplate(ending("Job", "badly")), class: isFailed},
	"hook: pod fails":             {files: inTemplate(ending("Pod", "badly")), class: isFailed},
	"hook: takes too long":        {files: inTemplate(ending("Job", "never")), class: isFailed},
}

// ending is a hook that ends well, badly or never.
func ending(kind, how string) string {
	metadata := fmt.Sprintf("metadata: {name: migrate, labels: {ends: %s}, annotations: {helm.sh/hook: pre-install}}\n", how)
	if how == "never" {
		metadata = strings.Replace(metadata, "ends:", "runs:", 1)
	}
	const pod = "{restartPolicy: Never, schedulerName: nobody, containers: [{name: a, image: \"a:v1\"}]}"
	if kind == "Pod" {
		return templateOf("v1", kind, metadata+"spec: "+pod+"\n")
	}
	return templateOf("batch/v1", kind, metadata+"spec: {managedBy: example.com/test, template: {spec: "+pod+"}}\n")
}

// noRoom fills the quota of ConfigMaps, as soon as its controller has counted.
func noRoom(s *side) {
	s.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
	q.Spec.Hard = corev1.ResourceList{"count/configmaps": resource.MustParse("0")}
	if _, err := s.admin.CoreV1().ResourceQuotas(s.namespace).Create(s.Context(), q, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	for range 300 {
		counted, err := s.admin.CoreV1().ResourceQuotas(s.namespace).Get(s.Context(), "none", metav1.GetOptions{})
		if err != nil {
			s.Fatal(err)
		}
		// The cluster's own ConfigMap is the one that counts.
		if used := counted.Status.Used["count/configmaps"]; used.Value() == 1 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Fatal("nobody counts for the quota")
}

// TestMessagesOfTheCorpusAreThoseOfTheGoldenFile compares every message about a chart that cannot be installed with the golden file.
func TestMessagesOfTheCorpusAreThoseOfTheGoldenFile(t *testing.T) {
	const golden = "testdata/messages.golden"
	want := messagesOf(t, golden)
	var mu sync.Mutex
	got := map[string]string{}
	t.Cleanup(func() {
		if *update {
			keepMessages(t, golden, got)
		}
	})
	go finish(t.Context(), adminClient(t))
	for name, test := range bad {
		t.Run(name, func(t *testing.T) {
			s := &side{team: newTeam(t), charts: t.TempDir()}
			if test.before != nil {
				test.before(s)
			}
			s.copy(sources.ChartFolder(test.files))
			r := s.wanted(step{}, test.values)
			r.Timeout = 3 * time.Second
			out := s.settle(r)
			if out.Failed == nil {
				t.Fatal("it was installed")
			}
			if class := classOf(out.Failed); class != test.class {
				t.Errorf("%s, want %s", class, test.class)
			}
			if out.Environment != test.environment {
				t.Errorf("Environment is %t, want %t", out.Environment, test.environment)
			}
			message := strings.ReplaceAll(out.Failed.Error(), s.namespace, "NAMESPACE")
			message = fmt.Sprintf("(%s) %s", classOf(out.Failed), message)
			mu.Lock()
			got[name] = message
			mu.Unlock()
			if diff := cmp.Diff(want[name], message); diff != "" && !*update {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func classOf(err error) string {
	var refused *fault.NotAllowed
	switch {
	case errors.As(err, &refused):
		return isRefused
	case errors.Is(err, fault.ErrRender):
		return isRendering
	}
	return isFailed
}

// messagesOf reads a golden file: "== name" and what follows it.
func messagesOf(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, section := range strings.Split(string(text), "== ")[1:] {
		name, message, _ := strings.Cut(section, "\n")
		out[name] = strings.TrimSpace(message)
	}
	return out
}

func keepMessages(t *testing.T, file string, messages map[string]string) {
	t.Helper()
	var out strings.Builder
	out.WriteString("Messages about charts that cannot be installed; (refused) by the platform, (rendering) by the chart or its\n" +
		"values, (failed) by the cluster. go test -run TestMessagesOfTheCorpus -update writes it anew.\n")
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		fmt.Fprintf(&out, "\n== %s\n%s\n", name, messages[name])
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Error(err)
	}
}
