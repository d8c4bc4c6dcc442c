// Package draft makes the Git objects of new commits from the files of their parent and what changes in them. Nothing is checked out: only the
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

// Draft has the new objects of commits, each made upon the one before. It implements folder.Objects.
type Draft struct {
	// Commits are those that were added, the first one first.
	Commits []Commit

	objects objects
}

// Commit is a commit to make.
type Commit struct {
	// Tree is the hash of its files.
	Tree    string
	Message string
	// Author and Committer, and the time at which it is made.
	Author, Committer Person
	At                time.Time
}

// New returns a Draft without a commit.
func New() *Draft { return &Draft{objects: objects{memory.NewStorage()}} }

// Add adds a commit that changes the files of the one before, or of the parent of the first one. A change below a file, a symbolic link or a
// submodule is an error, and then nothing is added.
func (d *Draft) Add(parent Files, c Commit, changes []Change) error {
	byPath := map[string]Change{}
	for _, c := range changes {
		if !fs.ValidPath(c.Path) || c.Path == "." {
			return fmt.Errorf("%q is no path in a repository", c.Path)
		}
		byPath[c.Path] = c
	}
	made := making{parent: parent, objects: objects{memory.NewStorage()}}
	tree, _, err := made.folder(".", byPath)
	if err != nil {
		return err
	}
	for _, o := range made.objects.Objects {
		if _, err := d.objects.SetEncodedObject(o); err != nil {
			return err
		}
	}
	c.Tree = tree.String()
	d.Commits = append(d.Commits, c)
	return nil
}

// Bytes is how many bytes the new objects have.
func (d *Draft) Bytes() (sum int64) {
	for _, o := range d.objects.Objects {
		sum += o.Size()
	}
	return sum
}

// Make makes the commits, and returns their hashes. parent is the hash of the parent of the first one; "" if it has none.
func (d *Draft) Make(parent string) (hashes []string, err error) {
	for _, c := range d.Commits {
		made := &object.Commit{
			Author: c.Author.signed(c.At), Committer: c.Committer.signed(c.At), Message: c.Message, TreeHash: plumbing.NewHash(c.Tree),
		}
		if parent != "" {
			made.ParentHashes = []plumbing.Hash{plumbing.NewHash(parent)}
		}
		hash, err := d.objects.write(made)
		if err != nil {
			return nil, err
		}
		parent = hash.String()
		hashes = append(hashes, parent)
	}
	return hashes, nil
}

// Pack writes the new objects in the format of packs. Objects of the parent are not among them, and commits only after Make.
func (d *Draft) Pack(to io.Writer) error {
	hashes := slices.Collect(maps.Keys(d.objects.Objects))
	if _, err := packfile.NewEncoder(to, d.objects, false).Encode(hashes, 0); err != nil {
		return fmt.Errorf("packing the new commits: %w", err)
	}
	return nil
}

// making makes the files of a commit.
type making struct {
	parent  Files
	objects objects
}

// folder writes a folder with changes, and reports whether it is empty. The changes are by their paths within it.
func (m making) folder(at string, changes map[string]Change) (tree plumbing.Hash, empty bool, err error) {
	entries, err := entriesOf(m.parent, at)
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
		if err := m.entry(at, name, entries, changes); err != nil {
			return tree, false, err
		}
	}
	made := object.Tree{Entries: slices.Collect(maps.Values(entries))}
	sort.Sort(object.TreeEntrySorter(made.Entries))
	tree, err = m.objects.write(&made)
	return tree, len(entries) == 0, err
}

// entry changes one entry of a folder.
func (m making) entry(at, name string, entries map[string]object.TreeEntry, changes map[string]Change) error {
	full := strings.TrimPrefix(at+"/"+name, "./")
	was, exists := entries[name]
	if c, whole := changes["."]; whole {
		if len(changes) > 1 {
			return fmt.Errorf("%s is changed as a whole and in parts", full)
		}
		return m.replace(name, was, entries, c)
	}
	if exists && was.Mode != filemode.Dir {
		return fmt.Errorf("%s is no folder", full)
	}
	tree, empty, err := m.folder(full, changes)
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
func (m making) replace(name string, was object.TreeEntry, entries map[string]object.TreeEntry, c Change) error {
	switch {
	case c.Tree != "":
		entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: plumbing.NewHash(c.Tree)}
		return nil
	case c.Content == nil:
		delete(entries, name)
		return nil
	}
	blob := m.objects.NewEncodedObject()
	blob.SetType(plumbing.BlobObject)
	to, err := blob.Writer()
	if err == nil {
		_, err = to.Write(c.Content)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", c.Path, err)
	}
	hash, err := m.objects.SetEncodedObject(blob)
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
	entries, err := parent.Entries(at)
	if errors.Is(err, fs.ErrNotExist) {
		return byName, nil
	}
	for _, e := range entries {
		byName[e.Name] = e
	}
	return byName, err
}
