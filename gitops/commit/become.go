package commit

import (
	"maps"
	"reflect"
	"slices"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/edit"
)

// Become changes the object in a YAML file. Fields that are the same before and after stay as they are written, with their comments.
type Become struct {
	File string
	// Wanted returns what the object is to be, and does not change the one that the requester saw.
	Wanted func(seen map[string]any) map[string]any
}

// Merge returns Wanted for a merge patch of RFC 7396: null deletes a field, objects are merged, all else replaces what is there.
func Merge(patch map[string]any) func(map[string]any) map[string]any {
	return func(seen map[string]any) map[string]any { return merged(seen, patch) }
}

func merged(seen, patch map[string]any) map[string]any {
	all := maps.Clone(seen)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(all, key)
		case isObject:
			before, _ := all[key].(map[string]any)
			all[key] = merged(before, inner)
		default:
			all[key] = value
		}
	}
	return all
}

// The bounds of changing fields by themselves, because each one reads the file again: how many, in how large a file in bytes, and how often it is tried with others. Beyond them, the
// fields at the top of the file are written anew.
const (
	maxFields = 50
	maxText   = 64 << 10
	maxTries  = 10
)

func (e Become) changes(base, newest *folder.Folder) ([]draft.Change, error) {
	text, err := read(base, e.File)
	if err == nil && text == nil {
		text, err = read(newest, e.File)
	}
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, failure.New(ErrMissing, "%s does not exist", e.File)
	}
	value, _, err := edit.Get(text, nil)
	if err != nil {
		return nil, failure.Because(ErrInvalidEdit, err, "%s: %s", e.File, err)
	}
	seen, _ := value.(map[string]any)
	return Set{File: e.File, Fields: e.fields(text, seen, e.Wanted(seen))}.changes(base, newest)
}

// fields returns those to set in a text, so that its object becomes the wanted one.
func (e Become) fields(text []byte, seen, wanted map[string]any) []Field {
	fields := difference(nil, seen, wanted)
	if len(fields) <= maxFields && len(text) <= maxText {
		for range maxTries {
			failed := e.impossible(text, fields)
			if failed < 0 {
				return fields
			}
			fields = coarser(fields, failed, wanted)
		}
	}
	return differentKeys(nil, seen, wanted, func(at edit.Path, _, value any) []Field { return []Field{{Path: at, Value: value, Anew: true}} })
}

// impossible returns the first field that cannot be set in a text, -1 if all can be.
func (e Become) impossible(text []byte, fields []Field) int {
	now := text
	for i, f := range fields {
		var err error
		if now, err = f.set(e.File, text, now); err != nil {
			return i
		}
	}
	return -1
}

// coarser has in place of a field that cannot be set one that is written anew: itself, or what holds it.
func coarser(fields []Field, failed int, wanted any) []Field {
	f := fields[failed]
	if f.Delete || f.Anew {
		f.Path = f.Path[:max(len(f.Path)-1, 1)]
	}
	f = Field{Path: f.Path, Value: valueAt(wanted, f.Path), Anew: true}
	return append(slices.DeleteFunc(fields, func(other Field) bool {
		return len(other.Path) >= len(f.Path) && reflect.DeepEqual(other.Path[:len(f.Path)], f.Path)
	}), f)
}

func valueAt(value any, path edit.Path) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			if list, _ := value.([]any); step < len(list) {
				value = list[step]
			}
		}
	}
	return value
}

// difference returns the fields by which a value becomes the wanted one: the innermost ones.
func difference(at edit.Path, seen, wanted any) (fields []Field) {
	if edit.Same(seen, wanted) {
		return nil
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		if before, is := seen.(map[string]any); is && len(wanted) > 0 {
			return differentKeys(at, before, wanted, difference)
		}
	case []any:
		if before, is := seen.([]any); is && len(wanted) > 0 {
			return differentItems(at, before, wanted)
		}
	}
	return []Field{{Path: at, Value: wanted}}
}

// differentItems returns the fields by which a list becomes the wanted one: items that changed, were added at its end, or were removed. Any other list is another value.
func differentItems(at edit.Path, seen, wanted []any) (fields []Field) {
	if len(seen) == len(wanted) {
		for i := range wanted {
			fields = append(fields, difference(below(at, i), seen[i], wanted[i])...)
		}
		return fields
	}
	first := 0
	for first < min(len(seen), len(wanted)) && edit.Same(seen[first], wanted[first]) {
		first++
	}
	last := 0
	for last < min(len(seen), len(wanted))-first && edit.Same(seen[len(seen)-1-last], wanted[len(wanted)-1-last]) {
		last++
	}
	switch {
	case first == len(seen):
		for i := first; i < len(wanted); i++ {
			fields = append(fields, Field{Path: below(at, i), Value: wanted[i]})
		}
	case first+last == len(wanted):
		for i := len(seen) - last - 1; i >= first; i-- {
			fields = append(fields, Field{Path: below(at, i), Delete: true})
		}
	default:
		fields = []Field{{Path: at, Value: wanted}}
	}
	return fields
}

// differentKeys returns the fields by which an object becomes the wanted one. of returns those of a key that both have, with different values.
func differentKeys(at edit.Path, seen, wanted map[string]any, of func(at edit.Path, seen, wanted any) []Field) (fields []Field) {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		before, had := seen[key]
		switch {
		case !had:
			fields = append(fields, Field{Path: below(at, key), Value: wanted[key]})
		case !edit.Same(before, wanted[key]):
			fields = append(fields, of(below(at, key), before, wanted[key])...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		if _, stays := wanted[key]; !stays {
			fields = append(fields, Field{Path: below(at, key), Delete: true})
		}
	}
	return fields
}

func below(at edit.Path, step any) edit.Path { return append(slices.Clone(at), step) }

// Matching is an edit of a file that the requester saw, by its digest: whatever another commit changed in the file is a conflict.
type Matching struct {
	Edit
	File, Digest string
}

func (e Matching) changes(base, newest *folder.Folder) ([]draft.Change, error) {
	now, err := digest(newest, e.File)
	if err != nil {
		return nil, err
	}
	if now != e.Digest {
		return nil, failure.New(ErrConflict, "%s is not the version that was seen: look at it, and change it again", e.File)
	}
	return e.Edit.changes(base, newest)
}
