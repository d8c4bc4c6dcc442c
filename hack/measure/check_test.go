package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inModule writes the files of a module named "example" and makes its root the working directory.
func inModule(t *testing.T, files map[string]string) {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module example\n\ngo 1.24\n"
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
}

func TestCheckReportsEachBrokenRule(t *testing.T) {
	many := map[string]string{}
	for n := range maxFiles + 1 {
		many[fmt.Sprintf("a/f%d.go", n)] = "package a\n"
	}
	chain := map[string]string{"p0/p.go": "package p0\n"}
	for n := range maxLevels + 1 {
		chain[fmt.Sprintf("p%d/p.go", n+1)] = fmt.Sprintf("package p%d\n\nimport _ \"example/p%d\"\n", n+1, n)
	}
	for n := range maxLevels + 1 {
		chain[fmt.Sprintf("leaf%d/p.go", n)] = fmt.Sprintf("package leaf%d\n", n)
	}
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing is broken": {map[string]string{"a/a.go": "package a\n\nfunc A() { b() }\n", "a/b.go": "package a\n\nfunc b() {}\n"}, nil},
		"too many files":    {many, []string{"a: 21 files, at most 20"}},
		"too many lines":    {map[string]string{"a/a.go": "package a\n" + strings.Repeat("\n", maxLines)}, []string{"a: 2501 lines, at most 2500"}},
		"too many fields": {
			map[string]string{"a/a.go": "package a\n\ntype T struct { A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P int }\n"},
			[]string{"a: T has 16 fields, at most 15"},
		},
		"the API may have as many fields as it needs": {
			map[string]string{"api/v1/a.go": "package v1\n\ntype T struct { A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P int }\n" + strings.Repeat("\n", maxLines), "a/a.go": "package a\n"}, nil,
		},
		"blocks are nested too deeply, with a function literal between them": {
			map[string]string{"a/a.go": "package a\n\nfunc A(b []bool) {\n\tfor _, c := range b {\n\t\tif c {\n\t\t\tfunc() {\n\t\t\t\tfor range b {\n\t\t\t\t}\n\t\t\t}()\n\t\t}\n\t}\n}\n"},
			[]string{"a: A nests blocks 4 deep, at most 3"},
		},
		"a file of tests is too long": {
			map[string]string{"a/a.go": "package a\n", "a/a_test.go": "package a\n" + strings.Repeat("\n", maxTestLines), "a/b_test.go": "package a_test\n" + strings.Repeat("\n", maxTestLines-1)},
			[]string{"a: a_test.go has 601 lines, at most 600"},
		},
		"two files call each other": {
			map[string]string{"a/a.go": "package a\n\nfunc A() { b() }\n", "a/b.go": "package a\n\nfunc b() { A() }\n"},
			[]string{"a: control runs in a circle: a.go -> b.go", "a: control runs in a circle: b.go -> a.go"},
		},
		"three files call each other in a circle, one through a method value": {
			map[string]string{
				"a/a.go": "package a\n\ntype T struct{}\n\nfunc (t T) A() { b(t) }\n", "a/b.go": "package a\n\nfunc b(t T) { c(t) }\n",
				"a/c.go": "package a\n\nfunc c(t T) func() { return t.A }\n",
			},
			[]string{"a: control runs in a circle: a.go -> b.go", "a: control runs in a circle: b.go -> c.go", "a: control runs in a circle: c.go -> a.go"},
		},
		"a chain of imports is too long": {chain, []string{"p7: 7 levels of imports below it, at most 6"}},
		"too few leaves": {
			map[string]string{"a/a.go": "package a\n", "b/b.go": "package b\n\nimport _ \"example/a\"\n", "c/c.go": "package c\n\nimport _ \"example/b\"\n"},
			[]string{"1 of 3 packages import no other, at least 40 %"},
		},
		"an exception that nothing needs": {
			map[string]string{"a/a.go": "package a\n", "allowed.txt": "a: 21 files, at most 20 # once\n"},
			[]string{"allowed.txt: nothing breaks this rule any more: a: 21 files, at most 20"},
		},
		"a violation with a reason": {
			map[string]string{
				"a/a.go": "package a\n" + strings.Repeat("\n", maxLines), "allowed.txt": "# the reasons\na: 2501 lines, at most 2500 # a table\n",
			}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.files["allowed.txt"] == "" {
				test.files["allowed.txt"] = "\n"
			}
			inModule(t, test.files)
			got, err := check("example", "allowed.txt", []string{"./..."})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnExceptionNeedsAReason(t *testing.T) {
	for name, line := range map[string]string{"no comment": "a: 21 files, at most 20", "an empty comment": "a: 21 files, at most 20 # "} {
		t.Run(name, func(t *testing.T) {
			inModule(t, map[string]string{"allowed.txt": line + "\n"})
			if _, err := check("example", "allowed.txt", nil); err == nil || !strings.Contains(err.Error(), "no reason: a: 21 files") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestNestingCountsBlocksInBlocks(t *testing.T) {
	tests := map[string]struct {
		body string
		want int
	}{
		"none":               {"_ = 1", 0},
		"one after another":  {"if true {}\n\tfor {}", 1},
		"else if is no step": {"if true {} else if false {} else { for {} }", 2},
		"a function literal": {"for { func() { if true {} }() }", 3},
		"a case":             {"switch { case true: for {} }", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inModule(t, map[string]string{"a.go": "package a\n\nfunc f() {\n\t" + test.body + "\n}\n"})
			s, err := newSizes([]string{"."})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.funcs) != 1 || s.funcs[0].depth != test.want {
				t.Errorf("the functions are %+v, want one of depth %d", s.funcs, test.want)
			}
		})
	}
}

// TestFilesThatCannotBeReadAreErrors: figures without them would be wrong.
func TestFilesThatCannotBeReadAreErrors(t *testing.T) {
	read := map[string]func() error{
		"sizes":   func() error { _, err := newSizes([]string{"."}); return err },
		"imports": func() error { _, err := readGraph("example", ".", ""); return err },
	}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"all can be read":          {map[string]string{"a/a.go": "package a\n"}, ""},
		"a file is not Go":         {map[string]string{"a/a.go": "package\n"}, "a/a.go:1:9"},
		"a file has no end":        {map[string]string{"a/a.go": "package a\n\nimport (\n"}, "a/a.go"},
		"one in testdata is no Go": {map[string]string{"a/a.go": "package a\n", "a/testdata/b.go": "package\n"}, ""},
	}
	for name, test := range tests {
		for of, read := range read {
			t.Run(name+", "+of, func(t *testing.T) {
				inModule(t, test.files)
				err := read()
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("the error is %v, want %q", err, test.want)
				}
			})
		}
	}
	for of, read := range map[string]func() error{
		"sizes":   func() error { _, err := newSizes([]string{"none"}); return err },
		"imports": func() error { _, err := readGraph("example", "none", ""); return err },
	} {
		t.Run("no such folder, "+of, func(t *testing.T) {
			inModule(t, map[string]string{})
			if err := read(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
