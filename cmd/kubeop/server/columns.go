package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/charts"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// columns are those that the definition of a kind has, as the API server prints them.
type columns struct {
	headers []metav1.TableColumnDefinition
	paths   []*jsonpath.JSONPath
}

// columnsOf returns the columns of a kind, for one goroutine: paths keep where they are.
func (s *source) columnsOf(kind target.Kind) (*columns, error) {
	definition, err := s.definitionOf(kind)
	if err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", kind.Plural, err)
	}
	c := &columns{headers: []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}}}
	for _, version := range definition.Spec.Versions {
		for _, column := range version.AdditionalPrinterColumns {
			path := jsonpath.New(column.Name).AllowMissingKeys(true)
			if err := path.Parse("{" + column.JSONPath + "}"); err != nil {
				return nil, fmt.Errorf("reading the columns of %s: %w", kind.Plural, err)
			}
			c.headers = append(c.headers, metav1.TableColumnDefinition{Name: column.Name, Type: column.Type, Priority: column.Priority})
			c.paths = append(c.paths, path)
		}
	}
	return c, nil
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

// row returns the row of an object.
func (c *columns) row(object kube.Object, now time.Time) (metav1.TableRow, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return metav1.TableRow{}, fmt.Errorf("reading the fields of %s: %w", object.GetName(), err)
	}
	about, err := json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}})
	if err != nil {
		return metav1.TableRow{}, fmt.Errorf("writing the name of %s: %w", object.GetName(), err)
	}
	row := metav1.TableRow{Cells: []any{object.GetName()}, Object: runtime.RawExtension{Raw: about}}
	for i, path := range c.paths {
		cell, err := c.cell(c.headers[i+1].Type, path, fields, now)
		if err != nil {
			return metav1.TableRow{}, fmt.Errorf("reading the column %s of %s: %w", c.headers[i+1].Name, object.GetName(), err)
		}
		row.Cells = append(row.Cells, cell)
	}
	return row, nil
}

// cell returns the value of a column; nil if the object has none.
func (c *columns) cell(kind string, path *jsonpath.JSONPath, fields map[string]any, now time.Time) (any, error) {
	found, err := path.FindResults(fields)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || len(found[0]) == 0 {
		return nil, nil
	}
	var text bytes.Buffer
	if err := path.PrintResults(&text, []reflect.Value{found[0][0]}); err != nil {
		return nil, err
	}
	if kind != "date" {
		return text.String(), nil
	}
	at, err := time.Parse(time.RFC3339, text.String())
	if err != nil {
		return nil, err
	}
	return output.Age(now, at), nil
}
