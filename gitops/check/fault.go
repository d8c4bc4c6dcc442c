package check

import (
	"slices"
	"strings"
)

// fault is a field that is wrong by itself.
type fault struct {
	field string
	// unknown: there is no such field. meant is the path its author may have meant, if one is near enough.
	unknown bool
	meant   string
}

// explained reports whether a fault at the field, around it or inside it makes any rule about the field moot.
func (d *Result) explained(path string) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool { return within(f.field, path) || within(path, f.field) })
}

// misspelt reports whether the field is missing because it was written with another name: one that is meant for it, or
// one beside it that may mean anything.
func (d *Result) misspelt(path string) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool {
		return f.unknown && (f.meant == path || f.meant == "" && parent(f.field) == parent(path))
	})
}

func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// within reports whether path is the field around or a field inside it.
func within(path, around string) bool {
	rest, ok := strings.CutPrefix(path, around)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
