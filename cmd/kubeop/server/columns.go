package server

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/charts"
	"github.com/kubeop/kubeop/cmd/kubeop/server/columns"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// columnsOf returns the columns of a kind.
func (s *source) columnsOf(kind target.Kind) (*columns.Columns, error) {
	definition, err := s.definitionOf(kind)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", kind.Plural, err)
	}
	return columns.Of(definition)
}

// definitionOf reads the definition of a kind, once: it is large, and a table is made for each project.
func (s *source) definitionOf(kind target.Kind) (*apiextensionsv1.CustomResourceDefinition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.definitions[kind.Name]; known != nil {
		return known, nil
	}
	text, err := charts.CRDs.ReadFile("kubeop/crds/" + v1alpha1.Group + "_" + kind.Plural + ".yaml")
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, definition); err != nil {
		return nil, err
	}
	s.definitions[kind.Name] = definition
	return definition, nil
}
