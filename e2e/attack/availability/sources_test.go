//go:build e2e

package availability

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/e2e/stage"
)

// source is an App with a given spec. $host is the attackers' server.
func source(spec string) func(*site) files {
	return func(s *site) files { return s.declare(spec) }
}

// judged is an App that waits until an expression on the app steady's ConfigMap is true.
func judged(expression string) func(*site) files {
	return source("  type: Raw\n  dependsOn:\n  - apiVersion: v1\n    kind: ConfigMap\n    name: steady\n    project: shop\n" +
		"    readyExpr: \"" + expression + "\"\n" +
		"  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}\n")
}

const ten = "[0,1,2,3,4,5,6,7,8,9]"

// nestedIn is an expression with nested loops of ten elements.
func nestedIn(depth int, inner string) string {
	for n := range depth {
		inner = fmt.Sprintf("%s.map(x%d, %s)", ten, n, inner)
	}
	return inner
}

// packs creates a repository of branches that are small but inflate to hundreds of megabytes.
func packs(ctx context.Context, s *site) error {
	name := s.name + "-packs"
	repo, err := platform.CreateRepository(ctx, name, "")
	if err != nil {
		return err
	}
	if _, err := repo.Git(ctx, "config", "core.bigFileThreshold", "1m"); err != nil { // So that Git does not search for deltas.
		return err
	}
	zeros := make([]byte, 30*mebibyte)
	for branch := range number(4, 24) {
		c := &stage.Commits{}
		c.Commit(fmt.Sprint("b", branch), "", "Inflate")
		for n := range number(6, 16) {
			zeros[0], zeros[1] = byte(branch), byte(n)
			c.File(fmt.Sprint("f", n), zeros)
		}
		if err := repo.Import(ctx, c.Done()); err != nil {
			return err
		}
	}
	_, err = repo.Git(ctx, "push", "--quiet", "--all", "origin")
	return err
}

// fetchedAndJudged are attacks by packs, artifacts, indexes, registries and expressions.
var fetchedAndJudged = box{"packs, artifacts, indexes, registries, CEL", []attack{
	{name: "small packs that inflate to hundreds of megabytes", key: "inflate", alone: true, ready: packs,
		wants: []want{{of: "App", name: "inflate-0"}}, push: func(s *site) files {
			return apps(number(4, 24), func(n int) string {
				return fmt.Sprintf("  {type: Git, git: {url: %s/%s-packs.git, ref: {branch: b%d}}}\n", platform.GitURL(), s.name, n)
			})(s)
		}},
	{name: "hundreds of apps on a Git server that answers after 1.8 s", key: "slow", alone: true,
		wants: []want{{of: "App", name: "slow-0", reason: "SourceNotFound"}}, push: apps(number(100, 500), func(n int) string {
			return fmt.Sprintf("  {type: Git, retryInterval: 1s, git: {url: 'http://$silent/slow/%d'}}\n", n)
		})},
	{name: "refs of a Git server that never end", key: "refs", push: source("  {type: Git, git: {url: 'http://$silent/refs/a'}}\n"),
		wants: appReports("InvalidSource", "limit")},
	{name: "a pack that never ends", key: "pack", alone: true, push: source("  {type: Git, git: {url: 'http://$silent/pack/a'}}\n"),
		wants: appReports("InvalidSource", "")},
	{name: "a Git server that redirects to itself", key: "loop", push: source("  {type: Git, git: {url: 'http://$host/loop/a'}}\n"),
		wants: appReports("", "redirect")},
	{name: "many apps on a host that never answers", key: "hangs", alone: true, wants: []want{{of: "App", name: "hangs-0", message: "answer"}},
		push: apps(number(30, 100), func(n int) string {
			return fmt.Sprintf("  {type: Git, git: {url: 'http://$silent/hangs/%d'}}\n", n)
		})},
	{name: "an index of charts of 30 MiB of empty lists", key: "indexlists",
		push: source("  {type: Helm, helm: {repository: 'http://$host/lists', chart: web}}\n"), wants: appReports("", "index")},
	{name: "an index of ten billion words by aliases", key: "indexaliases",
		push: source("  {type: Helm, helm: {repository: 'http://$host/aliases', chart: web}}\n"), wants: appReports("", "index")},
	{name: "an index of 400,000 versions", key: "versions",
		push: source("  {type: Helm, helm: {repository: 'http://$host/versions', chart: web, version: '>=2'}}\n"), wants: appReports("", "")},
	{name: "an index that never ends", key: "noend", push: source("  {type: Helm, helm: {repository: 'http://$silent/endless', chart: web}}\n"),
		wants: appReports("", "index")},
	{name: "many indexes that arrive very slowly", key: "drips", alone: true, wants: []want{{of: "App", name: "drips-0", reason: "Progressing"}},
		push: apps(number(20, 50), func(n int) string {
			return fmt.Sprintf("  {type: Helm, helm: {repository: 'http://$silent/drips', chart: web, version: 1.0.%d}}\n", n)
		})},
	{name: "a chart of 400 MiB in 400 KB", key: "bombchart",
		push: source("  {type: Helm, helm: {repository: 'http://$host/bomb', chart: web, version: 1.0.0}}\n"), wants: appReports("", "MiB")},
	{name: "an artifact of 400 MiB in 400 KB", key: "bomb", push: source("  {type: Git, git: {oci: {url: 'oci://$host/bomb', insecure: true}}}\n"),
		wants: appReports("InvalidSource", "MiB")},
	{name: "an artifact of 60,000 files", key: "crumbs", push: source("  {type: Git, git: {oci: {url: 'oci://$host/crumbs', insecure: true}}}\n"),
		wants: appReports("InvalidSource", "50000")},
	{name: "an image of a million tags", key: "tags", push: source("  {type: Image, image: {reference: $host/tags, policy: {alphabetical: Ascending}}}\n"),
		wants: appReports("", "tags")},
	{name: "an image whose list of tags never ends", key: "pages",
		push: source("  {type: Image, image: {reference: $host/pages, policy: {alphabetical: Ascending}}}\n"), wants: appReports("", "pages")},
	{name: "a slow pattern over 40,000 tags", key: "pattern",
		push:  source("  {type: Image, image: {reference: $host/pattern, policy: {alphabetical: Ascending, filterTags: {pattern: '^(a|aa|aaa)*(a|b){1,9}c$'}}}}\n"),
		wants: appReports("", "")},
	{name: "an expression of ten to the power of eight", key: "power", push: judged(nestedIn(8, "1") + ".size() == 0"),
		wants: appReports("DependencyNotReady", "costs more than the limit")},
	{name: "an expression of 900 brackets", key: "parens", push: judged(strings.Repeat("(", 900) + "1" + strings.Repeat(")", 900) + " == 1"),
		wants: []want{{of: "Repository", message: "parens"}}},
	{name: "an expression of 2,000 negations", key: "negations", push: judged(strings.Repeat("!", 2000) + "true"), wants: appReports("", "")},
	{name: "32 expressions for each of many apps", key: "judges", wants: []want{{of: "App", name: "judges-0"}},
		push: apps(number(30, 100), func(n int) string {
			var all strings.Builder
			for k := range 32 {
				fmt.Fprintf(&all, "  - {apiVersion: v1, kind: ConfigMap, current: \"%s.size() == %d\"}\n", nestedIn(4, "1"), k)
			}
			return fmt.Sprintf("  type: Raw\n  healthCheckExprs:\n%s  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}]}\n", all.String(), n)
		})},
}}
