// Package draft makes the Git objects of a new commit from the files of its parent and what changes in them. Nothing is checked out: only the
// folders on the way to a changed file are written anew.
package draft

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Change is what a path holds in the new commit. Of Content, Tree and neither, which deletes what is there, one is set.
type Change struct {
	// Path is that of a file, or of a folder that is deleted or that becomes Tree.
	Path string
	// Content is that of a file. A file that was executable stays so.
	Content []byte
	// Tree is the hash of a folder of an earlier commit of the same repository.
	Tree string
}

// Person is an author or committer.
type Person struct {
	Name, Email string
}

// signed returns the person as Git writes one: on one line, without the characters that enclose the email address.
func (p Person) signed(at time.Time) object.Signature {
	plain := func(text string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' {
				return -1
			}
			return r
		}, text))
	}
	return object.Signature{Name: plain(p.Name), Email: plain(p.Email), When: at}
}

// Files are those of a commit, such as a *folder.Folder.
type Files interface {
	// Entries returns the entries of a folder. One that does not exist is fs.ErrNotExist.
	Entries(folder string) ([]object.TreeEntry, error)
}

// Draft has the new objects of a commit.
type Draft struct {
	objects *memory.Storage
	tree    plumbing.Hash
	commit  plumbing.Hash
}

// New makes the files of a commit. parent are those of its parent; nil for a first commit. A change below a file, a symbolic link or a
// submodule is an error.
func New(parent Files, changes []Change) (*Draft, error) {
	d := &Draft{objects: memory.NewStorage()}
	byPath := map[string]Change{}
	for _, c := range changes {
		if !fs.ValidPath(c.Path) || c.Path == "." {
			return nil, fmt.Errorf("%q is no path in a repository", c.Path)
		}
		byPath[c.Path] = c
	}
	tree, _, err := d.folder(parent, ".", byPath)
	if err != nil {
		return nil, err
	}
	d.tree = tree
	return d, nil
}

// folder writes a folder with changes, and reports whether it is empty. The changes are by their paths within it.
func (d *Draft) folder(parent Files, at string, changes map[string]Change) (tree plumbing.Hash, empty bool, err error) {
	entries, err := entriesOf(parent, at)
	if err != nil {
		return tree, false, err
	}
	below := map[string]map[string]Change{}
	for path, c := range changes {
		name, rest, nested := strings.Cut(path, "/")
		if below[name] == nil {
			below[name] = map[string]Change{}
		}
		if !nested {
			rest = "."
		}
		below[name][rest] = c
	}
	for name, changes := range below {
		if err := d.entry(parent, at, name, entries, changes); err != nil {
			return tree, false, err
		}
	}
	made := object.Tree{Entries: slices.Collect(maps.Values(entries))}
	sort.Sort(object.TreeEntrySorter(made.Entries))
	tree, err = d.write(&made)
	return tree, len(entries) == 0, err
}

// entry changes one entry of a folder.
func (d *Draft) entry(parent Files, at, name string, entries map[string]object.TreeEntry, changes map[string]Change) error {
	full := strings.TrimPrefix(at+"/"+name, "./")
	was, exists := entries[name]
	if c, whole := changes["."]; whole {
		if len(changes) > 1 {
			return fmt.Errorf("%s is changed as a whole and in parts", full)
		}
		return d.replace(name, was, entries, c)
	}
	if exists && was.Mode != filemode.Dir {
		return fmt.Errorf("%s is no folder", full)
	}
	tree, empty, err := d.folder(parent, full, changes)
	if err != nil {
		return err
	}
	entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: tree}
	if empty { // Git keeps no empty folders.
		delete(entries, name)
	}
	return nil
}

// replace sets or deletes an entry.
func (d *Draft) replace(name string, was object.TreeEntry, entries map[string]object.TreeEntry, c Change) error {
	switch {
	case c.Tree != "":
		entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: plumbing.NewHash(c.Tree)}
		return nil
	case c.Content == nil:
		delete(entries, name)
		return nil
	}
	blob := d.objects.NewEncodedObject()
	blob.SetType(plumbing.BlobObject)
	to, err := blob.Writer()
	if err == nil {
		_, err = to.Write(c.Content)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", c.Path, err)
	}
	hash, err := d.objects.SetEncodedObject(blob)
	mode := filemode.Regular
	if was.Mode == filemode.Executable {
		mode = was.Mode
	}
	entries[name] = object.TreeEntry{Name: name, Mode: mode, Hash: hash}
	return err
}

// entriesOf returns the entries of a folder by name; none if it does not exist.
func entriesOf(parent Files, at string) (map[string]object.TreeEntry, error) {
	byName := map[string]object.TreeEntry{}
	if parent == nil {
		return byName, nil
	}
	entries, err := parent.Entries(at)
	if errors.Is(err, fs.ErrNotExist) {
		return byName, nil
	}
	for _, e := range entries {
		byName[e.Name] = e
	}
	return byName, err
}

// Tree is the hash of the commit's files.
func (d *Draft) Tree() string { return d.tree.String() }

// Commit makes the commit, and returns its hash. parent is the hash of its parent; "" for a first commit.
func (d *Draft) Commit(parent, message string, author, committer Person, at time.Time) (string, error) {
	made := &object.Commit{
		Author: author.signed(at), Committer: committer.signed(at), Message: message, TreeHash: d.tree,
	}
	if parent != "" {
		made.ParentHashes = []plumbing.Hash{plumbing.NewHash(parent)}
	}
	var err error
	d.commit, err = d.write(made)
	return d.commit.String(), err
}

// Pack writes the new objects in the format of packs. Objects of the parent are not among them.
func (d *Draft) Pack(to io.Writer) error {
	hashes := slices.Collect(maps.Keys(d.objects.Objects))
	if _, err := packfile.NewEncoder(to, d.objects, false).Encode(hashes, 0); err != nil {
		return fmt.Errorf("packing the new commit: %w", err)
	}
	return nil
}

// write adds an object.
func (d *Draft) write(made interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	encoded := d.objects.NewEncodedObject()
	if err := made.Encode(encoded); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encoding an object of the new commit: %w", err)
	}
	return d.objects.SetEncodedObject(encoded)
}
