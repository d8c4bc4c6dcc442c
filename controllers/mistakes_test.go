package controllers

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// mistake is what a developer pushed.
type mistake struct {
	// spec is the rest of app.yaml after the name, and file its whole text instead.
	spec, file string
	// files are others: beside app.yaml, or with a leading "/" in the repository.
	files map[string]string
	// project: the file is the project.yaml of a project of its own.
	project bool
}

const (
	imageSpec = "spec:\n  type: Image\n  image:\n    reference: registry.example.com/acme/web:1\n"
	beginning = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata:\n  name: NAME\n"
)

// inFiles are mistakes in the file of an app or project that was delivered before: it stays as it was, and says what is wrong.
var inFiles = map[string]mistake{
	"field-elsewhere":   {spec: imageSpec + "  replicas: 2\n"},
	"field-misspelt":    {spec: "spec:\n  type: Image\n  image:\n    references: registry.example.com/acme/web:1\n"},
	"indentation":       {spec: "spec:\n  type: Image\n  image:\n     reference: registry.example.com/acme/web:1\n    replicas: 2\n"},
	"tab":               {spec: "spec:\n  type: Image\n\timage: x\n"},
	"colon-missing":     {spec: "spec:\n  type Image\n  image: {reference: registry.example.com/acme/web:1}\n"},
	"key-twice":         {spec: imageSpec + "  image: {}\n"},
	"two-documents":     {spec: imageSpec + "---\nkind: App\n"},
	"no-type":           {spec: "spec:\n  image: {reference: registry.example.com/acme/web:1}\n"},
	"unknown-type":      {spec: "spec:\n  type: Docker\n"},
	"no-image":          {spec: "spec:\n  type: Image\n"},
	"not-a-number":      {spec: imageSpec + "    replicas: two\n"},
	"quantity":          {spec: imageSpec + "    resources: {limits: {memory: 256MB}}\n"},
	"duration":          {spec: imageSpec + "  interval: 5 minutes\n"},
	"image-in-capitals": {spec: "spec:\n  type: Image\n  image:\n    reference: registry.example.com/Acme/Web:1\n"},
	"git-address":       {spec: "spec:\n  type: Git\n  git: {url: 'git@git.example.com:acme/web.git'}\n"},
	"another-name":      {file: strings.Replace(beginning, "NAME", "other", 1) + imageSpec},
	"namespace":         {file: beginning + "  namespace: default\n" + imageSpec},
	"version":           {file: strings.Replace(beginning, "v1alpha1", "v1", 1) + imageSpec},
	"deployment":        {file: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\n"},
	"flux":              {file: "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: NAME}\n"},
	"argo":              {file: "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: NAME}\n"},
	"values-file":       {spec: "spec:\n  type: Helm\n  helm: {repository: 'https://charts.example.com', chart: web, valuesFiles: [production.yaml]}\n"},
	"folder":            {spec: "spec:\n  type: Raw\n  raw: {path: manifests}\n"},
	"cycle":             {spec: "spec:\n  type: Raw\n  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: cycle}}]}\n  dependsOn: [{name: cycle}]\n"},
	"expression":        {spec: imageSpec + "  dependsOn: [{name: web, readyExpr: 'status.ready ='}]\n"},
	"two-types":         {spec: imageSpec + "  raw: {path: manifests}\n"},
	"named-port":        {spec: imageSpec + "    ports: [{name: http, port: 8080}, {name: http, port: 8081}]\n"},

	"project-field": {project: true, file: "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: NAME}\nspec:\n  qota: {cpu: 1}\n"},
	"project-quota": {project: true, file: "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: NAME}\nspec:\n  quota: {cpu: lots}\n"},
}

// inDelivery are mistakes that only the delivery of the app finds.
func inDelivery(charts, git string) map[string]mistake {
	raw := func(manifests ...string) mistake {
		return mistake{spec: "spec:\n  type: Raw\n  raw:\n    manifests:\n    - " + strings.Join(manifests, "\n    - ") + "\n"}
	}
	chart := func(helm string, files map[string]string) mistake {
		m := mistake{spec: "spec:\n  type: Helm\n  helm: {" + helm + "}\n", files: map[string]string{}}
		for name, content := range files {
			m.files["chart/"+name] = content
		}
		return m
	}
	beside := func(template string, more ...string) map[string]string {
		files := map[string]string{"Chart.yaml": chartFile, "values.yaml": "greeting: hello\n", "templates/config.yaml": template}
		for i := 0; i+1 < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: registry.example.com/web:1, securityContext: {privileged: true}}]}}}}"
	return map[string]mistake{
		"cluster-role":    raw("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: everything}}"),
		"other-namespace": raw("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: kube-system}}"),
		"unknown-kind":    raw("{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: web}}"),
		"invalid-object":  raw("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {not/a/key: x}}"),
		"privileged":      raw(deployment),
		"rights":          raw("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: quotas}, rules: [{apiGroups: [''], resources: [resourcequotas], verbs: [delete]}]}"),
		"over-quota":      raw("{apiVersion: v1, kind: ConfigMap, metadata: {name: over}}"),
		"object-twice":    raw("{apiVersion: v1, kind: ConfigMap, metadata: {name: twice}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: twice}}"),
		"taken":           raw("{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}"),
		"manifest-indentation": {
			spec:  "spec:\n  type: Raw\n  raw: {path: manifests}\n",
			files: map[string]string{"manifests/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels:\n    a: b\n   name: indented\n"},
		},
		"template":         chart("path: chart", beside(configTemplate("x", "a: {{ .Values.nothing.here }}"))),
		"schema":           chart("path: chart", beside(configTemplate("x", "a: b"), "values.schema.json", numberSchema)),
		"chart-dependency": chart("path: chart", beside(configTemplate("x", "a: b"), "Chart.yaml", chartFile+"dependencies: [{name: redis, version: 1.0.0}]\n")),
		"values-from":      chart("path: chart, valuesFrom: [{kind: ConfigMap, name: settings}]", beside(configTemplate("x", "a: b"))),
		"no-chart":         chart("repository: '"+charts+"', chart: helo", nil),
		"no-version":       chart("repository: '"+charts+"', chart: hello, version: 2.x", nil),
		"no-repository":    {spec: "spec:\n  type: Git\n  git: {url: '" + git + "/nowhere.git'}\n"},
		"no-branch":        {spec: "spec:\n  type: Git\n  git: {url: '" + git + "/REPO.git', secretRef: {name: git}, ref: {branch: production}}\n"},
		"no-credentials":   {spec: "spec:\n  type: Git\n  git: {url: '" + git + "/REPO.git', secretRef: {name: missing}}\n"},
		"unknown-app":      {spec: "spec:\n  type: Raw\n  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: unknown}}]}\n  dependsOn: [{name: nobody}]\n"},
	}
}

// inTree are mistakes about where files are; the Repository says what is wrong.
var inTree = map[string]mistake{
	"app-misnamed":   {files: map[string]string{"/projects/shop/apps/app-misnamed/app.yml": strings.Replace(beginning, "NAME", "app-misnamed", 1) + imageSpec}},
	"app-elsewhere":  {files: map[string]string{"/apps/app-elsewhere/app.yaml": strings.Replace(beginning, "NAME", "app-elsewhere", 1) + imageSpec}},
	"no-app-file":    {files: map[string]string{"/projects/shop/apps/no-app-file/values.yaml": "replicas: 2\n"}},
	"no-project":     {files: map[string]string{"/projects/lost/apps/web/app.yaml": strings.Replace(beginning, "NAME", "web", 1) + imageSpec}},
	"name-of-folder": {files: map[string]string{"/projects/shop/apps/Name_Of_Folder/app.yaml": strings.Replace(beginning, "NAME", "Name_Of_Folder", 1) + imageSpec}},
	"flux-tree":      {files: map[string]string{"/clusters/production/web.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\n"}},
}

// TestMistakesByPushAreExplained pushes the mistakes of docs/errors.md, and grades each answer by the texts of its row: what is wrong, where, and what to
// do, at the object that the row names.
func TestMistakesByPushAreExplained(t *testing.T) {
	n := newTeam(t, "mistakes")
	charts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index.yaml" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, index)
	}))
	t.Cleanup(charts.Close)
	delivery := inDelivery(charts.URL, n.repo.URL[:strings.LastIndex(n.repo.URL, "/")])
	rows, made := readMistakes(t), slices.Concat(slices.Collect(maps.Keys(inFiles)), slices.Collect(maps.Keys(delivery)), slices.Collect(maps.Keys(inTree)))
	slices.Sort(made)
	if diff := cmp.Diff(made, slices.Sorted(maps.Keys(rows))); diff != "" || len(made) < 40 {
		t.Fatalf("%d mistakes; those made, and those of docs/errors.md (-made +documented):\n%s", len(made), diff)
	}
	sound := shopFiles("shop", append(slices.Collect(maps.Keys(inFiles)), "good")...)
	wrong := map[string]string{}
	for name, m := range inFiles {
		folder, file := "projects/shop/apps/"+name+"/", "app.yaml"
		if m.project {
			delete(sound, folder+file)
			folder, file = "projects/"+name+"/", "project.yaml"
			sound[folder+file] = fmt.Sprintf(projectFile, name)
		}
		m.write(wrong, name, folder, file)
	}
	for name, m := range delivery {
		m.spec = strings.ReplaceAll(m.spec, "REPO", n.name)
		m.write(wrong, name, "projects/"+m.in(name)+"/apps/"+name+"/", "app.yaml")
	}
	sound["projects/small/project.yaml"] = fmt.Sprintf(smallProject, "small", `count/configmaps: "0"`)
	for name, m := range inTree {
		m.write(sound, name, "", "")
	}
	problems := strings.Join(n.synced(n.push(sound), metav1.ConditionFalse).Status.Problems, "\n")
	for name, m := range inFiles {
		if !m.project {
			n.ready(n.app("shop", name))
		}
	}
	n.ready(n.app("shop", "good"))
	n.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "git"}, StringData: map[string]string{"username": n.repo.User, "password": n.repo.Password},
	})
	n.push(wrong)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			each := *n
			each.t = t
			if _, is := inTree[name]; is {
				row.grade(t, v1alpha1.RepositoryKind, problems)
			} else if inFiles[name].project {
				row.grade(t, v1alpha1.ProjectKind, each.until(each.project(name), v1alpha1.CurrentCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason))
			} else if _, is := inFiles[name]; is {
				row.grade(t, v1alpha1.AppKind, each.until(each.app("shop", name), v1alpha1.CurrentCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason))
			} else {
				row.grade(t, v1alpha1.AppKind, each.fails(each.app(delivery[name].in(name), name)))
			}
		})
	}
}

// in returns the project of an app.
func (mistake) in(name string) string {
	if name == "over-quota" {
		return "small"
	}
	return "shop"
}

// fails waits until an app is not ready and no longer only in progress, and returns the message of Ready.
func (n *team) fails(app *v1alpha1.App) (message string) {
	n.t.Helper()
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		c := conditions.Get(app, v1alpha1.ReadyCondition)
		if c == nil || c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ProgressingReason {
			return fmt.Errorf("Ready is %+v", c)
		}
		message = c.Message
		return nil
	})
	return message
}

// documented is a row of docs/errors.md: at which object, and the texts of its message that say what is wrong, where, and what to do.
type documented struct {
	at    string
	texts [3][]string
}

// readMistakes reads the rows by their names.
func readMistakes(t *testing.T) map[string]documented {
	t.Helper()
	quoted, rows := regexp.MustCompile("`([^`]+)`"), map[string]documented{}
	for line := range strings.Lines(content(t, "../docs/errors.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		name := quoted.FindStringSubmatch(cells[0])
		if !strings.HasPrefix(line, "| `") || len(cells) != 5 || name == nil {
			continue
		}
		row := documented{at: cells[1]}
		for i, cell := range cells[2:] {
			for _, text := range quoted.FindAllStringSubmatch(cell, -1) {
				row.texts[i] = append(row.texts[i], text[1])
			}
			if len(row.texts[i]) == 0 {
				t.Errorf("a column of %s in docs/errors.md quotes nothing", name[1])
			}
		}
		rows[name[1]] = row
	}
	return rows
}

// grade compares the message at an object with the row. Of a Repository, one of its lines has to have all texts.
func (d documented) grade(t *testing.T, at, message string) {
	t.Helper()
	t.Log(message)
	if d.at != at {
		t.Errorf("docs/errors.md says that it is read at the %s", d.at)
	}
	texts := slices.Concat(d.texts[:]...)
	if at == v1alpha1.RepositoryKind {
		for line := range strings.Lines(message) {
			if strings.Contains(line, d.texts[1][0]+":") {
				message = line
			}
		}
	}
	for _, want := range texts {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q in it", message, want)
		}
	}
}

// write writes the files of a mistake.
func (m mistake) write(files map[string]string, name, folder, file string) {
	if text := m.file; text != "" || m.spec != "" {
		if text == "" {
			text = beginning + m.spec
		}
		files[folder+file] = strings.ReplaceAll(text, "NAME", name)
	}
	for path, content := range m.files {
		if rooted, is := strings.CutPrefix(path, "/"); is {
			files[rooted] = content
		} else {
			files[folder+path] = content
		}
	}
}
