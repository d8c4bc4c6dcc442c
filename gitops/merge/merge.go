// Package merge compares sorted lists. Pure.
package merge

// Differ merges two lists that are sorted by name, and calls f with each pair of items that differ. b or a is the zero value if its list does not have
// the name.
func Differ[N comparable](before, after []N, name func(N) string, f func(b, a N)) {
	var none N
	for len(before)+len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && name(before[0]) < name(after[0]):
			f(before[0], none)
			before = before[1:]
		case len(before) == 0 || name(after[0]) < name(before[0]):
			f(none, after[0])
			after = after[1:]
		default:
			if before[0] != after[0] {
				f(before[0], after[0])
			}
			before, after = before[1:], after[1:]
		}
	}
}
