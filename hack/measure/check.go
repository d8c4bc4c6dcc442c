package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The rules of CONTRIBUTING.md about the structure of packages.
const (
	maxFiles  = 20
	maxLines  = 2500
	maxFields = 15
	// maxNesting is the greatest depth of blocks in a function. A function literal is a block too; the linter counts within each alone.
	maxNesting = 3
	// maxTestLines is for one file of tests. Other files are held by the linter.
	maxTestLines = 600
	// maxLevels is the maximum length of a chain of imports. The API, which is plain data, and imports of tests do not count.
	maxLevels = 6
	// minLeaves is the minimum percentage of packages that import no other package except the API.
	minLeaves = 40
)

// check checks the packages of a module in the working directory against the rules and returns the violations that allowed does not
// list.
func check(module, allowed string, patterns []string) ([]string, error) {
	allow, err := readAllowed(allowed)
	if err != nil {
		return nil, err
	}
	packages, err := readPackages(patterns)
	if err != nil {
		return nil, err
	}
	var broken []string
	report := func(format string, args ...any) {
		if what := fmt.Sprintf(format, args...); !allow.take(what) {
			broken = append(broken, what)
		}
	}
	for _, p := range packages {
		checkPackage(p, strings.TrimPrefix(p.path, module+"/"), report)
	}
	if err := checkImports(module, report); err != nil {
		return nil, err
	}
	for what := range allow {
		broken = append(broken, allowed+": nothing breaks this rule any more: "+what)
	}
	slices.Sort(broken)
	return broken, nil
}

// checkPackage checks the sizes and calls of one package.
func checkPackage(p checked, name string, report func(format string, args ...any)) {
	if len(p.files) > maxFiles {
		report("%s: %d files, at most %d", name, len(p.files), maxFiles)
	}
	api := strings.HasPrefix(name, "api/") // A version of the API is one package, as generators and clients expect; its kinds have many fields.
	if p.lines > maxLines && !api {
		report("%s: %d lines, at most %d", name, p.lines, maxLines)
	}
	for _, c := range p.calls.circles() {
		report("%s: control runs in a circle: %s -> %s", name, c.from, c.to)
	}
	for _, s := range slices.Sorted(maps.Keys(p.wide)) {
		if p.wide[s] > maxFields && !api {
			report("%s: %s has %d fields, at most %d", name, s, p.wide[s], maxFields)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(p.deep)) {
		report("%s: %s nests blocks %d deep, at most %d", name, f, p.deep[f], maxNesting)
	}
	for _, f := range slices.Sorted(maps.Keys(p.tests)) {
		if p.tests[f] > maxTestLines {
			report("%s: %s has %d lines, at most %d", name, f, p.tests[f], maxTestLines)
		}
	}
}

// checkImports checks the chains of imports.
func checkImports(module string, report func(format string, args ...any)) error {
	g, err := readGraph(module, ".", "")
	if err != nil {
		return err
	}
	g = g.counted()
	level := g.levels()
	for p, l := range level {
		if l > maxLevels {
			report("%s: %d levels of imports below it, at most %d", p, l, maxLevels)
		}
	}
	leaves := g.leaves()
	if percent := leaves * 100 / max(len(g), 1); percent < minLeaves {
		report("%d of %d packages import no other, at least %d %%", leaves, len(g), minLeaves)
	}
	return nil
}

// allowance is the set of allowed violations that were not found yet.
type allowance map[string]bool

func (a allowance) take(what string) bool {
	ok := a[what]
	delete(a, what)
	return ok
}

// readAllowed reads a file of allowed violations: each line is a violation as check reports it, then " # " and the reason.
func readAllowed(path string) (allowance, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := allowance{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, reason, ok := strings.Cut(line, " # ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s: no reason: %s", path, line)
		}
		all[strings.TrimSpace(what)] = true
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return all, nil
}
