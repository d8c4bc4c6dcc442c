//go:build e2e

package availability

import (
	"fmt"
	"maps"
	"strings"
)

// raw is an App of manifests in its folder.
func raw(of map[string]string) func(*site) files {
	return func(s *site) files {
		all := s.declare("  {type: Raw, raw: {path: m}}\n")
		for name, content := range of {
			all[s.folder()+"/m/"+name] = []byte(content)
		}
		return all
	}
}

// manifests are n ConfigMaps of a megabyte each, which Git compresses well.
func manifests(n int) func(*site) files {
	return func(s *site) files {
		text := strings.Repeat("x", 990_000)
		of := map[string]string{}
		for i := range n {
			of[fmt.Sprintf("%d.yaml", i)] = configMap(fmt.Sprint("c", i)) + "data: {a: " + text + "}\n"
		}
		return raw(of)(s)
	}
}

// apps are n Apps with the specs that spec returns.
func apps(n int, spec func(n int) string) func(*site) files {
	return func(s *site) files {
		all := files{}
		for i := range n {
			maps.Copy(all, s.declare(spec(i), i))
		}
		return all
	}
}

// small is an App with one small ConfigMap.
func small(n int) string {
	return fmt.Sprintf("  {type: Raw, raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}]}}\n", n)
}

// appFile is an App with a given app.yaml.
func appFile(text string) func(*site) files {
	return func(s *site) files {
		return files{s.folder() + "/app.yaml": []byte(fmt.Sprintf(declared, "App", s.app()) + text)}
	}
}

func number(few, many int) int {
	if full {
		return many
	}
	return few
}

// trees are attacks by the tree of a commit and by values.
var trees = box{"trees and values", []attack{
	{name: "an app of hundreds of manifests of 1 MB", key: "megabytes", push: manifests(number(300, 1500)), wants: appReports("TooLarge", "appBytes")},
	{name: "hundreds of suspended apps of 900 KB", key: "suspended", wants: refused(""), push: apps(number(200, 1000), func(int) string {
		return "  {type: Raw, suspend: true, raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: " +
			strings.Repeat("x", 900_000) + "}}]}}\n"
	})},
	{name: "151 projects in one commit", key: "projects", wants: refused("projects"), push: func(*site) files {
		all := files{}
		for n := range 151 {
			all[fmt.Sprintf("projects/more%d/project.yaml", n)] = fmt.Appendf(nil, declared, "Project", fmt.Sprint("more", n))
		}
		return all
	}},
	{name: "an app.yaml of 3 MB", key: "large",
		push: appFile("spec:\n  type: Raw\n  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: " +
			strings.Repeat("x", 3_000_000) + "}}]}\n"),
		wants: refused("large")},
	{name: "an app.yaml of 900,000 nested brackets", key: "brackets", push: appFile("spec: " + strings.Repeat("[", 900_000) + "\n"),
		wants: refused("brackets/app.yaml")},
	{name: "an app.yaml of 300,000 empty lists", key: "empty", push: appFile("spec: [" + strings.Repeat("[],", 300_000) + "[]]\n"),
		wants: refused("empty/app.yaml")},
	{name: "an app.yaml of ten billion words by aliases", key: "billion", push: appFile(aliasBomb(10)), wants: refused("billion/app.yaml")},
	{name: "values of 5 MiB of empty lists, in a file beside the app", key: "values",
		wants: []want{{of: "App", reason: "ValuesFailed"}, {of: "App", reason: "RenderFailed"}, {of: "Repository", message: "values"}},
		push: func(s *site) files {
			all := s.chart(map[string]string{"templates/a.yaml": configMap("a")})
			maps.Copy(all, s.declare("  {type: Helm, helm: {path: chart, valuesFiles: [v.yaml]}}\n"))
			all[s.folder()+"/v.yaml"] = []byte(manyLists(5*mebibyte - 100))
			return all
		}},
	{name: "values of ten billion words by aliases", key: "aliased", wants: []want{{of: "App", reason: "ValuesFailed"}, {of: "App", reason: "RenderFailed"}},
		push: func(s *site) files {
			all := s.chart(map[string]string{"templates/a.yaml": configMap("a")})
			maps.Copy(all, s.declare("  {type: Helm, helm: {path: chart, valuesFiles: [v.yaml]}}\n"))
			all[s.folder()+"/v.yaml"] = []byte(aliasBomb(10))
			return all
		}},
	{name: "a dependency cycle of 8 apps", key: "circle", wants: refused("circle-"), push: func(s *site) files {
		return apps(8, func(n int) string {
			return strings.Replace(small(n), "type: Raw", fmt.Sprintf("type: Raw, dependsOn: [{name: circle-%d}]", (n+1)%8), 1)
		})(s)
	}},
	{name: "10,000 files that are not YAML", key: "wrong", alone: true, wants: refused("projects/evil"), push: func(s *site) files {
		all := files{}
		for n := range 10_000 {
			all[fmt.Sprintf("projects/evil/wrong/%d.yaml", n)] = []byte("a: b: c\n")
		}
		return all
	}},
	{name: "an app of 20,001 files", key: "heap", wants: []want{{of: "Repository", message: "heap"}, {of: "App", message: "files"}}, push: func(s *site) files {
		return raw(manyFiles(20_001))(s)
	}},
	{name: "an app of 6,000 objects", key: "objects", wants: appReports("TooLarge", "5000"), push: func(s *site) files {
		of := map[string]string{}
		for n := range 12 {
			of[fmt.Sprintf("%d.yaml", n)] = strings.ReplaceAll(manyObjects(500), "name: o", fmt.Sprintf("name: o%d-", n))
		}
		return raw(of)(s)
	}},
	{name: "hundreds of small apps that are created and deleted", key: "many",
		wants: []want{{of: "App", name: "many-0", reason: "Succeeded"}, {of: "Repository", message: "apps"}}, push: apps(number(100, 500), small)},
	{name: "apps that request the same object each second", key: "conflict", alone: true,
		wants: []want{{of: "App", name: "conflict-1", message: "belongs to"}, {of: "App", name: "conflict-2", message: "belongs to"}},
		push: apps(number(30, 300), func(int) string {
			return "  {type: Raw, retryInterval: 1s, raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}]}}\n"
		})},
}}
