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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// printFiles lists, for each package, how often its files refer to each other, and which of them do so in a circle: there control runs
// back up. With verbose it says for each such pair of files what the one uses of the other.
func printFiles(verbose bool, patterns []string) error {
	packages, exports, err := listed(patterns)
	if err != nil {
		return err
	}
	for _, p := range packages {
		r, err := readReferences(p, exports)
		if err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		r.print(p.ImportPath, verbose)
	}
	return nil
}

// listedPackage is what the go command says of a package.
type listedPackage struct {
	ImportPath, Dir, Export string
	DepOnly                 bool
	GoFiles                 []string
}

// listed returns the packages of the patterns, and where the export data of each of their imports is.
func listed(patterns []string) (packages []listedPackage, exports map[string]string, err error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,DepOnly,GoFiles"}, patterns...)...)
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

// references are what each file of a package uses of each other: the names, and how often.
type references map[string]map[string]map[string]int

func readReferences(p listedPackage, exports map[string]string) (references, error) {
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	pkg, err := config.Check(p.ImportPath, files, parsed, info)
	if err != nil {
		return nil, err
	}
	r := references{}
	for _, f := range p.GoFiles {
		r[f] = map[string]map[string]int{}
	}
	for use, of := range info.Uses {
		if of.Pkg() != pkg {
			continue
		}
		from, to := filepath.Base(files.Position(use.Pos()).Filename), filepath.Base(files.Position(of.Pos()).Filename)
		if from == to {
			continue
		}
		if r[from][to] == nil {
			r[from][to] = map[string]int{}
		}
		r[from][to][use.Name]++
	}
	return r, nil
}

// count is how often one file refers to another.
func (r references) count(from, to string) (n int) {
	for _, uses := range r[from][to] {
		n += uses
	}
	return n
}

// reaches are the files that a file leads to.
func (r references) reaches(from string, seen map[string]bool) map[string]bool {
	for to := range r[from] {
		if !seen[to] {
			seen[to] = true
			r.reaches(to, seen)
		}
	}
	return seen
}

func (r references) print(name string, verbose bool) {
	all, circles := 0, 0
	var lines []string
	for _, from := range slices.Sorted(maps.Keys(r)) {
		for _, to := range slices.Sorted(maps.Keys(r[from])) {
			n := r.count(from, to)
			all += n
			if r.reaches(to, map[string]bool{})[from] {
				circles += n
				lines = append(lines, fmt.Sprintf("  %s -> %s %s", from, to, strings.Join(slices.Sorted(maps.Keys(r[from][to])), " ")))
			}
		}
	}
	fmt.Printf("%s: %d files, %d references between them, %d in circles\n", name, len(r), all, circles)
	if verbose {
		fmt.Println(strings.Join(lines, "\n"))
	}
}
