package values

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// These bound a target path, so that a short path cannot make large values. Helm has the same bounds for --set.
const (
	maxPathSteps = 30
	maxPathIndex = 65536
)

// step is one part of a target path: the key of a mapping or the index of a list.
type step struct {
	key   string
	index int // -1 for a key
}

// setPath sets a value at a path such as "ingress.hosts[0].name", and creates the mappings and lists on the way. A backslash escapes the
// next character, as in "annotations.example\.com/team". A value of another type on the way is an error, unless it is null. Lists are
// extended with null.
func setPath(values map[string]any, path string, value any) error {
	steps, err := parsePath(path)
	if err != nil {
		return fmt.Errorf("targetPath %q: %w", path, err)
	}
	if _, err := setAt(values, steps, value); err != nil {
		return fmt.Errorf("targetPath %q: %w", path, err)
	}
	return nil
}

// setAt returns node with the value at the end of steps.
func setAt(node any, steps []step, value any) (any, error) {
	if len(steps) == 0 {
		return value, nil
	}
	first := steps[0]
	if first.index < 0 {
		mapping, ok := node.(map[string]any)
		if !ok && node != nil {
			return nil, fmt.Errorf("%q is wanted in something that is not a mapping", first.key)
		}
		if mapping == nil {
			mapping = map[string]any{}
		}
		inner, err := setAt(mapping[first.key], steps[1:], value)
		mapping[first.key] = inner
		return mapping, err
	}
	list, ok := node.([]any)
	if !ok && node != nil {
		return nil, fmt.Errorf("[%d] is wanted in something that is not a list", first.index)
	}
	for len(list) <= first.index {
		list = append(list, nil)
	}
	inner, err := setAt(list[first.index], steps[1:], value)
	list[first.index] = inner
	return list, err
}

func parsePath(path string) ([]step, error) {
	var steps []step
	for rest := path; ; {
		key, after, err := cutKey(rest)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{key, -1})
		indexes, after, err := cutIndexes(after)
		if err != nil {
			return nil, err
		}
		steps = append(steps, indexes...)
		if len(steps) > maxPathSteps {
			return nil, fmt.Errorf("has more than %d parts", maxPathSteps)
		}
		if after == "" {
			return steps, nil
		}
		if after[0] != '.' {
			return nil, fmt.Errorf("a dot must follow ], not %q", after)
		}
		rest = after[1:]
	}
}

// cutKey takes a key from the start of a path.
func cutKey(path string) (key, rest string, err error) {
	var text strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '.', '[':
			return text.String(), path[i:], named(text.String())
		case ']':
			return "", "", errors.New("] without [")
		case '\\':
			if i++; i == len(path) {
				return "", "", errors.New("ends with a backslash")
			}
			text.WriteByte(path[i])
		default:
			text.WriteByte(c)
		}
	}
	return text.String(), "", named(text.String())
}

func named(key string) error {
	if key == "" {
		return errors.New("has an empty key")
	}
	return nil
}

// cutIndexes takes any number of [i] from the start of a path.
func cutIndexes(path string) (indexes []step, rest string, err error) {
	for strings.HasPrefix(path, "[") {
		digits, after, ok := strings.Cut(path[1:], "]")
		if !ok {
			return nil, "", errors.New("[ without ]")
		}
		index, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || index > maxPathIndex {
			return nil, "", fmt.Errorf("[%s] must hold a number from 0 to %d", digits, maxPathIndex)
		}
		indexes, path = append(indexes, step{"", int(index)}), after
	}
	return indexes, path, nil
}

// scalar converts a text to the type that Helm's --set gives it: true, false and null are themselves, a whole number without leading zeros
// is a number, and any other text stays as it is, including a line break at its end. A text in single or double quotes always stays a text,
// without the quotes.
func scalar(text string) any {
	if n := len(text); n >= 2 && text[0] == text[n-1] && (text[0] == '"' || text[0] == '\'') {
		return text[1 : n-1]
	}
	switch text {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	case "0":
		return int64(0)
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && text[0] != '0' && !strings.HasPrefix(text, "-0") && text[0] != '+' {
		return number
	}
	return text
}
