package check

import (
	"slices"
	"strings"
)

// fault is a field that is wrong by itself.
type fault struct {
	field string
	// unknown: the schema has no such field. meant is the path of the known field with a similar name; "" if no name is similar.
	unknown bool
	meant   string
}

// explained reports whether the field, a field around it or a field inside it has a fault. A rule about the field then adds nothing.
func (d *Result) explained(path string) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool { return within(f.field, path) || within(path, f.field) })
}

// misspelt reports whether the field is missing because its name was misspelt: an unknown field has a name similar to it, or an unknown
// field beside it has a name similar to none.
func (d *Result) misspelt(path string) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool {
		return f.unknown && (f.meant == path || f.meant == "" && parent(f.field) == parent(path))
	})
}

func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// within reports whether path is the field named around, or a field inside that one.
func within(path, around string) bool {
	rest, ok := strings.CutPrefix(path, around)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
