// Package substitute sets the variables of an App's spec in the objects that were built.
package substitute

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/objectset"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// An object with one of these as a label or annotation, with the value "disabled", is not changed. The first is Flux's.
var keepsText = []string{"kustomize.toolkit.fluxcd.io/substitute", v1alpha1.Group + "/substitute"}

// maxBytes is the largest total size of the objects with variables, after substitution.
const maxBytes = 32 << 20

// variableName matches a name in ${…}.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)

// Variables substitutes the variables of the spec in the objects; without variables, it does not change them. It works like Flux, on the
// text of each object. So a variable that is a whole value becomes a number or boolean if it looks like one; a value in its own quotes, as
// "\"80\"", stays a text.
//
//	${name}            the value; an error when it is not set, or nothing when substituteStrict is false
//	${name:=default}   the default when it is not set or empty; ${name:-default} is the same
//	$${name}           the text ${name}
//
// Any other use of ${ is an error. Line breaks within values are removed, so that a value cannot continue on another line. Errors name the
// object, the line in it as built, and the variable; all missing variables are reported at once, up to 20. A missing ConfigMap or Secret is
// a render.ErrMissing; other errors of lookup are returned as they are.
func Variables(all []*unstructured.Unstructured, with *v1alpha1.Build, lookup render.Lookup) ([]*unstructured.Unstructured, error) {
	if len(with.Substitute)+len(with.SubstituteFrom) == 0 {
		return all, nil
	}
	values, err := variables(with, lookup)
	if err != nil {
		return nil, err
	}
	s := substitution{values: values, strict: with.SubstituteStrict == nil || *with.SubstituteStrict, room: maxBytes}
	for _, o := range all {
		s.object(o)
	}
	return s.Result()
}

// variables collects the values by name. Keys that are no valid names, such as those of files, are skipped.
func variables(with *v1alpha1.Build, lookup render.Lookup) (map[string]string, error) {
	values := map[string]string{}
	for i, from := range with.SubstituteFrom {
		data, err := lookup(from.Kind, from.Name)
		if errors.Is(err, render.ErrMissing) {
			if from.Optional {
				continue
			}
			return nil, render.Missing(render.ErrMissing, "substituteFrom[%d]: %s %s %v", i, from.Kind, from.Name, err)
		}
		if err != nil {
			return nil, fmt.Errorf("substituteFrom[%d]: reading %s %s: %w", i, from.Kind, from.Name, err)
		}
		for name, value := range data {
			values[name] = string(value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(with.Substitute)) {
		if variableName.FindString(name) != name {
			return nil, fmt.Errorf("substitute: %q cannot be the name of a variable: letters, digits and _, no digit first", name)
		}
		values[name] = with.Substitute[name]
	}
	for name, value := range values {
		values[name] = strings.ReplaceAll(value, "\n", "")
	}
	return values, nil
}

// substitution replaces variables in objects.
type substitution struct {
	objectset.Set
	values map[string]string
	strict bool
	// room is the number of bytes by which the texts may still grow.
	room int
}

func (s *substitution) object(o *unstructured.Unstructured) {
	if !mentions(o.Object) || keepsItsText(o) {
		s.Keep(o)
		return
	}
	place := o.GetKind() + "/" + o.GetName()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		s.Refuse(place, err)
		return
	}
	sound := true
	e := expansion{values: s.values, strict: s.strict, room: min(s.room, render.MaxFileBytes), refuse: func(why error) {
		sound = false
		s.Refuse(place, why)
	}}
	changed := e.text(string(text), 0)
	if !sound {
		return
	}
	s.room -= len(changed)
	value, err := yamlcheck.Text{Line: 1, Data: []byte(changed)}.Decode()
	if err != nil {
		s.Refuse(place, fmt.Errorf("is not YAML any more with its variables set: %w", err))
		return
	}
	s.Add(place, value)
}

func keepsItsText(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(keepsText, func(key string) bool {
		return o.GetAnnotations()[key] == "disabled" || o.GetLabels()[key] == "disabled"
	})
}

// mentions reports whether a value, or a key below it, may hold a variable.
func mentions(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, "${")
	case []any:
		return slices.ContainsFunc(v, mentions)
	case map[string]any:
		for key, inner := range v {
			if strings.Contains(key, "${") || mentions(inner) {
				return true
			}
		}
	}
	return false
}

// maxNested is how many levels of variables in defaults are allowed.
const maxNested = 8

// expansion replaces variables in one text.
type expansion struct {
	values map[string]string
	strict bool
	room   int
	line   int
	refuse func(why error)
}

// text returns a text with its variables replaced; depth is above 0 within a default.
func (e *expansion) text(in string, depth int) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(in, "${")
		e.line += strings.Count(before, "\n")
		if !found {
			e.put(&out, before)
			return out.String()
		}
		if strings.HasSuffix(before, "$") {
			e.put(&out, before+"{")
			in = rest
			continue
		}
		e.put(&out, before)
		value, after, err := e.variable(rest, depth)
		if err != nil {
			e.refuse(fmt.Errorf("line %d: %w", e.line+1, err))
			return ""
		}
		e.put(&out, value)
		in = after
	}
}

func (e *expansion) put(out *strings.Builder, text string) {
	if e.room -= len(text); e.room >= 0 {
		out.WriteString(text)
	} else if e.room+len(text) >= 0 {
		e.refuse(fmt.Errorf("has more than %d bytes with its variables set: %w", render.MaxFileBytes, render.ErrTooLarge))
	}
}

// variable returns the value of the variable after "${", and the text after its "}".
func (e *expansion) variable(in string, depth int) (value, after string, err error) {
	name := variableName.FindString(in)
	rest := in[len(name):]
	value = e.values[name]
	if name != "" && strings.HasPrefix(rest, "}") {
		if _, set := e.values[name]; !set && e.strict {
			e.refuse(fmt.Errorf("line %d: the variable %s is not set, and has no default", e.line+1, name))
		}
		return value, rest[1:], nil
	}
	if name == "" || !strings.HasPrefix(rest, ":=") && !strings.HasPrefix(rest, ":-") {
		return "", "", fmt.Errorf("${%.20s: is none of ${name}, ${name:=default} and ${name:-default}; write $${ for the text ${", firstLine(in))
	}
	end := closing(rest)
	if end < 0 {
		return "", "", fmt.Errorf("${%s has no }", name)
	}
	if value != "" {
		e.line += strings.Count(rest[:end], "\n")
		return value, rest[end+1:], nil
	}
	if depth == maxNested {
		return "", "", fmt.Errorf("${%s: defaults hold each other more than %d deep: %w", name, maxNested, render.ErrTooLarge)
	}
	room := e.room
	value = e.text(rest[len(":="):end], depth+1)
	e.room = room
	return value, rest[end+1:], nil
}

// closing finds the } that ends a variable. It skips variables within its default.
func closing(in string) int {
	open := 0
	for i := 0; i < len(in); i++ {
		switch {
		case strings.HasPrefix(in[i:], "${"):
			open++
		case in[i] == '}' && open == 0:
			return i
		case in[i] == '}':
			open--
		}
	}
	return -1
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
