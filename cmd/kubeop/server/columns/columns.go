// Package columns makes rows of objects, with the columns of a CustomResourceDefinition, as the API server prints them.
package columns

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
)

// Columns are for one goroutine: paths keep where they are.
type Columns struct {
	Headers []metav1.TableColumnDefinition
	paths   []*jsonpath.JSONPath
}

// Of returns the columns of a definition.
func Of(definition *apiextensionsv1.CustomResourceDefinition) (*Columns, error) {
	c := &Columns{Headers: []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}}}
	for _, version := range definition.Spec.Versions {
		for _, column := range version.AdditionalPrinterColumns {
			path := jsonpath.New(column.Name).AllowMissingKeys(true)
			if err := path.Parse("{" + column.JSONPath + "}"); err != nil {
				return nil, fmt.Errorf("reading the column %s: %w", column.Name, err)
			}
			c.Headers = append(c.Headers, metav1.TableColumnDefinition{Name: column.Name, Type: column.Type, Priority: column.Priority})
			c.paths = append(c.paths, path)
		}
	}
	return c, nil
}

// Row returns the row of an object.
func (c *Columns) Row(object kube.Object, now time.Time) (metav1.TableRow, error) {
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
		cell, err := c.cell(c.Headers[i+1].Type, path, fields, now)
		if err != nil {
			return metav1.TableRow{}, fmt.Errorf("reading the column %s of %s: %w", c.Headers[i+1].Name, object.GetName(), err)
		}
		row.Cells = append(row.Cells, cell)
	}
	return row, nil
}

// cell returns the value of a column; nil if the object has none.
func (c *Columns) cell(kind string, path *jsonpath.JSONPath, fields map[string]any, now time.Time) (any, error) {
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
	return duration.HumanDuration(now.Sub(at)), nil
}
