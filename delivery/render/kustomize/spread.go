package kustomize

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// maxSpread bounds the bytes that a build may generate by copying texts to many places: patches, replacements and variables. An upper bound
// is calculated from the input before kustomize runs. Without it, a few lines could fill any memory, each doubling the result of the line
// before.
const maxSpread = 64 << 20

// spread calculates how much a build may generate from the files read so far.
type spread struct {
	kinds map[string]*kindSize
	// everywhere is how many bytes kustomizations and patch files hold that may be put into every object.
	everywhere   int
	replacements []types.Replacement
	// uses counts the uses of variables; vars: a kustomization defines some.
	vars bool
	uses int
	// all is for all kinds together.
	all    kindSize
	copies int
}

// kindSize is the number of objects of a kind, the size of the largest, and the largest number of entries in lists and mappings of one
// object.
type kindSize struct{ count, largest, entries int }

func (k *kindSize) add(count int, text []byte, aliases int) {
	k.count += count
	k.largest = max(k.largest, len(text)+aliases)
	k.entries = max(k.entries, yamlcheck.MaxEntries(text))
}

// These patterns are counted wherever they occur in a file, also in comments: the result is an upper bound.
var (
	copies   = regexp.MustCompile(`\bop["']?\s*:\s*["']?copy\b`)
	variable = []byte("$(")
)

// file counts a file that is no kustomization, with the objects that kustomize finds in it.
func (s *spread) file(data []byte, objects []*resource.Resource) {
	s.read(data)
	aliases := yamlcheck.AliasBytes(data)
	if len(objects) == 0 { // It may be the data of a generator.
		s.add("ConfigMap", 0, data, aliases)
		s.add("Secret", 0, data, aliases)
	}
	texts := yamlcheck.Split(data)
	for i, o := range objects {
		text := data
		if len(texts) == len(objects) {
			text = texts[i].Data
		}
		s.add(o.GetKind(), 1, text, aliases)
	}
}

// kustomization counts a kustomization, with the objects that it generates and the total size of its patch files.
func (s *spread) kustomization(data []byte, k *types.Kustomization, patchBytes int) {
	s.read(data)
	s.everywhere += len(data) + patchBytes
	s.vars = s.vars || len(k.Vars) > 0
	if generated := len(k.ConfigMapGenerator); generated > 0 {
		s.add("ConfigMap", generated, data, 0)
	}
	if generated := len(k.SecretGenerator); generated > 0 {
		s.add("Secret", generated, data, 0)
	}
}

func (s *spread) replace(with []types.Replacement) { s.replacements = append(s.replacements, with...) }

func (s *spread) read(data []byte) {
	s.uses += usesIn(data)
	s.copies += copiesIn(data, deepest)
}

// usesIn returns an upper bound of the uses of variables: escapes may hide a use, and aliases repeat parts of the text.
func usesIn(data []byte) int {
	uses := bytes.Count(data, variable)
	for _, escape := range []string{`\x`, `\u`, `\U`} {
		uses += bytes.Count(data, []byte(escape))
	}
	if uses > 0 {
		uses += yamlcheck.AliasBytes(data) / len("$(A)")
	}
	return uses
}

// copiesIn counts the copy operations of patches in a text: as plain text, and as a parser finds them in it and in texts within it, where
// escapes, tags and other styles of YAML hide them.
func copiesIn(data []byte, depth int) int {
	seen := len(copies.FindAllIndex(data, -1))
	mayHide := bytes.Contains(data, []byte("copy")) || bytes.IndexByte(data, '\\') >= 0
	if depth == 0 || !mayHide || yamlcheck.Aliases(data) != nil {
		return seen
	}
	found := 0
	for document, err := range yamlcheck.Documents(data) {
		if err != nil {
			break
		}
		found += copiesAt(document, depth)
	}
	return max(seen, found)
}

func copiesAt(node *kyaml.Node, depth int) int {
	switch node.Kind {
	case kyaml.AliasNode:
		return copiesAt(node.Alias, depth)
	case kyaml.ScalarNode:
		if len(node.Value) < len("op: copy") {
			return 0
		}
		return copiesIn([]byte(node.Value), depth-1)
	}
	count := 0
	for i, inner := range node.Content {
		count += copiesAt(inner, depth)
		if node.Kind == kyaml.MappingNode && i%2 == 1 && textOf(node.Content[i-1]) == "op" && textOf(inner) == "copy" {
			count++
		}
	}
	return count
}

func textOf(node *kyaml.Node) string {
	if node.Kind == kyaml.AliasNode {
		node = node.Alias
	}
	return node.Value
}

func (s *spread) add(kind string, count int, text []byte, aliases int) {
	if s.kinds == nil {
		s.kinds = map[string]*kindSize{}
	}
	if s.kinds[kind] == nil {
		s.kinds[kind] = &kindSize{}
	}
	s.kinds[kind].add(count, text, aliases)
	s.all.add(count, text, aliases)
}

// of returns the numbers of a kind, or of all kinds if the selector is no plain name.
func (s *spread) of(kind string) kindSize {
	switch {
	case !isName(kind):
		return s.all
	case s.kinds[kind] == nil:
		return kindSize{}
	}
	return *s.kinds[kind]
}

// check returns an error about the first exceeded bound.
func (s *spread) check() error {
	for _, made := range []struct {
		by    string
		bytes float64
	}{
		{"patches, labels and annotations", float64(s.everywhere) * float64(s.all.count)},
		{"operations copy of patches", (math.Exp2(float64(s.copies)) - 1) * float64(s.all.count) * float64(s.all.largest)},
		{"vars", float64(boolToInt(s.vars)*s.uses) * float64(s.all.largest)},
		{"replacements", s.replaced()},
	} {
		if made.bytes > maxSpread {
			return fmt.Errorf("%s may make more than %d bytes of what the build reads: %w", made.by, maxSpread, render.ErrTooLarge)
		}
	}
	return nil
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// replaced returns an upper bound of what replacements may generate: each target gets the largest possible source. If a source may be the
// target of another replacement, it may have grown by that one first.
func (s *spread) replaced() float64 {
	total, places, chained := 0.0, 0.0, 0
	for _, r := range s.replacements {
		size, into := s.sizeOf(r), 0.0
		for _, target := range r.Targets {
			into += s.places(target)
		}
		total += into * size
		places += into
		if r.Source != nil && s.mayBeTarget(r.Source) {
			chained++
		}
	}
	return total * math.Pow(1+places, float64(chained))
}

func (s *spread) sizeOf(r types.Replacement) float64 {
	switch {
	case r.SourceValue != nil:
		return float64(len(*r.SourceValue))
	case r.Source == nil:
		return 0
	}
	return float64(s.of(r.Source.Kind).largest)
}

// places returns an upper bound of the number of places that a target selects.
func (s *spread) places(target *types.TargetSelector) float64 {
	if target == nil {
		return 0
	}
	selected := s.all
	if target.Select != nil {
		selected = s.of(target.Select.Kind)
		if isName(target.Select.Name) {
			selected.count = min(selected.count, 1)
		}
	}
	paths := 0.0
	for _, path := range target.FieldPaths {
		paths += math.Pow(float64(max(selected.entries, 1)), float64(strings.Count(path, "*")))
	}
	return float64(selected.count) * max(paths, 1)
}

// mayBeTarget reports whether any replacement may change the source.
func (s *spread) mayBeTarget(source *types.SourceSelector) bool {
	for _, r := range s.replacements {
		for _, target := range r.Targets {
			if target == nil || target.Select == nil || meet(source.Kind, target.Select.Kind) && meet(source.Name, target.Select.Name) {
				return true
			}
		}
	}
	return false
}

// meet reports whether two selectors may select the same object. Kustomize may add prefixes and suffixes to either name.
func meet(a, b string) bool {
	return !isName(a) || !isName(b) || strings.Contains(a, b) || strings.Contains(b, a)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// isName reports whether a selector is a plain name. Otherwise it may select several: it is empty or a regular expression.
func isName(selector string) bool { return plainName.MatchString(selector) }
