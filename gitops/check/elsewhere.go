package check

import (
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

// elsewhere says, by the kinds of Flux and Argo CD, what is written in an app.yaml instead.
var elsewhere = map[string]string{
	"HelmRelease.helm.toolkit.fluxcd.io":            "spec.type Helm, with repository, chart, version and values in spec.helm",
	"HelmRepository.source.toolkit.fluxcd.io":       "the address as spec.helm.repository of each app that uses it",
	"HelmChart.source.toolkit.fluxcd.io":            "spec.helm.chart and spec.helm.version of the app",
	"Kustomization.kustomize.toolkit.fluxcd.io":     "spec.type Git, with url, ref and path in spec.git",
	"GitRepository.source.toolkit.fluxcd.io":        "the address as spec.git.url of each app that uses it",
	"OCIRepository.source.toolkit.fluxcd.io":        "the address in spec.git.oci of each app that uses it",
	"ImagePolicy.image.toolkit.fluxcd.io":           "spec.image.policy of the app",
	"ImageUpdateAutomation.image.toolkit.fluxcd.io": "spec.image.policy of the app, which needs no commit",
	"Application.argoproj.io":                       "spec.type Helm with spec.helm, or spec.type Git with spec.git",
	"ApplicationSet.argoproj.io":                    "an app.yaml in a folder of its own for each app",
	"AppProject.argoproj.io":                        "a project.yaml in projects/<name>/",
}

// insteadOf says what is written here instead of an object of Flux or Argo CD; "" for any other object.
func insteadOf(apiVersion, kind any) string {
	version, _ := apiVersion.(string)
	name, _ := kind.(string)
	group, _, _ := strings.Cut(version, "/")
	return elsewhere[name+"."+group]
}

// manifestsPlace says where manifests of Kubernetes belong, if the document is one in the place of an App.
func (d *Result) manifestsPlace(at identity.Ref) string {
	version, _ := d.Value["apiVersion"].(string)
	if at.App == "" || version == "" || strings.HasPrefix(version, v1alpha1.Group+"/") {
		return ""
	}
	return "; manifests belong in a folder beside it, which an App of spec.type Raw names in spec.raw.path"
}
