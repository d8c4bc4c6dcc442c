package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kustomization = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: shop}
spec:
  path: ./deploy
  prune: true
  sourceRef: {kind: GitRepository, name: code}
`

const code = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: code, namespace: shop}
spec: {url: "https://git.example.com/code.git", ref: {branch: main}}
`

const application = `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
`

const automated = "  syncPolicy: {automated: {prune: true, selfHeal: true, allowEmpty: true}}\n"

// written imports a file with a tool, and returns the file of the App web and the report.
func written(t *testing.T, tool, file string) (app, report string) {
	t.Helper()
	folder, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := run(t, tool, folder, "--tenant", "acme", "--project", "shop", "--out", out)
	text, unread := os.ReadFile(filepath.Join(out, "projects", "shop", "apps", "web", "app.yaml"))
	if unread != nil && !os.IsNotExist(unread) {
		t.Fatalf("%v, %v\n%s", unread, err, report)
	}
	return string(text), report
}

// says holds a text to parts, each on lines without their indentation. One that begins with an exclamation mark must not be there.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	var plain strings.Builder
	for line := range strings.Lines(text) {
		plain.WriteString(strings.TrimSpace(line) + "\n")
	}
	for _, part := range parts {
		if absent, not := strings.CutPrefix(part, "!"); strings.Contains(plain.String(), absent) == not {
			t.Errorf("%q is there: %t\n%s", absent, not, text)
		}
	}
}

// TestAKustomizationBecomesAnApp: the fields of its file, and what the report says.
func TestAKustomizationBecomesAnApp(t *testing.T) {
	whole := sectionsOf(t, "kustomization.txt")
	for name, tc := range map[string]struct {
		file         string
		app, reports []string
	}{
		"usual": {kustomization + code, []string{
			"type: Git\n", "takeOwnership: true\n", "url: https://git.example.com/code.git\n", "branch: main\n", "path: deploy\n",
			"!prune", "!deletionPolicy", "!interval", "!suspend", "!patches",
		}, []string{"its folder is not here, so its objects are taken to be in the namespace shop"}},
		"not pruned":     {strings.Replace(kustomization, "prune: true", "prune: false", 1) + code, []string{"prune: false\n", "deletionPolicy: Orphan\n"}, nil},
		"pruned by name": {strings.Replace(kustomization, "prune: true", "deletionPolicy: Delete", 1) + code, []string{"prune: false\n", "!deletionPolicy"}, nil},
		"orphaned":       {kustomization + "  deletionPolicy: Orphan\n" + code, []string{"!prune", "deletionPolicy: Orphan\n"}, nil},
		"waited for":     {kustomization + "  deletionPolicy: WaitForTermination\n" + code, []string{"deletionPolicy: WaitForTermination\n"}, nil},
		"mirrored":       {kustomization + "  deletionPolicy: MirrorPrune\n" + code, []string{"!deletionPolicy"}, nil},
		"suspended":      {kustomization + "  suspend: true\n" + code, []string{"suspend: true\n"}, []string{"the app is written as suspended"}},
		"its source is":  {kustomization + strings.Replace(code, "spec: {", "spec: {suspend: true, ", 1), []string{"suspend: true\n"}, []string{"the app is written as suspended"}},
		"intervals": {kustomization + "  interval: 10m\n  retryInterval: 1m\n  timeout: 2m\n" + strings.Replace(code, "spec: {", "spec: {interval: 3m, ", 1),
			[]string{"\ninterval: 3m\n", "retryInterval: 1m\n", "timeout: 2m\n"}, []string{"!interval"}},
		"a short interval":  {kustomization + "  interval: 2m\n" + strings.Replace(code, "spec: {", "spec: {interval: 3m, ", 1), []string{"\ninterval: 2m\n"}, nil},
		"a second":          {kustomization + "  timeout: 1s\n" + code, []string{"timeout: 1s\n"}, []string{"!kubeop waits"}},
		"less than that":    {kustomization + "  timeout: 999ms\n" + code, []string{"!timeout"}, []string{"kubeop waits at least one second"}},
		"an hour":           {kustomization + "  timeout: 60m\n" + code, []string{"timeout: 60m\n"}, []string{"!kubeop waits"}},
		"more than that":    {kustomization + "  timeout: 61m\n" + code, []string{"timeout: 1h\n"}, []string{"kubeop waits at most one hour"}},
		"no duration":       {kustomization + "  timeout: soon\n" + code, []string{"!timeout"}, []string{"this is no duration"}},
		"another namespace": {kustomization + "  targetNamespace: other\n" + code, []string{"targetNamespace: kubeop-acme-shop\n"}, []string{"Namespace other: kubeop delivers its apps to kubeop-acme-shop"}},
		"patches": {kustomization + "  patches: [{patch: \"a: b\", target: {kind: Deployment}}]\n  images: [{name: nginx, newTag: '2'}]\n  components: [../c]\n  force: true\n" + code,
			[]string{"kind: Deployment\n", "newTag: \"2\"\n", "- ../c\n", "force: true\n"}, []string{"!spec.patches", "!spec.images"}},
		"decrypted": {kustomization + "  decryption: {provider: sops, secretRef: {name: keys}}\n" + code, []string{"provider: sops\n", "name: keys\n"},
			[]string{"Secret keys", "!write decryption.secretRef"}},
		"decrypted by itself": {kustomization + "  decryption: {provider: sops}\n" + code, []string{"!decryption"}, []string{"write decryption.secretRef"}},
		"variables": {kustomization + "  postBuild: {substitute: {region: eu, password: hunter2}, substituteFrom: [{kind: ConfigMap, name: vars}]}\n" + code,
			[]string{"region: eu\n", "!hunter2", "name: web-variables\n", "name: vars\n"}, []string{"create the Secret web-variables with password", "ConfigMap vars"}},
		"a Bucket":          {strings.ReplaceAll(kustomization+code, "GitRepository", "Bucket"), []string{"!type"}, []string{"kubeop fetches no Bucket itself"}},
		"no source":         {kustomization, []string{"!type"}, []string{"there is no GitRepository shop/code here"}},
		"another cluster":   {kustomization + "  kubeConfig: {secretRef: {name: far}}\n" + code, []string{"!type"}, []string{"spec.kubeConfig: kubeop delivers to its own cluster only"}},
		"what is ignored":   {kustomization + strings.Replace(code, "spec: {", "spec: {ignore: \"*.md\", ", 1), []string{"!ignore"}, []string{"GitRepository shop/code spec.ignore: its patterns are of the whole repository"}},
		"a private source":  {kustomization + strings.Replace(code, "spec: {", "spec: {secretRef: {name: token}, ", 1), []string{"name: token\n"}, []string{"Secret token"}},
		"an account":        {kustomization + "  serviceAccountName: robot\n" + code, []string{"!robot"}, []string{"spec.serviceAccountName: kubeop uses the deployer of the project"}},
		"waiting":           {kustomization + "  wait: true\n" + code, []string{"type: Git\n"}, []string{"!spec.wait"}},
		"nothing in fields": {kustomization + "  serviceAccountName: null\n  commonMetadata: {labels: null}\n  interval: null\n  force: null\n" + code, []string{"type: Git\n", "!interval", "!force"}, []string{"!spec.serviceAccountName", "!spec.commonMetadata", "!spec.interval", "!spec.force"}},
		"depending":         {kustomization + "  dependsOn: [{name: base}]\n" + code, []string{"!dependsOn"}, []string{"spec.dependsOn: no app was made of the Kustomization shop/base"}},
		"depending elsewhere": {kustomization + "  dependsOn: [{name: base, namespace: infra, readyExpr: 'true'}]\n" + code, nil,
			[]string{"no app was made of the Kustomization infra/base", "readyExpr was about an object of Flux"}},
	} {
		t.Run(name, func(t *testing.T) {
			app, report := written(t, "flux", tc.file)
			says(t, app, tc.app...)
			says(t, report, tc.reports...)
			whole.compare(t, name, report+"==> app.yaml\n"+app)
		})
	}
}

// TestAHelmReleaseBecomesAnApp: the fields that TestFieldsOfAReleaseKeepTheDefaultsOfFlux does not have.
func TestAHelmReleaseBecomesAnApp(t *testing.T) {
	whole := sectionsOf(t, "helmrelease.txt")
	chart := strings.Replace(release, "chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}", "chart: {spec: {chart: ./charts/web, %, sourceRef: {kind: GitRepository, name: code}}}", 1)
	ofGit := func(fields string) string { return strings.Replace(chart, "%", fields, 1) }
	for name, tc := range map[string]struct {
		file         string
		app, reports []string
	}{
		"usual": {release + charts, []string{
			"type: Helm\n", "chart: web\n", "version: 1.0.0\n", "repository: https://charts.example.com\n", "interval: 5m\n", "!releaseName", "!postRenderers", "!suspend",
		}, nil},
		"another name":         {release + "  releaseName: shop-web\n" + charts, []string{"releaseName: shop-web\n"}, nil},
		"its own name":         {release + "  releaseName: web\n" + charts, []string{"!releaseName"}, nil},
		"of another namespace": {release + "  targetNamespace: prod\n" + charts, []string{"releaseName: prod-web\n"}, nil},
		"rendered again": {release + "  postRenderers: [{kustomize: {patches: [{patch: 'a: b'}], images: [{name: nginx, newTag: '2'}], patchesJson6902: [{}]}}]\n" + charts,
			[]string{"postRenderers:\n", "patch: 'a: b'\n", "newTag: \"2\"\n", "!patchesJson6902"}, []string{"spec.postRenderers: patchesJson6902 has no counterpart: write it as patches"}},
		"nothing rendered again": {release + "  postRenderers: [{kustomize: {patchesJson6902: [{}]}}]\n" + charts, []string{"!postRenderers"}, nil},
		"of Git":                 {ofGit("interval: 1m") + code, []string{"url: https://git.example.com/code.git\n", "path: charts/web\n", "branch: main\n", "!chart: ", "\ninterval: 1m\n"}, nil},
		"files of Git": {ofGit("valuesFiles: [./charts/web/values.yaml, ./charts/web/prod.yaml, ./charts/webother.yaml]") + code, []string{"chartValuesFiles:\n- prod.yaml\n", "!- values.yaml"},
			[]string{"charts/webother.yaml is outside of the chart", "!Flux leaves out the chart's values.yaml"}},
		"without values.yaml": {ofGit("valuesFiles: [./charts/web/prod.yaml]") + code, []string{"- prod.yaml\n"}, []string{"Flux leaves out the chart's values.yaml if it is not in the list"}},
		"definitions":         {release + "  install: {crds: CreateReplace}\n  upgrade: {crds: Skip}\n" + charts, []string{"crds: CreateReplace\n", "crds: Skip\n"}, []string{"spec.install.crds: kubeop replaces only definitions with the marks of the release"}},
		"a chart's object": {strings.Replace(release, "chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}", "chartRef: {kind: HelmChart, name: web}", 1) + charts +
			"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: web, namespace: shop}\nspec: {chart: web, version: 2.0.0, banana: 1, sourceRef: {kind: HelmRepository, name: charts}}\n",
			[]string{"version: 2.0.0\n", "chart: web\n"}, []string{"HelmChart shop/web spec.banana: it has no counterpart"}},
		"a chart's object that is gone": {strings.Replace(release, "chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}", "chartRef: {kind: HelmChart, name: web}", 1) + charts,
			[]string{"!type"}, []string{"there is no HelmChart shop/web here"}},
		"too many retries": {release + "  upgrade: {remediation: {retries: 11}}\n" + charts, []string{"retries: 10\n"}, []string{"kubeop retries an upgrade at most 10 times"}},
		"no retries":       {release + "  upgrade: {remediation: {retries: 0}}\n" + charts, []string{"retries: 0\n"}, []string{"!at most 10 times"}},
		"rolled back":      {release + "  upgrade: {remediation: {strategy: rollback}}\n" + charts, []string{"strategy: Rollback\n"}, nil},
		"long timeouts": {release + "  install: {timeout: 2m}\n  upgrade: {timeout: 3m}\n  test: {enable: true, timeout: 4m}\n  uninstall: {timeout: 5m}\n" + charts,
			[]string{"timeout: 2m\n", "timeout: 3m\n", "timeout: 4m\n", "timeout: 5m\n", "enable: true\n"}, []string{"!timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			app, report := written(t, "flux", tc.file)
			says(t, app, tc.app...)
			says(t, report, tc.reports...)
			whole.compare(t, name, report+"==> app.yaml\n"+app)
		})
	}
}

// TestAnApplicationOfArgoCDBecomesAnApp: the fields of its file, and what the report says.
func TestAnApplicationOfArgoCDBecomesAnApp(t *testing.T) {
	whole := sectionsOf(t, "application.txt")
	const git = "  source: {repoURL: \"https://git.example.com/code.git\", path: deploy, targetRevision: main}\n"
	helm := func(fields string) string {
		return application + automated + "  source: {repoURL: \"https://charts.example.com\", chart: web, targetRevision: 1.0.0, helm: {" + fields + "}}\n"
	}
	for name, tc := range map[string]struct {
		file         string
		app, reports []string
	}{
		"usual": {application + automated + git, []string{
			"type: Git\n", "takeOwnership: true\n", "url: https://git.example.com/code.git\n", "path: deploy\n", "branch: main\n", "mode: Correct\n", "targetNamespace: kubeop-acme-shop\n",
			"!prune", "!deletionPolicy", "!ignore", "!images",
		}, []string{"if the repository is private, create a Secret", "!spec.syncPolicy", "!spec.project", "!allowEmpty"}},
		"by hand":           {application + git, []string{"mode: Warn\n", "prune: false\n"}, []string{"spec.syncPolicy: kubeop delivers each commit"}},
		"switched off":      {application + "  syncPolicy: {automated: {enabled: false}}\n" + git, nil, []string{"spec.syncPolicy: kubeop delivers each commit"}},
		"switched on":       {application + "  syncPolicy: {automated: {enabled: true}}\n" + git, []string{"mode: Warn\n", "prune: false\n"}, []string{"!kubeop delivers each commit"}},
		"no finalizer":      {strings.Replace(application, ", finalizers: [resources-finalizer.argocd.argoproj.io]", "", 1) + automated + git, []string{"deletionPolicy: Orphan\n"}, nil},
		"in the background": {strings.Replace(application, "argoproj.io]", "argoproj.io/background]", 1) + automated + git, []string{"!deletionPolicy"}, nil},
		"options": {application + "  syncPolicy: {automated: {}, syncOptions: [CreateNamespace=true, Replace=true]}\n" + git, nil,
			[]string{"spec.syncPolicy.syncOptions: Replace=true has no counterpart", "!CreateNamespace"}},
		"differences": {application + automated + git + "  ignoreDifferences: [{kind: Deployment, group: apps, jsonPointers: [/spec/replicas]}, {kind: Job, jqPathExpressions: [.a]}]\n",
			[]string{"- /spec/replicas\n", "kind: Deployment\n", "group: apps\n", "!kind: Job"}, []string{"jqPathExpressions has no counterpart"}},
		"another server":      {strings.Replace(application, "https://kubernetes.default.svc", "https://far.example.com", 1) + automated + git, []string{"!type"}, []string{"spec.destination: kubeop delivers to its own cluster only"}},
		"another cluster":     {strings.Replace(application, `server: "https://kubernetes.default.svc"`, "name: far", 1) + automated + git, []string{"!type"}, []string{"spec.destination: kubeop delivers to its own cluster only"}},
		"this one, by name":   {strings.Replace(application, `server: "https://kubernetes.default.svc"`, "name: in-cluster", 1) + automated + git, []string{"type: Git\n"}, nil},
		"no namespace":        {strings.Replace(application, ", namespace: shop}", "}", 1) + automated + git, []string{"!type"}, []string{"kubeop needs one namespace for an app"}},
		"waves":               {strings.Replace(application, "name: web,", "name: web, annotations: {argocd.argoproj.io/sync-wave: '1'},", 1) + automated + git, nil, []string{"kubeop has no waves of apps"}},
		"images":              {application + automated + strings.Replace(git, "path: deploy", "path: deploy, kustomize: {images: ['nginx:2'], namePrefix: a-}, directory: {recurse: true}", 1), []string{"name: nginx\n", "newTag: \"2\"\n"}, []string{"spec.source.kustomize.namePrefix: write it into a kustomization.yaml", "!recurse"}},
		"sources":             {application + automated + "  sources:\n  - {repoURL: \"https://charts.example.com\", chart: web, targetRevision: 1.0.0}\n  - {repoURL: \"https://git.example.com/code.git\", ref: values}\n", []string{"type: Helm\n", "chart: web\n"}, []string{"the source values only has values"}},
		"a chart":             {helm(""), []string{"type: Helm\n", "version: 1.0.0\n", "repository: https://charts.example.com\n", "takeOwnership: true\n", "crds: Create\n", "!releaseName", "!prune", "!disableSchemaValidation", "!upgrade"}, []string{"kubeop installs the chart as a release over the objects that are there"}},
		"a chart of OCI":      {strings.Replace(helm(""), "https://charts.example.com", "registry.example.com/charts", 1), []string{"repository: oci://registry.example.com/charts\n"}, nil},
		"a name":              {helm("releaseName: shop"), []string{"releaseName: shop\n"}, nil},
		"no definitions":      {helm("skipCrds: true, skipSchemaValidation: true, version: v3"), []string{"crds: Skip\n", "disableSchemaValidation: true\n", "!crds: Create"}, []string{"!spec.source.helm.version"}},
		"values":              {helm("values: \"a: 1\", parameters: [{name: b.c, value: \"2\"}, {name: d, value: \"2\", forceString: true}, {name: e, value: \"true\"}, {name: f, value: \"012\"}, {name: \"g[0]\", value: x}]"), []string{"a: 1\n", "c: 2\n", "d: \"2\"\n", "e: true\n", "f: \"012\"\n"}, []string{"write the parameter g[0] into helm.values"}},
		"an object of them":   {helm("values: \"a: 1\", valuesObject: {h: 3, token: hunter2}"), []string{"h: 3\n", "!a: 1", "!hunter2", "name: web-values\n"}, []string{"create the Secret web-values"}},
		"files of them":       {helm("valueFiles: [prod.yaml, ../other.yaml, $values/a.yaml, /abs.yaml, \"https://example.com/v.yaml\"]"), []string{"chartValuesFiles:\n- prod.yaml\n"}, []string{"../other.yaml is outside of the chart", "$values/a.yaml is outside", "/abs.yaml is outside", "https://example.com/v.yaml is outside"}},
		"no values":           {helm("values: \"[\""), []string{"!values:"}, []string{"these are no values in YAML"}},
		"a chart of Git":      {application + automated + strings.Replace(git, "path: deploy", "path: charts/web, helm: {}", 1), nil, nil},
		"a plugin":            {application + automated + strings.Replace(git, "path: deploy", "path: deploy, plugin: {name: cue}", 1), nil, []string{"spec.source.plugin.name: kubeop runs no plugins"}},
		"an ApplicationSet":   {"apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: web, namespace: argocd}\n", []string{"!type"}, []string{"kubeop generates no apps"}},
		"an AppProject":       {"apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: web, namespace: argocd}\n", []string{"!type"}, []string{"a Tenant of kubeop says what its apps may have"}},
		"another field of it": {application + automated + git + "  revisionHistoryLimit: 3\n", nil, []string{"spec.revisionHistoryLimit: kubeop keeps five revisions"}},
	} {
		t.Run(name, func(t *testing.T) {
			app, report := written(t, "argocd", tc.file)
			says(t, app, tc.app...)
			says(t, report, tc.reports...)
			whole.compare(t, name, report+"==> app.yaml\n"+app)
		})
	}
}
