//go:build e2e

package availability

import (
	"fmt"
	"maps"
	"strings"
)

// chart is an App of a chart in its folder, with the given files.
func chart(of map[string]string) func(*site) files {
	return func(s *site) files { return s.chart(of) }
}

func (s *site) chart(of map[string]string, n ...int) files {
	all := s.declare("  {type: Helm, helm: {path: chart}}\n", n...)
	all[s.folder(n...)+"/chart/Chart.yaml"] = []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")
	for name, content := range of {
		all[s.folder(n...)+"/chart/"+name] = []byte(content)
	}
	return all
}

// template is a chart with one template, which makes a ConfigMap with a value.
func template(value string) func(*site) files {
	return chart(map[string]string{"templates/a.yaml": configMap("{{ .Release.Name }}") + "data: {a: '" + value + "'}\n"})
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

const (
	mebibyte = 1 << 20
	endless  = `{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}`
	tooDear  = "takes more than the limit of"
)

// manyLists is short YAML that takes hundreds of times as much memory.
func manyLists(bytes int) string {
	return "a: [" + strings.Repeat("[],", bytes/3-10) + "[]]\n"
}

// aliasBomb is a mapping whose aliases expand to 10 to the power of n words.
func aliasBomb(n int) string {
	var out strings.Builder
	out.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&out, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	return out.String()
}

// chartsWithin are n nested subcharts.
func chartsWithin(n int) map[string]string {
	all, path := map[string]string{"templates/a.yaml": configMap("a")}, ""
	for i := range n {
		path += fmt.Sprintf("charts/c%d/", i)
		all[path+"Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: c%d\nversion: 1.0.0\n", i)
		all[path+"templates/a.yaml"] = endless
	}
	return all
}

// schemaOfMany is a JSON schema that is expensive to validate.
func schemaOfMany() map[string]string {
	return map[string]string{
		"templates/a.yaml": configMap("a"),
		"values.yaml":      "a: [" + strings.Repeat("1, ", 3000) + "1]\n",
		"values.schema.json": `{"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/y"}, {"$ref": "#/$defs/y"}]},
"y": {"anyOf": [{"$ref": "#/$defs/z"}, {"$ref": "#/$defs/z"}]},
"z": {"type": "array", "uniqueItems": true, "items": {"pattern": "^(a|b|ab)*c$", "not": {"type": "integer"}}}}, "properties": {"a": {"allOf": [` +
			strings.Repeat(`{"$ref": "#/$defs/x"}, `, 2000) + `{"$ref": "#/$defs/x"}]}}}`,
	}
}

// rendered are attacks on Helm's rendering.
var rendered = box{"charts", []attack{
	{name: "a template of 3 GB of text", key: "repeat", push: template(`{{ repeat 3000000000 "a" | len }}`), wants: appReports("RenderFailed", tooDear)},
	{name: "a template of a list of 400 million", key: "until", push: template(`{{ until 400000000 | len }}`),
		wants: appReports("RenderFailed", tooDear)},
	{name: "a template that evaluates itself without end", key: "tpl", wants: appReports("RenderFailed", tooDear), push: chart(map[string]string{
		"templates/a.yaml": configMap("a") + "data: {a: '{{ tpl .Values.t . }}'}\n", "values.yaml": "t: \"{{ tpl .Values.t . }}\"\n",
	})},
	{name: "four charts whose values.yaml is 5 MiB of empty lists", key: "lists",
		wants: []want{{of: "App", name: "lists-3", reason: "RenderFailed", message: "values.yaml"}},
		push: func(s *site) files {
			all := files{}
			for n := range 4 {
				maps.Copy(all, s.chart(map[string]string{"values.yaml": manyLists(5*mebibyte - n - 100)}, n))
			}
			return all
		}},
	{name: "a template that never ends", key: "endless", push: template(endless), wants: appReports("RenderFailed", tooDear)},
	{name: "templates that include each other without end", key: "include", wants: appReports("RenderFailed", "rendering"), push: chart(map[string]string{
		"templates/a.yaml": `{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`})},
	{name: "a dictionary that contains itself, as text", key: "cycle", push: template(`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toString $d | len }}`),
		wants: appReports("RenderFailed", "limit of")},
	{name: "a dictionary that contains itself, copied", key: "copy", push: template(`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ deepCopy $d | len }}`),
		wants: appReports("RenderFailed", "limit of")},
	{name: "a manifest of 40 MB", key: "wide", push: chart(map[string]string{"templates/a.yaml": "a: |\n{{ repeat 40000000 \"a\" | indent 2 }}\n"}),
		wants: appReports("RenderFailed", "limit of")},
	{name: "a small template that renders to millions of lists", key: "deeper",
		push: chart(map[string]string{"templates/a.yaml": "a: [{{ repeat 3000000 \"[],\" }}[]]\n"}), wants: appReports("RenderFailed", "")},
	{name: "ten thousand numbers of a million digits", key: "digits", push: template(`{{ range until 10000 }}{{ printf "%01000000d" 1 }}{{ end }}`),
		wants: appReports("RenderFailed", "")},
	{name: "hundreds of keys of 4,096 bits", key: "keys", push: template(`{{ range until 300 }}{{ genCA "a" 365 | toString | len }}{{ end }}`),
		wants: appReports("RenderFailed", tooDear)},
	{name: "thousands of passwords by scrypt", key: "scrypt",
		push: template(`{{ range until 3000 }}{{ derivePassword 1 "long" "a" "b" "c" | len }}{{ end }}`), wants: appReports("RenderFailed", tooDear)},
	{name: "YAML of ten billion words by aliases", key: "alias", wants: []want{{of: "App", reason: "RenderFailed"}, {of: "App", reason: "Succeeded"}},
		push: chart(map[string]string{
			"templates/a.yaml": configMap("{{ .Release.Name }}") + `data: {a: '{{ .Files.Get "a.yaml" | fromYaml | toJson | len }}'}` + "\n", "a.yaml": aliasBomb(10)})},
	{name: "thousands of lookups", key: "lookup",
		push:  template(`{{ range until 5000 }}{{ lookup "v1" "ConfigMap" $.Release.Namespace "" | len }}{{ end }}`),
		wants: appReports("RenderFailed", "questions")},
	{name: "a JSON schema whose branches multiply", key: "schema", push: chart(schemaOfMany()), wants: appReports("", "values")},
	{name: "30 nested charts, none of which ends", key: "nested", push: chart(chartsWithin(30)),
		wants: []want{{of: "App", reason: "RenderFailed"}, {of: "Repository", message: "nested"}}},
	{name: "regular expressions over megabytes, a thousand times", key: "regex", wants: appReports("RenderFailed", tooDear),
		push: template(`{{ $t := repeat 3000000 "ab" }}{{ range until 1000 }}{{ regexReplaceAll "(a|b|ab)*c" $t "x" | len }}{{ end }}`)},
	{name: "many charts that never end", key: "crowd", wants: []want{{of: "App", name: "crowd-7", reason: "RenderFailed", message: tooDear}},
		push: func(s *site) files {
			all := files{}
			for n := range number(8, 20) {
				maps.Copy(all, s.chart(map[string]string{"templates/a.yaml": fmt.Sprintf("# %d\n", n) + endless}, n))
			}
			return all
		}},
}}
