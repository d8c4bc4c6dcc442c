package controllers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// onNewestOnly are tests that use policies and say nothing about older API servers.
var onNewestOnly = map[string]string{"TestAdmissionTakesLittleTime": "make bench-admission runs it"}

// TestTestsOfPoliciesRunOnOlderKubernetes: the names of all tests that wait for the refusal of a policy, or put a tenant under policies,
// match GUARD_TESTS of the Makefile, with which make versions chooses tests.
func TestTestsOfPoliciesRunOnOlderKubernetes(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^GUARD_TESTS := (.+)$`).FindStringSubmatch(string(makefile))
	if names == nil {
		t.Fatal("the Makefile has no GUARD_TESTS")
	}
	chosen := regexp.MustCompile(names[1])
	for test := range usersOf(t, "denied", "under") {
		if strings.HasPrefix(test, "Test") && !chosen.MatchString(test) && onNewestOnly[test] == "" {
			t.Errorf("make versions does not run %s: add a part of its name to GUARD_TESTS", test)
		}
	}
}

// usersOf returns the functions in the tests of this package that call one of these, also by others.
func usersOf(t *testing.T, names ...string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	callers := map[string][]string{} // By the name of the called function.
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
				ast.Inspect(f.Body, func(node ast.Node) bool {
					if name := calledBy(node); name != "" {
						callers[name] = append(callers[name], f.Name.Name)
					}
					return true
				})
			}
		}
	}
	users := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		for _, caller := range callers[name] {
			if !users[caller] {
				users[caller] = true
				names = append(names, caller)
			}
		}
	}
	return users
}

// calledBy returns the name of the function or method that a node calls; "" for none.
func calledBy(node ast.Node) string {
	call, is := node.(*ast.CallExpr)
	if !is {
		return ""
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
