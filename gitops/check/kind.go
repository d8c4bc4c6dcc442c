package check

import (
	"fmt"
	"io/fs"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/charts"
)

// Kinds are the compiled CustomResourceDefinitions of the kinds that files may declare. They are compiled once, and safe for concurrent
// use.
type Kinds map[string]*kind

// kind is a CustomResourceDefinition compiled to check objects the way the API server does: schema, lists, CEL rules.
type kind struct {
	schema *schema.Structural
	values validation.SchemaValidator
	rules  *cel.Validator
	// empty returns a new, empty typed object.
	empty func() client.Object
}

// declarable is the closed list of kinds that files may declare.
var declarable = map[string]func() client.Object{
	v1alpha1.PolicyKind:    func() client.Object { return &v1alpha1.Policy{} },
	v1alpha1.RegistryKind:  func() client.Object { return &v1alpha1.Registry{} },
	v1alpha1.PriceListKind: func() client.Object { return &v1alpha1.PriceList{} },
	v1alpha1.ClusterKind:   func() client.Object { return &v1alpha1.Cluster{} },
	v1alpha1.TenantKind:    func() client.Object { return &v1alpha1.Tenant{} },
	v1alpha1.ProjectKind:   func() client.Object { return &v1alpha1.Project{} },
	v1alpha1.AppKind:       func() client.Object { return &v1alpha1.App{} },
}

// Compile compiles the CustomResourceDefinitions that the chart installs.
func Compile() (Kinds, error) {
	files, err := fs.Glob(charts.CRDs, "kubeop/crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the CRDs: %w", err)
	}
	kinds := Kinds{}
	for _, file := range files {
		data, err := charts.CRDs.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the CRDs: %w", err)
		}
		name, k, err := compileKind(data)
		if err != nil {
			return nil, fmt.Errorf("compiling %s: %w", file, err)
		}
		if empty, ok := declarable[name]; ok {
			k.empty = empty
			kinds[name] = k
		}
	}
	for name := range declarable {
		if kinds[name] == nil {
			return nil, fmt.Errorf("no CRD of kind %s in the chart", name)
		}
	}
	return kinds, nil
}

// compileKind compiles a CustomResourceDefinition, and returns the name of its kind.
func compileKind(data []byte) (string, *kind, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		return "", nil, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Name != v1alpha1.GroupVersion.Version || v.Schema == nil {
			continue
		}
		k, err := compileSchema(v.Schema.OpenAPIV3Schema)
		return crd.Spec.Names.Kind, k, err
	}
	return "", nil, fmt.Errorf("no schema of version %s", v1alpha1.GroupVersion.Version)
}

func compileSchema(published *apiextensionsv1.JSONSchemaProps) (*kind, error) {
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, &props, nil); err != nil {
		return nil, fmt.Errorf("converting the schema: %w", err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("reading the structural schema: %w", err)
	}
	values, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	return &kind{schema: structural, values: values, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}
