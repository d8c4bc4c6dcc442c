//go:build e2e

package availability

import (
	"fmt"
	"strings"
)

// folder is an App of a folder in the tenant's own repository, with additional fields of spec.git.
func folder(of map[string]string, more ...string) func(*site) files {
	return func(s *site) files {
		all := s.declare("  type: Git\n  git:\n    {url: $url, secretRef: {name: git}, path: $folder/build" + strings.Join(more, "") + "}\n")
		for name, content := range of {
			all[s.folder()+"/build/"+name] = []byte(content)
		}
		return all
	}
}

// kustomized is a folder with a ConfigMap a and a kustomization with additional lines.
func kustomized(lines string, more map[string]string) func(*site) files {
	text := configMap("a") + "data: {k0: " + strings.Repeat("x", 100_000) + ", k1: y}\n"
	all := map[string]string{"kustomization.yaml": "resources: [a.yaml]\n" + lines, "a.yaml": text}
	for name, content := range more {
		all[name] = content
	}
	return folder(all)
}

// chain is a chain of replacements: each one uses the result of the one before.
func chain(n int) string {
	var out strings.Builder
	out.WriteString("replacements:\n")
	for i := range n {
		fmt.Fprintf(&out, "- source: {kind: ConfigMap, name: a, fieldPath: data.k%d}\n  targets:\n  - select: {kind: ConfigMap, name: a}\n"+
			"    fieldPaths: [data.k%d]\n    options: {create: true, delimiter: '-', index: -1}\n", i%2, (i+1)%2)
	}
	return out.String()
}

func manyObjects(n int) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(configMap(fmt.Sprintf("o%d", i)) + "data: {a: b}\n---\n")
	}
	return out.String()
}

// doubled are kustomizations that each include the next one twice, under different names.
func doubled(levels int) map[string]string {
	all := map[string]string{"kustomization.yaml": "resources: [l0/a, l0/b]\n"}
	for i := range levels {
		for _, half := range []string{"a", "b"} {
			dir := fmt.Sprintf("l%d/%s/", i, half)
			all[dir+"kustomization.yaml"] = fmt.Sprintf("namePrefix: %s\nresources: [../../l%d/a, ../../l%d/b]\n", half, i+1, i+1)
		}
	}
	for _, half := range []string{"a", "b"} {
		dir := fmt.Sprintf("l%d/%s/", levels, half)
		all[dir+"kustomization.yaml"], all[dir+"a.yaml"] = "namePrefix: "+half+"\nresources: [a.yaml]\n", configMap("a")
	}
	return all
}

// manyRecipients is a SOPS file for thousands of keys.
func manyRecipients(n int) string {
	const encrypted = "'ENC[AES256_GCM,data:AAAA,iv:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,tag:AAAAAAAAAAAAAAAAAAAAAA==,type:str]'"
	var out strings.Builder
	out.WriteString(configMap("a") + "data: {a: " + encrypted + "}\nsops:\n  version: 3.13.3\n  mac: " + encrypted +
		"\n  lastmodified: '2026-11-20T18:33:07Z'\n  age:\n")
	for range n {
		out.WriteString("  - {recipient: age1g2k6l9rx35q0rfu0nxxxtwrg4uazdt9d2es82twzxm6z7rwd9y2q6ekz6c, " +
			"enc: \"-----BEGIN AGE ENCRYPTED FILE-----\\nYWdl\\n-----END AGE ENCRYPTED FILE-----\\n\"}\n")
	}
	return out.String()
}

func manyFiles(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprintf("%d/%d.txt", i%100, i)] = "x"
	}
	return all
}

// built are attacks on kustomize and SOPS.
var built = box{"kustomize and SOPS", []attack{
	{name: "replacements that double a text 40 times", key: "doubling", push: kustomized(chain(40), nil),
		wants: appReports("RenderFailed", "replacements may make more than")},
	{name: "a variable with a text in 200,000 places", key: "vars", wants: appReports("RenderFailed", "vars may make more than"),
		push: kustomized("", map[string]string{
			"b.yaml":             configMap("b") + "data: {k: '" + strings.Repeat("$(A)", 200_000) + "'}\n",
			"kustomization.yaml": "resources: [a.yaml, b.yaml]\nvars: [{name: A, objref: {apiVersion: v1, kind: ConfigMap, name: a}, fieldref: {fieldpath: data.k0}}]\n",
		})},
	{name: "a patch that copies itself 40 times", key: "copying", wants: appReports("RenderFailed", "may make more than"),
		push: kustomized("patches: [{target: {kind: ConfigMap}, path: p.json}]\n", map[string]string{
			"p.json": `[{"op": "add", "path": "/data/z", "value": {}}` + strings.Repeat(`, {"op": "copy", "from": "/data", "path": "/data/z/z"}`, 40) + `]`})},
	{name: "a patch of 900 KB on 900 objects", key: "patched", wants: appReports("RenderFailed", "may make more than"),
		push: kustomized("", map[string]string{"a.yaml": manyObjects(900), "p.yaml": "- {op: add, path: /data/z, value: " + strings.Repeat("x", 900_000) + "}\n",
			"kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, path: p.yaml}]\n"})},
	{name: "annotations of 900 KB on 900 objects", key: "noted", wants: appReports("RenderFailed", "may make more than"),
		push: kustomized("", map[string]string{"a.yaml": manyObjects(900),
			"kustomization.yaml": "resources: [a.yaml]\ncommonAnnotations: {a: " + strings.Repeat("x", 900_000) + "}\n"})},
	{name: "a list of 500,000 in a manifest", key: "million",
		push:  kustomized("", map[string]string{"a.yaml": configMap("a") + "data: {a: [" + strings.Repeat("a,", 500_000) + "]}"}),
		wants: appReports("RenderFailed", "a.yaml")},
	{name: "90,000 nested brackets", key: "deep",
		push:  kustomized("", map[string]string{"a.yaml": configMap("a") + "data: {a: " + strings.Repeat("[", 90_000) + "}"}),
		wants: appReports("RenderFailed", "a.yaml")},
	{name: "YAML of ten billion words by aliases", key: "laughs", push: kustomized("", map[string]string{"a.yaml": aliasBomb(10)}),
		wants: appReports("RenderFailed", "a.yaml")},
	{name: "30 kustomizations, each of which includes the next twice", key: "bases", push: folder(doubled(30)), wants: appReports("RenderFailed", "")},
	{name: "kustomizations that include each other", key: "ring", push: folder(map[string]string{
		"kustomization.yaml": "resources: [b]\n", "b/kustomization.yaml": "resources: [..]\n"}), wants: appReports("RenderFailed", "kustomize")},
	{name: "20,001 files", key: "crowded", push: folder(manyFiles(20_001)), wants: appReports("", "files and folders")},
	{name: "a variable of 100 KB in 10,000 places", key: "substitute", wants: appReports("RenderFailed", "variable"),
		push: folder(map[string]string{"a.yaml": configMap("a") + "data: {a: '" + strings.Repeat("${V}", 10_000) + "'}\n"},
			", substitute: {V: "+strings.Repeat("x", 100_000)+"}")},
	{name: "a SOPS file for 2,000 keys, in 20 copies", key: "sops", wants: appReports("DecryptionFailed", ""),
		push: func(s *site) files {
			of := map[string]string{}
			for n := range 20 {
				of[fmt.Sprintf("%d.yaml", n)] = manyRecipients(2000)
			}
			return folder(of, ", decryption: {provider: sops, secretRef: {name: git}}")(s)
		}},
	{name: "a SOPS file of 150 levels", key: "sopsdeep", wants: []want{{of: "App", reason: "DecryptionFailed"}, {of: "App", reason: "RenderFailed"}},
		push: folder(map[string]string{"a.yaml": configMap("a") + "data: " + strings.Repeat("{a: ", 150) + "1" + strings.Repeat("}", 150) + "\n" +
			manyRecipients(1)[len(configMap("a")):]},
			", decryption: {provider: sops, secretRef: {name: git}}")},
	{name: "5,000 files of 1,000 lines each, generated into a ConfigMap", key: "generated", wants: appReports("RenderFailed", ""), push: func(s *site) files {
		of, names := map[string]string{}, make([]string, 0, 5000)
		for n := range 5000 {
			name := fmt.Sprintf("f%d.txt", n)
			of[name], names = strings.Repeat("a line of it\n", 1000), append(names, name)
		}
		of["kustomization.yaml"] = "configMapGenerator: [{name: a, files: [" + strings.Join(names, ", ") + "]}]\n"
		return folder(of)(s)
	}},
}}
