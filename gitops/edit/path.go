package edit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Path names a field from the root of a file. Each step is a key (string) or an index of a list (int).
type Path []any

// ParsePath reads a path such as spec.ports[0].name. A key with dots stands in brackets: spec.quota[requests.cpu].
func ParsePath(text string) (Path, error) {
	var p Path
	for rest := text; rest != ""; {
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			name, after, closed := strings.Cut(inner, "]")
			if !closed || name == "" {
				return nil, fmt.Errorf("%q is not a field: a bracket holds an index or a key, and is closed", text)
			}
			if i, err := strconv.Atoi(name); err == nil && i >= 0 {
				p = append(p, i)
			} else {
				p = append(p, name)
			}
			rest = after
			continue
		}
		if len(p) > 0 {
			if rest[0] != '.' {
				return nil, fmt.Errorf("%q is not a field: a dot must follow each bracket", text)
			}
			rest = rest[1:]
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("%q is not a field: a key is empty", text)
		}
		p, rest = append(p, rest[:end]), rest[end:]
	}
	if len(p) == 0 {
		return nil, errors.New("the field is empty")
	}
	return p, nil
}

// String returns the path as ParsePath reads it.
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		key, isKey := step.(string)
		switch {
		case !isKey || strings.ContainsAny(key, ".["):
			fmt.Fprintf(&b, "[%v]", step)
		case i == 0:
			b.WriteString(key)
		default:
			b.WriteString("." + key)
		}
	}
	return b.String()
}

// set returns the value with the field set, and does not change the value given.
func (p Path) set(in, value any) (any, error) {
	if len(p) == 0 {
		return value, nil
	}
	switch step := p[0].(type) {
	case string:
		object, ok := in.(map[string]any)
		if !ok && in != nil {
			return nil, fmt.Errorf("%q is a field of an object, and what is there is none", step)
		}
		field, err := p[1:].set(object[step], value)
		if err != nil {
			return nil, err
		}
		if object = maps.Clone(object); object == nil {
			object = map[string]any{}
		}
		object[step] = field
		return object, nil
	case int:
		list, ok := in.([]any)
		if !ok && in != nil {
			return nil, fmt.Errorf("[%d] is an item of a list, and what is there is none", step)
		}
		if step < 0 || step > len(list) {
			return nil, fmt.Errorf("[%d]: the list has %d items: %w", step, len(list), ErrNoField)
		}
		list = slices.Clone(list)
		if step == len(list) {
			list = append(list, nil)
		}
		item, err := p[1:].set(list[step], value)
		if err != nil {
			return nil, err
		}
		list[step] = item
		return list, nil
	}
	return nil, fmt.Errorf("a step of a path is a key or an index, not %v", p[0])
}

// remove returns the value without the field, and does not change the value given.
func (p Path) remove(in any) (any, error) {
	if len(p) == 0 {
		return nil, errors.New("the path is empty")
	}
	switch step := p[0].(type) {
	case string:
		object, _ := in.(map[string]any)
		field, ok := object[step]
		if !ok {
			return nil, ErrNoField
		}
		object = maps.Clone(object)
		if len(p) == 1 {
			delete(object, step)
			return object, nil
		}
		field, err := p[1:].remove(field)
		object[step] = field
		return object, err
	case int:
		list, _ := in.([]any)
		if step < 0 || step >= len(list) {
			return nil, ErrNoField
		}
		list = slices.Clone(list)
		if len(p) == 1 {
			return slices.Delete(list, step, step+1), nil
		}
		item, err := p[1:].remove(list[step])
		list[step] = item
		return list, err
	}
	return nil, fmt.Errorf("a step of a path is a key or an index, not %v", p[0])
}

// get returns a field of a value, and whether it is there.
func (p Path) get(in any) (any, bool) {
	for _, step := range p {
		switch step := step.(type) {
		case string:
			object, _ := in.(map[string]any)
			field, ok := object[step]
			if !ok {
				return nil, false
			}
			in = field
		case int:
			list, _ := in.([]any)
			if step < 0 || step >= len(list) {
				return nil, false
			}
			in = list[step]
		}
	}
	return in, true
}
