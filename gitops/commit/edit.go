package commit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/edit"
)

// The errors of edits; compare with errors.Is.
var (
	// ErrConflict means that another commit changed what the edit changes, to something else.
	ErrConflict = errors.New("conflict")
	// ErrExists means that a file to create is there.
	ErrExists = errors.New("the file exists")
	// ErrMissing means that a file to change does not exist.
	ErrMissing = errors.New("the file does not exist")
	// ErrInvalidEdit means that the edit can never be made.
	ErrInvalidEdit = errors.New("invalid edit")
)

// Edit is a change of files that can be made on any commit: Create, Set, Become, Delete or Restore, or one of them that is Matching.
type Edit interface {
	// changes returns what changes in the newest files; nothing if they have it. base are the files that the requester saw.
	changes(base, newest *folder.Folder) ([]draft.Change, error)
}

// Create writes a new file.
type Create struct {
	File    string
	Content []byte
}

func (e Create) changes(base, newest *folder.Folder) ([]draft.Change, error) {
	now, err := read(newest, e.File)
	switch {
	case err != nil:
		return nil, err
	case now == nil:
		return []draft.Change{{Path: e.File, Content: append([]byte{}, e.Content...)}}, nil
	}
	if was, err := read(base, e.File); err != nil || was != nil {
		return nil, errors.Join(err, failure.New(ErrExists, "%s exists: nothing is overwritten", e.File))
	}
	if !bytes.Equal(now, e.Content) {
		return nil, failure.New(ErrConflict, "%s was created by another commit, with other content: look at it, and change it there", e.File)
	}
	return nil, nil
}

// Set changes fields of a YAML file, all of them or none. Everything else in the file stays as it is.
type Set struct {
	File   string
	Fields []Field
}

// Field is a field to set, or to delete.
type Field struct {
	Path edit.Path
	// Value is as edit.Set takes it.
	Value  any
	Delete bool
	// Anew: an object or list of several lines may be written anew, without the comments within it.
	Anew bool
	// Was, if not nil, is the value that the requester saw, in place of that in the base.
	Was any
}

func (e Set) changes(base, newest *folder.Folder) ([]draft.Change, error) {
	text, err := read(newest, e.File)
	if err != nil {
		return nil, err
	}
	was, err := read(base, e.File)
	switch {
	case err != nil:
		return nil, err
	case text == nil && was != nil:
		return nil, failure.New(ErrConflict, "%s was deleted by another commit", e.File)
	case text == nil:
		return nil, failure.New(ErrMissing, "%s does not exist", e.File)
	case len(e.Fields) == 0:
		return nil, nil
	}
	now, err := edit.Read(text)
	if err != nil {
		return nil, failure.Because(ErrInvalidEdit, err, "%s: reading %s: %s", e.File, e.Fields[0].Path, err)
	}
	seen := now
	if !bytes.Equal(was, text) {
		if seen, err = edit.Read(was); err != nil {
			seen = nil // What cannot be read has nothing that could be undone.
		}
	}
	for _, f := range e.Fields {
		if now, err = f.set(e.File, seen, now); err != nil {
			return nil, err
		}
	}
	return changed(e.File, text, now), nil
}

// changed is what changes in a file, nothing if its text is the same.
func changed(file string, text []byte, now *edit.File) []draft.Change {
	if bytes.Equal(now.Text(), text) {
		return nil
	}
	return []draft.Change{{Path: file, Content: now.Text()}}
}

// set sets the field in the newest text of a file. was is what the requester saw; nil if there was none.
func (f Field) set(file string, was, now *edit.File) (*edit.File, error) {
	at, has := now.Get(f.Path)
	before, had := any(nil), false
	if was != nil {
		before, had = was.Get(f.Path)
	}
	if f.Was != nil {
		var err error
		if before, err = edit.Normal(f.Was); err != nil {
			return nil, failure.Because(ErrInvalidEdit, err, "%s: %s", file, err)
		}
		was, had = now, true
	}
	switch {
	case f.Delete && !has && had, !f.Delete && has && edit.Same(at, f.Value):
		return now, nil
	case was != nil && (had != has || !reflect.DeepEqual(at, before)):
		return nil, failure.New(ErrConflict, "%s: another commit changed %s from %s to %s: look at it, and change it again", file, f.Path, shown(before, had), shown(at, has))
	}
	var err error
	switch {
	case f.Delete:
		now, err = now.Delete(f.Path)
	case f.Anew:
		now, err = now.Replace(f.Path, f.Value)
	default:
		now, err = now.Set(f.Path, f.Value)
	}
	if err != nil {
		return nil, failure.Because(ErrInvalidEdit, err, "%s: %s", file, err)
	}
	return now, nil
}

// shown is a value for messages.
func shown(value any, has bool) string {
	if !has {
		return "no value"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return few.Quote(string(text))
}

// Delete deletes a file, or a folder with all that is in it.
type Delete struct {
	Path string
}

func (e Delete) changes(base, newest *folder.Folder) ([]draft.Change, error) {
	now, err := digest(newest, e.Path)
	if err != nil || now == "" {
		return nil, err
	}
	if was, err := digest(base, e.Path); err != nil {
		return nil, err
	} else if was != now {
		return nil, failure.New(ErrConflict, "another commit changed %s: look at it, and delete it again", e.Path)
	}
	return []draft.Change{{Path: e.Path}}, nil
}

// Restore makes a folder what it was at an earlier commit of the same repository.
type Restore struct {
	Folder string
	// Tree is the hash of the folder at that commit.
	Tree string
}

func (e Restore) changes(base, newest *folder.Folder) ([]draft.Change, error) {
	now, err := digest(newest, e.Folder)
	if err != nil || now == e.Tree {
		return nil, err
	}
	if was, err := digest(base, e.Folder); err != nil {
		return nil, err
	} else if was != now {
		return nil, failure.New(ErrConflict, "another commit changed %s: look at it, and restore it again", e.Folder)
	}
	return []draft.Change{{Path: e.Folder, Tree: e.Tree}}, nil
}

// read returns a file; nil if it does not exist.
func read(files *folder.Folder, file string) ([]byte, error) {
	content, err := files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.Because(ErrInvalidEdit, err, "%s: %s", file, reason(err))
	}
	return append([]byte{}, content...), nil
}

// digest returns the hash of a file or folder; "" if it does not exist.
func digest(files *folder.Folder, path string) (string, error) {
	hash, err := files.Digest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", failure.Because(ErrInvalidEdit, err, "%s: %s", path, reason(err))
	}
	return hash, nil
}

// reason is an error without the path, which the caller names.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
