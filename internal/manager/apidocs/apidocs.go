// Package apidocs renders an OpenAPI document as one page of HTML, which needs neither scripts nor the internet.
package apidocs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed page.html
var page string

//go:embed page.css
var style string

// Policy is the Content-Security-Policy of the page. It allows only the style of the page itself.
var Policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

var layout = template.Must(template.New("page").Parse(page))

type operation struct {
	Method, Path string
	*huma.Operation
	Body    []field
	Answers []answer
}

type answer struct {
	Status, Description string
	Fields              []field
}

type field struct {
	Name, Type, Description string
	Required                bool
}

type section struct {
	Tag        string
	Operations []operation
}

// Render returns the page.
func Render(document *huma.OpenAPI) ([]byte, error) {
	var out bytes.Buffer
	err := layout.Execute(&out, map[string]any{
		"Info": document.Info, "Style": template.CSS(style), "Sections": sections(document),
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the page: %w", err)
	}
	return out.Bytes(), nil
}

// sections groups the operations by their first tag, in the order of their paths.
func sections(document *huma.OpenAPI) []section {
	byTag := map[string][]operation{}
	for path, item := range document.Paths {
		for method, of := range map[string]*huma.Operation{
			"GET": item.Get, "HEAD": item.Head, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
		} {
			if of == nil {
				continue
			}
			tag := "Other"
			if len(of.Tags) > 0 {
				tag = of.Tags[0]
			}
			byTag[tag] = append(byTag[tag], describe(document, method, path, of))
		}
	}
	var all []section
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		slices.SortFunc(byTag[tag], func(a, b operation) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		})
		all = append(all, section{tag, byTag[tag]})
	}
	return all
}

func describe(document *huma.OpenAPI, method, path string, of *huma.Operation) operation {
	o := operation{Method: method, Path: path, Operation: of}
	if of.RequestBody != nil {
		o.Body = content(document, of.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(of.Responses)) {
		response := of.Responses[status]
		one := answer{Status: status, Description: response.Description}
		if strings.HasPrefix(status, "2") {
			one.Fields = content(document, response.Content)
		}
		o.Answers = append(o.Answers, one)
	}
	return o
}

func content(document *huma.OpenAPI, of map[string]*huma.MediaType) []field {
	for _, media := range slices.Sorted(maps.Keys(of)) {
		if schema := of[media].Schema; schema != nil {
			return fields(document, schema, "", 0)
		}
	}
	return nil
}

// maxDepth limits how deep the page shows a schema, because a schema may contain itself.
const maxDepth = 6

// fields lists the fields of a schema. Nested fields have their whole path.
func fields(document *huma.OpenAPI, schema *huma.Schema, below string, depth int) (all []field) {
	schema = resolve(document, schema)
	if depth > maxDepth {
		return nil
	}
	if schema.Type == huma.TypeArray && schema.Items != nil {
		return fields(document, schema.Items, below+"[]", depth+1)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		of := schema.Properties[name]
		full := strings.TrimPrefix(below+"."+name, ".")
		resolved := resolve(document, of)
		all = append(all, field{full, typeOf(document, of), cmp.Or(of.Description, resolved.Description), slices.Contains(schema.Required, name)})
		all = append(all, fields(document, of, full, depth+1)...)
	}
	return all
}

func resolve(document *huma.OpenAPI, schema *huma.Schema) *huma.Schema {
	if schema.Ref == "" {
		return schema
	}
	return document.Components.Schemas.SchemaFromRef(schema.Ref)
}

func typeOf(document *huma.OpenAPI, schema *huma.Schema) string {
	schema = resolve(document, schema)
	switch {
	case schema.Type == huma.TypeArray && schema.Items != nil:
		return "list of " + typeOf(document, schema.Items)
	case len(schema.Enum) > 0:
		var values []string
		for _, value := range schema.Enum {
			values = append(values, fmt.Sprint(value))
		}
		return strings.Join(values, " | ")
	case schema.Format != "":
		return schema.Type + " (" + schema.Format + ")"
	}
	return cmp.Or(schema.Type, "any")
}
