package migrate

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/migrate/address"
	"github.com/kubeop/kubeop/cmd/kubeop/migrate/secrecy"
	"github.com/kubeop/kubeop/delivery/render"
)

const argoGroup = "argoproj.io"

// argoKinds are the kinds of Argo CD that are read.
var argoKinds = []schema.GroupVersionKind{
	{Group: argoGroup, Version: "v1alpha1", Kind: "Application"}, {Group: argoGroup, Version: "v1alpha1", Kind: "ApplicationSet"},
	{Group: argoGroup, Version: "v1alpha1", Kind: "AppProject"},
}

// whyOfApplications explains fields of Applications that have no counterpart.
var whyOfApplications = map[string]string{
	"syncPolicy.retry":                    "kubeop retries with pauses up to 5m: retryInterval changes that",
	"syncPolicy.managedNamespaceMetadata": "administrators decide the labels of namespaces",
	"revisionHistoryLimit":                "kubeop keeps five revisions of a release and ten deliveries",
	"source.plugin":                       "kubeop runs no plugins: commit what the plugin makes",
	"source.directory":                    "kubeop delivers every manifest of the folder: git.ignore excludes some",
	"source.kustomize":                    "write it into a kustomization.yaml of the folder",
	"source.helm.fileParameters":          "write these values into a file beside app.yaml, and name it in helm.valuesFiles",
	"source.helm.skipTests":               "kubeop runs tests of charts only with helm.test.enable",
	"source.helm.passCredentials":         "kubeop sends credentials to the host of the repository only",
}

func importArgo(c *call.Call, check Check) *cobra.Command {
	o := &options{Call: c, check: check}
	command := &cobra.Command{
		Use:   "argocd [DIR] --tenant TENANT --out DIR",
		Short: "Import Applications of Argo CD",
		Long: `Import Applications of Argo CD. DIR has their files, in any folder; folders of the same clone that they name are read, too, for Applications in
them. With --cluster, those of the cluster are read instead, with your own rights. ApplicationSets and AppProjects are only reported: with --cluster,
the Applications that a set made are imported.

Where objects are taken over is the same as for import flux. Values that may be secret are not written.`,
		Example: `  # The Applications of a folder, into the platform repository
  kubeop import argocd argocd/apps --tenant platform --out ../platform

  # Those of the cluster, also those that ApplicationSets made
  kubeop import argocd --cluster -n argocd --tenant platform --out ../platform`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args, o.argo) },
	}
	o.addFlags(command)
	return command
}

// argo reads the objects of Argo CD and converts them.
func (o *options) argo(ctx context.Context, m *migration, args []string) error {
	m.report.Next = []string{
		"Stop Argo CD: set syncPolicy.automated.enabled of each Application to false, and of ApplicationSets preserveResourcesOnDeletion to true.",
		"Review the files, commit and push them. kubeop takes the objects over: kubeop get apps shows when.",
		"Delete the Applications without their objects: kubectl delete application --cascade=orphan, after removing their finalizer.",
	}
	if o.cluster {
		reader, err := o.Client()
		if err != nil {
			return err
		}
		if err := m.readCluster(ctx, reader, *o.Flags.Namespace, argoKinds); err != nil {
			return err
		}
	} else if err := o.open(ctx, m, args, m.readArgo); err != nil {
		return err
	}
	m.argoApps()
	return nil
}

// readArgo reads the Applications of a folder, and of the folders that they name in the same repository.
func (m *migration) readArgo(files fs.FS, entry string) error {
	t := &folderTree{migration: m, files: files, entry: entry, applier: "Application"}
	t.ofTool = func(group string) bool { return group == argoGroup }
	t.follow = func(o *object) {
		f := fieldsOf(o, &Report{})
		folder := address.Inside(f.text("source.path"))
		if folder == "" || folder == t.entry || m.origin.url == "" || !address.Same(f.text("source.repoURL"), m.origin.url) {
			return
		}
		if _, err := render.Stat(files, path.Join(folder, "Chart.yaml")); err == nil {
			o.chart = true
		} else if info, err := render.Stat(files, folder); err == nil && info.IsDir() {
			t.open(o, folder, &v1alpha1.Build{}, "")
		}
	}
	return t.read()
}

// argoApps converts the objects of Argo CD.
func (m *migration) argoApps() {
	for _, o := range m.objects {
		switch o.GetKind() {
		case "Application":
			m.application(o)
		case "ApplicationSet":
			m.report.leaveOut(o, "", "kubeop generates no apps: write one for each, or import those that the set made with --cluster")
		case "AppProject":
			m.report.leaveOut(o, "", "a Tenant of kubeop says what its apps may have: see docs/spec/tenant.md")
		}
	}
}

// application converts an Application to one app for each of its sources.
func (m *migration) application(o *object) {
	if o.opened && len(o.held) == 0 {
		return // It applies only Applications, which become apps themselves.
	}
	f := fieldsOf(o, m.report)
	server, cluster := f.text("destination.server"), f.text("destination.name")
	if server != "" && server != "https://kubernetes.default.svc" || cluster != "" && cluster != "in-cluster" {
		m.report.leaveOut(o, "spec.destination", "kubeop delivers to its own cluster only, so the Application is left out")
		return
	}
	namespace := f.text("destination.namespace")
	if namespace == "" {
		m.report.leaveOut(o, "spec.destination.namespace", "kubeop needs one namespace for an app, so the Application is left out: name it")
		return
	}
	common := values{}
	m.policies(o, f, common)
	sources := f.maps("sources")
	if source, ok := take[values](f, "source"); ok && len(sources) == 0 {
		sources = []values{source}
	}
	f.drop("project", "info")
	for _, source := range sources {
		m.ofSource(o, source, common, namespace)
	}
	if wave := o.GetAnnotations()["argocd.argoproj.io/sync-wave"]; wave != "" {
		m.report.leaveOut(o, "metadata.annotations", "kubeop has no waves of apps: name what has to be ready in dependsOn")
	}
	f.rest(whyOfApplications)
}

// ofSource adds the app of a source.
func (m *migration) ofSource(o *object, source values, common values, namespace string) {
	f := &fields{of: o, left: values{"source": source}, report: m.report}
	url, chart, revision := f.text("source.repoURL"), f.text("source.chart"), f.text("source.targetRevision")
	if reference := f.text("source.ref"); reference != "" && chart == "" && !f.has("source.path") {
		m.report.leaveOut(o, "spec.sources", fmt.Sprintf("the source %s only has values: copy them beside app.yaml, and name them in helm.valuesFiles", printable(reference)))
		return
	}
	a := m.add(o, o.GetName(), namespace)
	if a == nil {
		return
	}
	a.spec = copied(common)
	if chart != "" || f.has("source.helm") || o.chart {
		m.chartOf(a, f, url, chart, revision)
	} else {
		manifestsOf(a, f, url, revision)
	}
	if len(m.made[o]) == 1 {
		m.report.ask(o, "spec.source", "if the repository is private, create a Secret with its credentials in the namespace "+a.target+", and name it as secretRef of the app")
	}
	f.rest(whyOfApplications)
}

// chartOf takes a chart, of a repository or of Git. Argo CD has no releases, so kubeop installs one that takes the objects over.
func (m *migration) chartOf(a *app, f *fields, url, chart, revision string) {
	helm := values{}
	if chart != "" {
		if !strings.Contains(url, "://") {
			url = "oci://" + url
		}
		helm["repository"], helm["chart"] = url, chart
		put(helm, "version", revision)
	} else {
		put(helm, "git.url", address.Fetchable(url))
		put(helm, "git.ref", address.Ref(revision))
		put(helm, "git.path", address.Inside(f.text("source.path")))
	}
	name := f.text("source.helm.releaseName")
	if name == "" {
		name = a.from.GetName()
	}
	if name != a.name {
		helm["releaseName"] = name
	}
	put(helm, "install.takeOwnership", true)
	put(helm, "install.crds", "Create")
	if skip, _ := take[bool](f, "source.helm.skipCrds"); skip {
		put(helm, "install.crds", "Skip")
		put(helm, "upgrade.crds", "Skip")
	}
	if skip, _ := take[bool](f, "source.helm.skipSchemaValidation"); skip {
		put(helm, "install.disableSchemaValidation", true)
		put(helm, "upgrade.disableSchemaValidation", true)
	}
	f.drop("source.helm.version", "source.helm.ignoreMissingValueFiles")
	a.spec["type"], a.spec["helm"] = "Helm", helm
	delete(a.spec, "takeOwnership")
	delete(a.spec, "prune")
	m.argoValues(a, f, helm)
	m.report.ask(a.from, "spec.source", "kubeop installs the chart as a release over the objects that are there: its hooks of installs run. Set helm.install.disableHooks if they must not")
}

// argoValues takes values: those of files, then of the text or object, then parameters.
func (m *migration) argoValues(a *app, f *fields, helm values) {
	given := values{}
	if text := f.text("source.helm.values"); text != "" {
		if err := yaml.Unmarshal([]byte(text), &given); err != nil {
			m.report.leaveOut(a.from, "spec.source.helm.values", "these are no values in YAML: correct them")
		}
	}
	if object, ok := take[values](f, "source.helm.valuesObject"); ok {
		given = object
	}
	for _, parameter := range f.maps("source.helm.parameters") {
		name, value := fmt.Sprint(parameter["name"]), fmt.Sprint(parameter["value"])
		if !plainPath.MatchString(name) {
			m.report.leaveOut(a.from, "spec.source.helm.parameters", fmt.Sprintf("write the parameter %s into helm.values", printable(name)))
			continue
		}
		put(given, name, typed(value, parameter["forceString"] == true))
	}
	var files []any
	list, _ := take[[]any](f, "source.helm.valueFiles")
	for _, item := range list {
		file, _ := item.(string)
		if strings.HasPrefix(file, "$") || strings.HasPrefix(file, "/") || strings.HasPrefix(path.Clean(file), "..") || strings.Contains(file, "://") {
			m.report.leaveOut(a.from, "spec.source.helm.valueFiles", fmt.Sprintf("%s is outside of the chart: copy it beside app.yaml, and name it in helm.valuesFiles", printable(file)))
			continue
		}
		files = append(files, address.Inside(file))
	}
	put(helm, "chartValuesFiles", files)
	if secrets := secrecy.Withhold(given, ""); len(secrets) > 0 {
		name := a.name + "-values"
		put(helm, "valuesFrom", []any{values{"kind": "Secret", "name": name}})
		m.report.ask(a.from, "spec.source.helm", fmt.Sprintf("what may be secret is not written: create the Secret %s in the namespace %s, with %s as YAML in its key values.yaml",
			name, a.target, strings.Join(secrets, ", ")))
	}
	put(helm, "values", given)
}

// plainPath matches parameters that only name fields.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// typed returns the value of a parameter as helm reads it.
func typed(text string, forced bool) any {
	if forced {
		return text
	}
	switch lower := strings.ToLower(text); lower {
	case "true", "false":
		return lower == "true"
	case "null":
		return nil // It removes the value of the chart.
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && (text == "0" || text[0] != '0') {
		return number
	}
	return text
}

// manifestsOf takes a folder of manifests.
func manifestsOf(a *app, f *fields, url, revision string) {
	git := values{}
	put(git, "url", address.Fetchable(url))
	put(git, "ref", address.Ref(revision))
	put(git, "path", address.Inside(f.text("source.path")))
	f.move(git, [2]string{"source.kustomize.components", "components"}, [2]string{"source.kustomize.patches", "patches"})
	var images []any
	list, _ := take[[]any](f, "source.kustomize.images")
	for _, item := range list {
		if text, ok := item.(string); ok {
			images = append(images, address.Image(text))
		}
	}
	put(git, "images", images)
	f.drop("source.directory.recurse")
	if patches := without(a.from, a.namespace, []string{a.namespace}); len(patches) > 0 {
		given, _ := git["patches"].([]any)
		git["patches"] = append(given, patches...)
	}
	a.spec["type"], a.spec["git"], a.spec["targetNamespace"] = "Git", git, a.target
}
