// Package lines says at which lines of the files of a repository an app has what is refused.
package lines

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
)

// Declaration is an app in a repository.
type Declaration struct {
	App *v1alpha1.App
	// File is the path of app.yaml in Files, which are those of the whole repository.
	File  string
	Files fs.FS
}

// Findings returns what an error of rendering the app is about. Of refusals by package policy there is one for each line at which refused
// objects are declared; what is about no line, such as what to do about several objects, is in the first of them. An error that is about something else,
// too, is one finding.
func (d Declaration) Findings(err error) (problems []document.Finding) {
	found, other := policy.Violations(policy.Located(err, d.find))
	if other != nil {
		problem := d.problem(err.Error())
		if len(found) == 0 {
			problem.Code = code.RenderFailed
		}
		return []document.Finding{problem}
	}
	at, written := map[string]int{}, d.read()
	var rest []string
	var whys [][]string
	for _, v := range found {
		problem, known := d.locate(v, written)
		if !known {
			rest = append(rest, v.Error())
			continue
		}
		if i, there := at[problem.Place()]; there {
			whys[i] = append(whys[i], problem.Why)
			continue
		}
		at[problem.Place()] = len(problems)
		problems, whys = append(problems, problem), append(whys, []string{problem.Why})
	}
	for i := range problems {
		problems[i].Why = strings.Join(whys[i], "\n")
	}
	if text := strings.Join(rest, "\n"); len(problems) == 0 {
		problems = []document.Finding{d.problem(text)}
	} else if text != "" {
		problems[0].Why += "\n" + text
	}
	return problems
}

func (d Declaration) problem(why string) document.Finding {
	return document.Finding{File: d.File, Code: code.NotAllowed, Why: why}
}

// find finds the manifests of objects in the app's folder.
func (d Declaration) find(objects []string) map[string]policy.Place {
	folder, err := fs.Sub(d.Files, path.Dir(d.File))
	if err != nil || d.App.Spec.Raw == nil || d.App.Spec.Raw.Path == "" {
		return nil
	}
	return manifests.Places(folder, d.App.Spec.Raw.Path, objects)
}

// locate returns a refusal as a problem; false if its line is not known. The files of a Git App are in another repository.
func (d Declaration) locate(v *policy.Violation, written *appFile) (document.Finding, bool) {
	if v.At != (policy.Place{}) && d.App.Spec.Raw != nil {
		here := *v
		here.At = policy.Place{}
		problem := d.problem(here.Error())
		problem.File, problem.Position = path.Join(path.Dir(d.File), v.At.File), yamlcheck.Position{Line: v.At.Line}
		return problem, true
	}
	field := written.fieldOf(d.App, v)
	problem := d.problem(v.Error())
	problem.Position = written.Position(field)
	return problem, field != ""
}

// appFile is app.yaml with its positions. manifests are the fields with the manifests in it, by the objects "<kind>/<name>" that they declare.
type appFile struct {
	*document.Document
	manifests map[string]string
}

// read reads app.yaml. Without it, which the tree has read, nothing would have a line.
func (d Declaration) read() *appFile {
	w := &appFile{&document.Document{}, map[string]string{}}
	if text, err := fs.ReadFile(d.Files, d.File); err == nil {
		w.Document = document.Parse(d.File, text)
	}
	if d.App.Spec.Raw == nil {
		return w
	}
	for i, manifest := range slices.Backward(d.App.Spec.Raw.Manifests) { // Of two with one name, the first counts.
		is := metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(manifest.Raw, &is); err == nil {
			w.manifests[is.Kind+"/"+is.Name] = fmt.Sprintf("spec.raw.manifests[%d]", i)
		}
	}
	return w
}

// fieldOf returns the field of app.yaml that a refusal is about; "" if none has what is refused.
func (w *appFile) fieldOf(app *v1alpha1.App, v *policy.Violation) string {
	spec := &app.Spec
	switch {
	case v.Rule == guardrails.Sources:
		return sourceField(spec)
	case spec.Image != nil && v.Rule == guardrails.Images:
		return "spec.image.reference"
	case spec.Image != nil && v.Rule == guardrails.Hostnames && spec.Host != "":
		return "spec.host"
	case spec.Image != nil && v.Rule == guardrails.Hostnames:
		return hostField(spec, v)
	}
	return w.manifests[v.Object]
}

// hostField returns the first host that a refusal names.
func hostField(spec *v1alpha1.AppSpec, v *policy.Violation) string {
	for i, h := range spec.Hosts {
		if strings.Contains(v.Why, "the host "+h.Host+",") {
			return fmt.Sprintf("spec.hosts[%d]", i)
		}
	}
	return "spec.hosts"
}

func sourceField(spec *v1alpha1.AppSpec) string {
	switch {
	case spec.Git != nil && spec.Git.OCI != nil:
		return "spec.git.oci.url"
	case spec.Git != nil:
		return "spec.git.url"
	case spec.Helm != nil && spec.Helm.Git != nil:
		return "spec.helm.git.url"
	case spec.Helm != nil:
		return "spec.helm.repository"
	}
	return ""
}
