package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/cmd/kubeop/migrate/address"
)

// whyOfReleases explains fields of HelmReleases that have no counterpart.
var whyOfReleases = map[string]string{
	"rollback":                "kubeop rolls back with its own settings: no field is needed",
	"maxHistory":              "kubeop keeps five revisions",
	"persistentClient":        "kubeop has no such client: no field is needed",
	"serviceAccountName":      "kubeop uses the deployer of the project: administrators decide its rights",
	"install.remediation":     "kubeop tries a failed install again with pauses, and never uninstalls it",
	"install.strategy":        "kubeop tries a failed install again with pauses, without end",
	"upgrade.strategy":        "kubeop tries an upgrade again as often as helm.remediation.retries says",
	"upgrade.remediation":     "tests and rollbacks are configured in helm.test and helm.remediation",
	"postRenderStrategy":      "post-renderers of kubeop change hooks, too",
	"waitStrategy":            "kubeop checks health as kstatus does",
	"install.serverSideApply": "kubeop applies as Helm 3 does",
	"upgrade.serverSideApply": "kubeop applies as Helm 3 does",
	"uninstall.disableWait":   "kubeop waits until the objects are gone",
	"chart.spec.verify":       "images.verify of a Policy verifies charts, or pin helm.digest: see docs/guardrails.md",
	"chart.spec.valuesFiles":  "write these values into a file beside app.yaml, and name it in helm.valuesFiles",
}

// sameInReleases are the fields that only have another place.
var sameInReleases = [][2]string{
	{"healthCheckExprs", "healthCheckExprs"}, {"driftDetection.ignore", "drift.ignore"}, {"commonMetadata", "helm.commonMetadata"},
	{"test.enable", "helm.test.enable"}, {"test.ignoreFailures", "helm.test.ignoreFailures"}, {"test.filters", "helm.test.filters"},
	{"upgrade.force", "helm.upgrade.force"}, {"upgrade.preserveValues", "helm.upgrade.preserveValues"}, {"upgrade.cleanupOnFail", "helm.upgrade.cleanupOnFail"},
	{"install.replace", "helm.install.replace"}, {"uninstall.keepHistory", "helm.uninstall.keepHistory"},
	{"uninstall.disableHooks", "helm.uninstall.disableHooks"}, {"uninstall.deletionPropagation", "helm.uninstall.deletionPropagation"},
}

// sameInActions are the same for installs and upgrades.
var sameInActions = []string{"disableHooks", "disableWait", "disableWaitForJobs", "disableOpenAPIValidation", "disableSchemaValidation"}

// release converts a HelmRelease.
func (m *migration) release(o *object) {
	f := fieldsOf(o, m.report)
	namespace := o.GetNamespace()
	target := f.text("targetNamespace")
	name := releaseName(f.text("releaseName"), target, o.GetName())
	if target != "" {
		namespace = target
	}
	if f.has("kubeConfig") {
		f.leaveOut("kubeConfig", "kubeop delivers to its own cluster only, so the release is left out")
		return
	}
	helm, src := m.chart(f)
	if helm == nil {
		return
	}
	a := m.add(o, o.GetName(), namespace)
	if a == nil {
		return
	}
	a.spec["type"], a.spec["helm"] = "Helm", helm
	if name != a.name {
		helm["releaseName"] = name
	}
	if src.secret != "" {
		m.needs(a, "", "Secret", src.secret, src.namespace)
	}
	put(a.spec, "interval", shorter(f.text("interval"), src.interval))
	m.suspended(a, f, src.suspend)
	m.records(a, f, name)
	m.valuesOf(a, f)
	actions(a, f)
	postRenderers(f, helm)
	f.drop("chart.metadata", "install.createNamespace", "dependsOn")
	f.rest(whyOfReleases)
}

// releaseName returns the name that Flux gives a release: of at most 53 characters, with a digest if it had more
// (helm-controller, internal/release/name.go).
func releaseName(given, target, name string) string {
	switch {
	case given != "":
		name = given
	case target != "":
		name = target + "-" + name
	}
	if len(name) <= 53 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:40] + "-" + hex.EncodeToString(sum[:])[:12]
}

// chartSource is a source of a chart, with the namespace of its Secret.
type chartSource struct {
	*source
	namespace string
}

// chart returns the fields that say which chart; nil if kubeop cannot have it.
func (m *migration) chart(f *fields) (values, *chartSource) {
	prefix, namespace := "chart.spec.", f.of.GetNamespace()
	kind, name := f.text("chartRef.kind"), f.text("chartRef.name")
	if given := f.text("chartRef.namespace"); given != "" {
		namespace = given
	}
	switch kind {
	case "OCIRepository":
		found := m.find(kind, namespace, name)
		if found == nil {
			return m.lost(f, "chartRef", kind, namespace, name)
		}
		m.report.ask(f.of, "spec.chartRef", "Flux adds a digest to the version of such a chart. If the chart writes its version into the labels of pods, they restart once")
		s := m.convert(found, true)
		return copied(s.fields), &chartSource{s, namespace}
	case "HelmChart":
		found := m.find(kind, namespace, name)
		if found == nil {
			return m.lost(f, "chartRef", kind, namespace, name)
		}
		f, prefix = fieldsOf(found, m.report), ""
		defer f.rest(whyOfReleases)
	case "":
	default:
		f.leaveOut("chartRef", fmt.Sprintf("kubeop reads no charts from a %s, so the release is left out", printable(kind)))
		return nil, nil
	}
	return m.chartSpec(f, prefix, namespace)
}

// lost notes that a source is not known.
func (m *migration) lost(f *fields, field, kind, namespace, name string) (values, *chartSource) {
	m.report.leaveOut(f.of, "spec."+field, fmt.Sprintf("there is no %s here, so the app is left out: import it from the folder of the whole cluster, or with --cluster",
		nameOf(kind, namespace, name)))
	return nil, nil
}

// chartSpec reads the fields of a chart template or a HelmChart.
func (m *migration) chartSpec(f *fields, prefix, namespace string) (values, *chartSource) {
	kind, name := f.text(prefix+"sourceRef.kind"), f.text(prefix+"sourceRef.name")
	if given := f.text(prefix + "sourceRef.namespace"); given != "" {
		namespace = given
	}
	if kind != "HelmRepository" && kind != "GitRepository" {
		m.report.leaveOut(f.of, "spec."+prefix+"sourceRef", fmt.Sprintf("kubeop reads no charts from a %s, so the release is left out", printable(kind)))
		return nil, nil
	}
	found := m.find(kind, namespace, name)
	if found == nil {
		return m.lost(f, prefix+"sourceRef", kind, namespace, name)
	}
	s := m.convert(found, true)
	chart, helm := f.text(prefix+"chart"), values{}
	if kind == "HelmRepository" {
		helm = copied(s.fields)
		helm["chart"] = chart
		put(helm, "version", f.text(prefix+"version"))
	} else {
		for _, known := range []string{"url", "ref", "secretRef"} {
			if value := s.fields[known]; value != nil {
				put(helm, "git."+known, value)
			}
		}
		put(helm, "git.path", address.Inside(chart))
		f.drop(prefix + "version")
		if s.fields["verify"] != nil {
			m.report.leaveOut(found, "spec.verify", "kubeop verifies no commits of charts")
		}
	}
	valuesFiles(f, prefix, chart, kind == "GitRepository", helm)
	polled := *s
	polled.interval = shorter(f.text(prefix+"interval"), s.interval)
	f.drop(prefix + "reconcileStrategy")
	return helm, &chartSource{&polled, namespace}
}

// valuesFiles takes the values files of a chart. Those of Git are relative to the repository. Flux uses only those that are named, and kubeop
// always the values.yaml of the chart.
func valuesFiles(f *fields, prefix, chart string, git bool, helm values) {
	list, ok := take[[]any](f, prefix+"valuesFiles")
	f.drop(prefix + "ignoreMissingValuesFiles")
	if !ok {
		return
	}
	files, whole := []any{}, false
	for _, item := range list {
		file, _ := item.(string)
		file = address.Inside(file)
		if git {
			within, ok := strings.CutPrefix(file, address.Inside(chart)+"/")
			if !ok {
				f.report.leaveOut(f.of, "spec."+prefix+"valuesFiles", fmt.Sprintf("%s is outside of the chart: write it beside app.yaml, and name it in helm.valuesFiles", printable(file)))
				continue
			}
			file = within
		}
		if file == "values.yaml" {
			whole = true
			continue
		}
		files = append(files, file)
	}
	if !whole {
		f.report.leaveOut(f.of, "spec."+prefix+"valuesFiles", "Flux leaves out the chart's values.yaml if it is not in the list, and kubeop always begins with it: compare the values")
	}
	put(helm, "chartValuesFiles", files)
}

func copied(of values) values {
	to := values{}
	for name, value := range of {
		put(to, name, value)
	}
	return to
}

// suspended keeps an app suspended.
func (m *migration) suspended(a *app, f *fields, source bool) {
	own, _ := take[bool](f, "suspend")
	if own || source {
		a.spec["suspend"] = true
		m.report.ask(a.from, "spec.suspend", "the app is written as suspended, as it or its source is now: remove suspend from its file if that was only for the move")
	}
}

// records asks to move the records of a release that are in another namespace than its objects.
func (m *migration) records(a *app, f *fields, name string) {
	storage := f.text("storageNamespace")
	if storage == "" {
		storage = a.from.GetNamespace()
	}
	if storage == a.target || a.namespace != a.target {
		return
	}
	m.report.ask(a.from, "spec.targetNamespace", fmt.Sprintf("the records of the release are in the namespace %s, and kubeop reads them in %s: copy the Secrets with the labels owner=helm,name=%s",
		storage, a.target, name))
}

// actions takes the settings of installs, upgrades, tests and uninstalls.
func actions(a *app, f *fields) {
	f.move(a.spec, sameInReleases...)
	f.moveTimeouts(a.spec, [2]string{"timeout", "timeout"}, [2]string{"install.timeout", "helm.install.timeout"}, [2]string{"upgrade.timeout", "helm.upgrade.timeout"},
		[2]string{"test.timeout", "helm.test.timeout"}, [2]string{"uninstall.timeout", "helm.uninstall.timeout"})
	for _, action := range []string{"install", "upgrade"} {
		for _, same := range sameInActions {
			f.move(a.spec, [2]string{action + "." + same, "helm." + action + "." + same})
		}
		// Definitions that Flux installed lack the marks of the release, so kubeop would refuse to replace them.
		crds := f.text(action + ".crds")
		f.drop(action + ".skipCRDs")
		switch crds {
		case "":
			crds = "Create"
		case "CreateReplace":
			f.report.ask(a.from, "spec."+action+".crds", "kubeop replaces only definitions with the marks of the release: annotate those that Flux installed, see docs/helm.md")
		}
		put(a.spec, "helm."+action+".crds", crds)
		if refused, _ := take[bool](f, action+".disableTakeOwnership"); !refused {
			put(a.spec, "helm."+action+".takeOwnership", true)
		}
	}
	remediation(a, f)
	switch mode := f.text("driftDetection.mode"); mode {
	case "enabled":
		put(a.spec, "drift.mode", "Correct")
	case "warn":
		put(a.spec, "drift.mode", "Warn")
	case "disabled":
		put(a.spec, "drift.mode", "Off")
	}
}

// maxRetries is the highest number of retries of an upgrade that an App can ask for.
const maxRetries = 10

func remediation(a *app, f *fields) {
	if retries, ok := take[int64](f, "upgrade.remediation.retries"); ok {
		if retries < 0 || retries > maxRetries {
			f.report.leaveOut(a.from, "spec.upgrade.remediation.retries", "kubeop retries an upgrade at most 10 times, so the app has 10")
			retries = maxRetries
		}
		put(a.spec, "helm.remediation.retries", retries)
	}
	switch f.text("upgrade.remediation.strategy") {
	case "rollback":
		put(a.spec, "helm.remediation.strategy", "Rollback")
	case "uninstall":
		put(a.spec, "helm.remediation.strategy", "Uninstall")
	}
	if last, ok := take[bool](f, "upgrade.remediation.remediateLastFailure"); ok && !last {
		put(a.spec, "helm.remediation.strategy", "None")
	}
}

// postRenderers takes patches and images; other kinds of patches stay.
func postRenderers(f *fields, helm values) {
	renderers := f.maps("postRenderers")
	var all []any
	for _, renderer := range renderers {
		kustomize, _ := renderer["kustomize"].(values)
		kept := values{}
		for name, value := range kustomize {
			if name == "patches" || name == "images" {
				put(kept, name, value)
				continue
			}
			f.report.leaveOut(f.of, "spec.postRenderers", fmt.Sprintf("%s has no counterpart: write it as patches", printable(name)))
		}
		if len(kept) > 0 {
			all = append(all, values{"kustomize": kept})
		}
	}
	put(helm, "postRenderers", all)
}
