package schema

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/gitops/examples"
)

var update = flag.Bool("update", false, "write docs/schema")

// TestThePublishedSchemasAreThoseOfTheDefinitions compares docs/schema with the definitions. `go test ./gitops/schema -update` writes it.
func TestThePublishedSchemasAreThoseOfTheDefinitions(t *testing.T) {
	for name := range Names() {
		want, err := Of(name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("../../docs/schema", name+".json")
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		written, err := os.ReadFile(file)
		if diff := cmp.Diff(string(want), string(written)); err != nil || diff != "" {
			t.Errorf("%s is out of date: %v (-want +got):\n%s", file, err, diff)
		}
	}
}

// compiled returns a schema, compiled by a library that follows the specification.
func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := Of(name)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(document)
}

// TestTheSamplesFitTheSchemas checks every file of the sample repositories.
func TestTheSamplesFitTheSchemas(t *testing.T) {
	checked := map[string]int{}
	for _, repository := range []string{"acme", "platform", examples.Stages} {
		files, err := examples.Repository(repository, examples.Places{GitURL: "https://git.example.com/demo", Registry: "registry.example.com/demo"})
		if err != nil {
			t.Fatal(err)
		}
		for name, file := range Names() {
			schema := compiled(t, name)
			for place, text := range files {
				if matches, err := path.Match(file, place); err != nil || !matches && path.Base(place) != file {
					continue
				}
				checked[name]++
				if err := validate(t, schema, string(text)); err != nil {
					t.Errorf("%s: %v", place, err)
				}
			}
		}
	}
	// No sample has one, because it would need a Secret.
	const registry = "{apiVersion: paas.kubeop.io/v1alpha1, kind: Registry, metadata: {name: ghcr}, spec: {host: ghcr.io, secretRef: {name: ghcr}, tenants: [acme], policies: [standard]}}"
	checked["registry"]++
	if err := validate(t, compiled(t, "registry"), registry); err != nil {
		t.Error(err)
	}
	// The samples are for one cluster.
	checked["cluster"]++
	if err := validate(t, compiled(t, "cluster"), "{apiVersion: paas.kubeop.io/v1alpha1, kind: Cluster, metadata: {name: west}, spec: {default: true, server: 'https://west.example.com:6443', description: The first one}}"); err != nil {
		t.Error(err)
	}
	for name := range Names() {
		if checked[name] == 0 {
			t.Errorf("no sample of %s was checked", name)
		}
	}
}

func TestTheSchemasRefuseInvalidFiles(t *testing.T) {
	const head = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\n"
	for text, want := range map[string]string{
		head + "spec: {type: Raw, raw: {path: m}}":                                            "",
		head + "spec: {type: Raw, raw: {manifests: [{kind: X, any: thing}]}}":                 "",
		head + "spec: {type: Image, image: {reference: a/b:1, ports: [{name: h, port: 80}]}}": "",
		head + "spec: {typ: Raw}": "additional properties 'typ' not allowed",
		head + "spec: {type: Rw}": "value must be one of",
		head + "spec: {type: Image, image: {reference: a/b:1, replicas: many}}":                "got string, want integer",
		head + "status: {}\nspec: {type: Raw}":                                                 "additional properties 'status' not allowed",
		strings.Replace(head, "name: web", "name: web, namespace: x", 1) + "spec: {type: Raw}": "additional properties 'namespace' not allowed",
		strings.Replace(head, "kind: App", "kind: Project", 1) + "spec: {type: Raw}":           "value must be 'App'",
		strings.Replace(head, "metadata: {name: web}\n", "", 1) + "spec: {type: Raw}":          "missing property 'metadata'",
		head: "missing property 'spec'",
	} {
		err := validate(t, compiled(t, "app"), text)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	const policy = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: baseline}\n"
	for text, want := range map[string]string{
		policy: "", policy + "spec: {images: {allow: [a.example.com]}}": "", policy + "spec: {images: {action: Block}}": "value must be one of",
		policy + "spec: {image: {}}": "additional properties 'image' not allowed", policy + "spec: {hostnames: {}}": "missing property 'suffixes'",
	} {
		if err := validate(t, compiled(t, "policy"), text); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for text, ok := range map[string]bool{"layout: v1": true, "layout: v2": false, "{}": false, "layout: v1\nmore: 1": false} {
		if err := validate(t, compiled(t, "kubeop"), text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestRulesAreDescribed(t *testing.T) {
	text, err := Of("app")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Rule: exactly one of manifests and path must be set.", `"$schema": "` + Draft + `"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the schema", want)
		}
	}
	if strings.Contains(string(text), "x-kubernetes-") {
		t.Error("the schema has fields of Kubernetes")
	}
}

func TestAnUnknownSchemaIsAnErrorThatNamesTheOthers(t *testing.T) {
	if _, err := Of("pod"); err == nil || err.Error() != `there is no schema "pod"; there are app, project, tenant, policy, registry, pricelist, cluster and kubeop` {
		t.Errorf("got %v", err)
	}
}
