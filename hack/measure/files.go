package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// printFiles lists for each package how many of its files call functions of other files, and which of them form circles. Control
// flows back up in a circle. With verbose it lists the called functions for each pair of files.
func printFiles(verbose bool, patterns []string) error {
	packages, err := readPackages(patterns)
	if err != nil {
		return err
	}
	for _, p := range packages {
		circles := p.calls.circles()
		fmt.Printf("%s: %d files, %d arrows between them, %d in circles\n", p.path, len(p.files), p.calls.arrows(), len(circles))
		if verbose {
			for _, c := range circles {
				fmt.Println("  " + c.String())
			}
		}
	}
	return nil
}

// checked is a package with the data that the rules need.
type checked struct {
	path  string
	files []string
	lines int
	calls calls
	// wide maps structs to their number of fields, tests the files of tests to their number of lines.
	wide, tests map[string]int
	// deep are the functions whose blocks are nested too deeply, each with its depth.
	deep map[string]int
}

func readPackages(patterns []string) ([]checked, error) {
	packages, exports, err := listed(patterns)
	if err != nil {
		return nil, err
	}
	all := make([]checked, 0, len(packages))
	for _, p := range packages {
		c, err := readPackage(p, exports)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func readPackage(p listedPackage, exports map[string]string) (checked, error) {
	files := token.NewFileSet()
	c := checked{path: p.ImportPath, calls: calls{}, wide: map[string]int{}, tests: map[string]int{}, deep: map[string]int{}}
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		src, err := os.ReadFile(path)
		if err != nil {
			return c, err
		}
		f, err := parser.ParseFile(files, path, src, parser.SkipObjectResolution)
		if err != nil {
			return c, err
		}
		parsed = append(parsed, f)
		if !generated.Match(src) && !strings.HasPrefix(name, "zz_") {
			c.files, c.lines = append(c.files, name), c.lines+bytes.Count(src, []byte("\n"))
			addStructs(c.wide, f)
			addDeep(c.deep, f)
		}
	}
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		src, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return c, err
		}
		c.tests[name] = bytes.Count(src, []byte("\n"))
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	pkg, err := config.Check(p.ImportPath, files, parsed, info)
	if err != nil {
		return c, err
	}
	for use, of := range info.Uses {
		if f, ok := of.(*types.Func); ok && of.Pkg() == pkg && !ofInterface(f) {
			from, to := files.Position(use.Pos()).Filename, files.Position(f.Origin().Pos()).Filename
			c.calls.add(filepath.Base(from), filepath.Base(to), use.Name)
		}
	}
	return c, nil
}

// ofInterface reports whether a function is an interface method, whose implementation is unknown.
func ofInterface(f *types.Func) bool {
	receiver := f.Signature().Recv()
	return receiver != nil && types.IsInterface(receiver.Type())
}

// addStructs adds the number of fields of each struct in a file.
func addStructs(to map[string]int, f *ast.File) {
	for _, d := range f.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if s, ok := t.Type.(*ast.StructType); ok {
				to[t.Name.Name] = fieldsOf(s)
			}
		}
	}
}

// addDeep adds the functions of a file whose blocks are nested deeper than maxNesting.
func addDeep(to map[string]int, f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && nesting(fn.Body) > maxNesting {
			to[fn.Name.Name] = nesting(fn.Body)
		}
	}
}

func fieldsOf(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
}

// listedPackage is a package in the output of go list.
type listedPackage struct {
	ImportPath, Dir, Export string
	DepOnly                 bool
	GoFiles                 []string
	TestGoFiles             []string
	XTestGoFiles            []string
}

// listed returns the packages that match the patterns, and the export data files of their imports.
func listed(patterns []string) (packages []listedPackage, exports map[string]string, err error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,DepOnly,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("listing the packages: %w", err)
	}
	exports = map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, exports, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("listing the packages: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
}
