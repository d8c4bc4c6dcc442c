package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// The Flux kinds of the apps.
const (
	helmRelease   = "HelmRelease"
	kustomization = "Kustomization"
)

// sourceName is the name of the source of all apps.
const sourceName = "bench"

// resources are the kinds of Flux in use, with the versions that Flux 2.6 and later serve.
var resources = map[string]schema.GroupVersionResource{
	helmRelease:      {Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"},
	kustomization:    {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"},
	"OCIRepository":  {Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "ocirepositories"},
	"HelmRepository": {Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "helmrepositories"},
	"GitRepository":  {Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"},
}

// object builds a Flux object in the namespace of the apps.
func (f *fluxSettings) object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resources[kind].GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": f.namespace},
		"spec":     spec,
	}}
}

// source is the source of all apps: a chart in an OCI registry or a Helm repository, or a Git repository.
func (f *fluxSettings) source() *unstructured.Unstructured {
	interval := restInterval.String()
	if f.kind == kustomization {
		return f.object("GitRepository", sourceName, map[string]any{
			"interval": interval, "url": f.gitURL, "ref": map[string]any{"branch": f.gitBranch},
		})
	}
	if !strings.HasPrefix(f.chartURL, "oci://") {
		return f.object("HelmRepository", sourceName, map[string]any{"interval": interval, "url": f.chartURL})
	}
	spec := map[string]any{
		"interval": interval, "url": strings.TrimSuffix(f.chartURL, "/") + "/" + chartName, "ref": map[string]any{"tag": chartVersion},
		// Use the layer without unpacking it: it is the chart.
		"layerSelector": map[string]any{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"},
	}
	if f.insecure {
		spec["insecure"] = true
	}
	return f.object("OCIRepository", sourceName, spec)
}

// app is the Flux object of an app.
func (f *fluxSettings) app(a app) *unstructured.Unstructured {
	if f.kind == kustomization {
		return f.object(kustomization, a.Name, map[string]any{
			"interval": a.Interval.String(), "path": "./" + fluxFolder(a.Name), "prune": true, "targetNamespace": f.namespace,
			"sourceRef": map[string]any{"kind": "GitRepository", "name": sourceName},
		})
	}
	values := a.values()
	values["turn"] = int64(a.Turn) // an unstructured object may not contain an int
	spec := map[string]any{"interval": a.Interval.String(), "releaseName": a.Name, "values": values}
	if strings.HasPrefix(f.chartURL, "oci://") {
		spec["chartRef"] = map[string]any{"kind": "OCIRepository", "name": sourceName}
	} else {
		spec["chart"] = map[string]any{"spec": map[string]any{
			"chart": chartName, "version": chartVersion, "sourceRef": map[string]any{"kind": "HelmRepository", "name": sourceName},
		}}
	}
	return f.object(helmRelease, a.Name, spec)
}

// fluxFolder is the folder of a Kustomization in the Git repository.
func fluxFolder(name string) string { return path.Join("bench", name) }

// manifests returns the files of an app without a chart, by path below folder. They are what the reference chart renders.
func manifests(a app, folder string) (map[string][]byte, error) {
	values := map[string]any{}
	text, err := chartFiles.ReadFile("chart/values.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &values)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the chart's values: %w", err)
	}
	values["turn"] = a.Turn
	// The chart uses only these Helm expressions.
	functions := template.FuncMap{"quote": func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) }}
	templates, err := template.New("").Funcs(functions).ParseFS(chartFiles, "chart/templates/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the chart's templates: %w", err)
	}
	files := map[string][]byte{}
	for _, one := range templates.Templates() {
		var out bytes.Buffer
		if err := one.Execute(&out, map[string]any{"Values": values, "Release": map[string]any{"Name": a.Name}}); err != nil {
			return nil, fmt.Errorf("rendering the chart: %w", err)
		}
		files[path.Join(folder, one.Name())] = out.Bytes()
	}
	return files, nil
}

// fluxStatus is the measured status of a HelmRelease or a Kustomization.
type fluxStatus struct {
	Metadata struct {
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Interval string `json:"interval"`
		Values   struct {
			Turn int `json:"turn"`
		} `json:"values"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration     int64  `json:"observedGeneration"`
		LastAppliedRevision    string `json:"lastAppliedRevision"`
		LastHandledReconcileAt string `json:"lastHandledReconcileAt"`
		Conditions             []struct {
			Type               string `json:"type"`
			Status             string `json:"status"`
			Message            string `json:"message"`
			ObservedGeneration int64  `json:"observedGeneration"`
		} `json:"conditions"`
	} `json:"status"`
}

// progress reads the status. turn is the applied turn. A Kustomization has no condition for applied but not ready.
func (s *fluxStatus) progress(turn int) progress {
	interval, err := time.ParseDuration(s.Spec.Interval)
	if err != nil {
		return progress{Message: err.Error()}
	}
	p := progress{Input: inputOf(turn, interval), Handled: s.Status.LastHandledReconcileAt, Message: "not reconciled yet"}
	for _, c := range s.Status.Conditions {
		settled := c.Status == "True" && c.ObservedGeneration == s.Metadata.Generation
		switch c.Type {
		case "Released":
			p.Applied = settled
		case "Ready":
			p.Ready = settled && s.Status.ObservedGeneration == s.Metadata.Generation
			p.Message, p.Failed = c.Message, c.Status == "False"
		}
	}
	p.Applied = p.Applied || p.Ready
	return p
}
