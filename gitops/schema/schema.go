// Package schema makes JSON schemas of the files of a repository, so that editors complete and check them while they are written. The schemas
// follow from the CustomResourceDefinitions that the chart installs. What a JSON schema cannot say, such as a CEL rule, is in the description of
// its field; `kubeop validate` checks everything.
package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/charts"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Draft is the version of JSON Schema of the schemas. Every editor knows it.
const Draft = "http://json-schema.org/draft-07/schema#"

// Names are the files that have a schema, as patterns of the end of their paths, by the names of the schemas.
func Names() map[string]string {
	return map[string]string{
		"app": layout.AppFile, "project": layout.ProjectFile, "tenant": layout.TenantFile, "kubeop": layout.VersionFile, "policy": layout.PolicyFile("*"),
		"registry": layout.RegistryFile("*"), "pricelist": layout.PriceListFile("*"), "cluster": layout.ClusterFile("*"),
	}
}

// resources are the plural names of the kinds, by the names of their schemas.
var resources = map[string]string{"app": "apps", "project": "projects", "tenant": "tenants", "policy": "policies", "registry": "registries", "pricelist": "pricelists",
	"cluster": "clusters"}

// Of returns the schema of a name, as indented JSON.
func Of(name string) ([]byte, error) {
	root, err := root(name)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema of %s: %w", name, err)
	}
	return append(text, '\n'), nil
}

func root(name string) (map[string]any, error) {
	if name == "kubeop" {
		return versionFile(), nil
	}
	resource, ok := resources[name]
	if !ok {
		return nil, fmt.Errorf("there is no schema %q; there are app, project, tenant, policy, registry, pricelist, cluster and kubeop", name)
	}
	data, err := charts.CRDs.ReadFile("kubeop/crds/" + v1alpha1.Group + "_" + resource + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", resource, err)
	}
	var definition struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", resource, err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == v1alpha1.GroupVersion.Version {
			return file(version.Schema.OpenAPIV3Schema, definition.Spec.Names.Kind), nil
		}
	}
	return nil, fmt.Errorf("the definition of %s has no version %s", resource, v1alpha1.GroupVersion.Version)
}

// file returns the schema of a file from the schema of its object: without status, and with the metadata that a file can have.
func file(object map[string]any, kind string) map[string]any {
	properties, _ := object["properties"].(map[string]any)
	delete(properties, "status")
	required, _ := object["required"].([]any)
	convert(object)
	stamps := map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	properties["apiVersion"] = map[string]any{"const": v1alpha1.GroupVersion.String()}
	properties["kind"] = map[string]any{"const": kind}
	properties["metadata"] = map[string]any{
		"type": "object", "required": []any{"name"}, "additionalProperties": false,
		"properties": map[string]any{
			"name":   map[string]any{"type": "string", "description": nameOf(kind)},
			"labels": stamps, "annotations": stamps,
		},
	}
	for _, name := range []any{"apiVersion", "kind", "metadata"} {
		if !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	object["$schema"], object["title"], object["required"] = Draft, "kubeop "+kind, required
	return object
}

func nameOf(kind string) string {
	if kind == v1alpha1.PolicyKind || kind == v1alpha1.RegistryKind || kind == v1alpha1.PriceListKind || kind == v1alpha1.ClusterKind {
		return "Name is the name of the file, without .yaml."
	}
	return "Name is the name of the folder that the file is in."
}

// versionFile is the schema of kubeop.yaml.
func versionFile() map[string]any {
	return map[string]any{
		"$schema": Draft, "title": "kubeop.yaml", "type": "object", "required": []any{"layout"}, "additionalProperties": false,
		"properties": map[string]any{"layout": map[string]any{"const": layout.Version, "description": "Layout is the version of the layout of the repository."}},
	}
}

// convert changes an OpenAPI schema of Kubernetes, and all schemas in it, to JSON Schema. An object has only the fields that it lists, as kubeop
// checks it.
func convert(s map[string]any) {
	_, open := s["x-kubernetes-preserve-unknown-fields"]
	properties, listed := s["properties"].(map[string]any)
	if _, said := s["additionalProperties"]; listed && !said && !open {
		s["additionalProperties"] = false
	}
	if s["x-kubernetes-list-type"] == "set" {
		s["uniqueItems"] = true
	}
	describeRules(s)
	for key := range s {
		if strings.HasPrefix(key, "x-kubernetes-") {
			delete(s, key)
		}
	}
	for _, property := range properties {
		if within, ok := property.(map[string]any); ok {
			convert(within)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if within, ok := s[key].(map[string]any); ok {
			convert(within)
		}
	}
}

// describeRules adds the messages of CEL rules to the description.
func describeRules(s map[string]any) {
	rules, _ := s["x-kubernetes-validations"].([]any)
	description, _ := s["description"].(string)
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		if message, ok := fields["message"].(string); ok {
			description = strings.TrimSpace(description + "\n\nRule: " + message + ".")
		}
	}
	if description != "" {
		s["description"] = description
	}
}
