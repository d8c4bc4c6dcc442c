package commit

import (
	"bytes"
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

// The bounds of changing fields by themselves, because each one parses the file again: how many, in how large a file in bytes, and how many
// bytes are parsed for it. Beyond them, the fields at the top of the file are written anew.
const (
	maxFields = 50
	maxText   = 64 << 10
	maxParsed = 256 << 10
)

func (e Become) changes(base, newest *folder.Folder) ([]draft.Change, error) {
	now, err := read(newest, e.File)
	if err != nil {
		return nil, err
	}
	text, err := read(base, e.File)
	if err == nil && text == nil {
		text = now
	}
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, failure.New(ErrMissing, "%s does not exist", e.File)
	}
	was, err := edit.Read(text)
	if err != nil {
		return nil, failure.Because(ErrInvalidEdit, err, "%s: %s", e.File, err)
	}
	value, _ := was.Get(nil)
	seen, _ := value.(map[string]any)
	// What is wanted is made what it will be when it is written, once: so all that follows compares and does not parse.
	made, err := edit.Normal(e.Wanted(seen))
	if err != nil {
		return nil, failure.Because(ErrInvalidEdit, err, "%s: %s", e.File, err)
	}
	wanted, _ := made.(map[string]any)
	fields, done := e.fields(was, seen, wanted)
	if done != nil && bytes.Equal(now, text) {
		return changed(e.File, text, done), nil
	}
	return Set{File: e.File, Fields: fields}.changes(base, newest)
}

// fields returns those to set in a file, so that its object becomes the wanted one, and the file with them if it was made.
func (e Become) fields(was *edit.File, seen, wanted map[string]any) ([]Field, *edit.File) {
	fields := difference(nil, seen, wanted)
	left := maxParsed
	for len(fields) <= maxFields && len(was.Text()) <= maxText && left > 0 {
		done, failed := e.set(was, fields, &left)
		if failed < 0 {
			return fields, done
		}
		fields = coarser(fields, failed, wanted)
	}
	return differentKeys(nil, seen, wanted, func(at edit.Path, before, value any) []Field {
		if reflect.DeepEqual(before, value) {
			return nil
		}
		return []Field{{Path: at, Value: value, Anew: true}}
	}), nil
}

// set sets fields in a file, and returns the first one that cannot be set, or for which too much would be parsed; -1 if all are. left is
// how many bytes may be parsed.
func (e Become) set(was *edit.File, fields []Field, left *int) (now *edit.File, failed int) {
	now = was
	for i, f := range fields {
		next, err := f.set(e.File, was, now)
		if err != nil {
			next = now
		}
		if *left -= max(len(now.Text()), len(next.Text())); err != nil || *left < 0 {
			return nil, i
		}
		now = next
	}
	return now, -1
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

// difference returns the fields by which a value becomes the wanted one: the innermost ones. Both are as edit.Normal returns them.
func difference(at edit.Path, seen, wanted any) (fields []Field) {
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
	if reflect.DeepEqual(seen, wanted) {
		return nil
	}
	return []Field{{Path: at, Value: wanted}}
}

// differentItems returns the fields by which a list becomes the wanted one: items that changed, were added at its end, or were removed. Any
// other list is another value.
func differentItems(at edit.Path, seen, wanted []any) (fields []Field) {
	if len(seen) == len(wanted) {
		for i := range wanted {
			fields = append(fields, difference(below(at, i), seen[i], wanted[i])...)
		}
		return fields
	}
	first := 0
	for first < min(len(seen), len(wanted)) && reflect.DeepEqual(seen[first], wanted[first]) {
		first++
	}
	last := 0
	for last < min(len(seen), len(wanted))-first && reflect.DeepEqual(seen[len(seen)-1-last], wanted[len(wanted)-1-last]) {
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

// differentKeys returns the fields by which an object becomes the wanted one. of returns those of a key that both have.
func differentKeys(at edit.Path, seen, wanted map[string]any, of func(at edit.Path, seen, wanted any) []Field) (fields []Field) {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if before, had := seen[key]; had {
			fields = append(fields, of(below(at, key), before, wanted[key])...)
		} else {
			fields = append(fields, Field{Path: below(at, key), Value: wanted[key]})
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

// Matching is an edit of a file or folder that the requester saw, by its digests: whatever another commit changed in it is a conflict. Any
// of the digests may be that of what was seen.
type Matching struct {
	Edit
	File    string
	Digests []string
}

func (e Matching) changes(base, newest *folder.Folder) ([]draft.Change, error) {
	now, err := digest(newest, e.File)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(e.Digests, now) {
		return nil, failure.New(ErrConflict, "%s is not the version that was seen: look at it, and change it again", e.File)
	}
	return e.Edit.changes(base, newest)
}
