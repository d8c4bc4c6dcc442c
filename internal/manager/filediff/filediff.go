// Package filediff compares two folders, such as the same folder at two commits. Its work and its answer have limits, because tenants write the files.
package filediff

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// The limits of an answer: bytes of a file, bytes of all patches, and files. A file beyond them is named without its patch.
const (
	maxFile  = 256 << 10
	maxPatch = 512 << 10
	maxFiles = 500
)

// How a file changed.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// FileDiff is a file that changed.
type FileDiff struct {
	Path   string `json:"path" doc:"From the root of the repository." example:"projects/shop/apps/web/app.yaml"`
	Change string `json:"change" enum:"added,removed,changed"`
	Patch  string `json:"patch,omitempty" doc:"A unified diff, which git apply takes."`
	// Omitted is set if there is no patch.
	Omitted string `json:"omitted,omitempty" doc:"Why there is no patch."`
}

// Diff has the differences between two folders.
type Diff struct {
	Files []FileDiff `json:"files" nullable:"false" doc:"The files that differ, by their paths."`
	More  bool       `json:"more,omitempty" doc:"Whether more files differ than are listed."`
}

// digested is an entry that knows a digest of its whole content, including that of its subfolders.
type digested interface{ Digest() string }

// comparison is a comparison of two folders.
type comparison struct {
	// check returns an error if the comparison has to stop.
	check         func() error
	before, after fs.FS
	// prefix is the path of the folders.
	prefix string
	size   int
	found  Diff
}

// Of compares two folders; nil stands for an empty one. Each path in the result begins with prefix. It returns an error if a file cannot be read, or
// if the context ended.
func Of(ctx context.Context, before, after fs.FS, prefix string) (Diff, error) {
	c := comparison{check: ctx.Err, before: before, after: after, prefix: prefix, found: Diff{Files: []FileDiff{}}}
	err := c.folder(".", before != nil, after != nil)
	if errors.Is(err, errEnough) {
		c.found.More, err = true, nil
	}
	return c.found, err
}

var errEnough = errors.New("there are enough files")

// entriesOf returns the entries of a folder by name, and the names. If the folder does not exist, it returns none.
func entriesOf(files fs.FS, dir string, there bool) (map[string]fs.DirEntry, []string, error) {
	if !there {
		return nil, nil, nil
	}
	entries, err := fs.ReadDir(files, dir)
	named, names := map[string]fs.DirEntry{}, make([]string, 0, len(entries))
	for _, e := range entries {
		named[e.Name()] = e
		names = append(names, e.Name())
	}
	return named, names, err
}

// folder compares a folder that exists on both sides, or on one.
func (c *comparison) folder(dir string, before, after bool) error {
	was, names, err := entriesOf(c.before, dir, before)
	if err != nil {
		return err
	}
	is, further, err := entriesOf(c.after, dir, after)
	if err != nil {
		return err
	}
	all := slices.Concat(names, further)
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		if err := c.check(); err != nil {
			return err
		}
		if err := c.entry(path.Join(dir, name), was[name], is[name]); err != nil {
			return err
		}
	}
	return nil
}

// entry compares a file or folder; was or is is nil if it does not exist on that side.
func (c *comparison) entry(name string, was, is fs.DirEntry) error {
	wasFolder, isFolder := was != nil && was.IsDir(), is != nil && is.IsDir()
	if was != nil && is != nil && same(was, is) {
		return nil
	}
	if !wasFolder && !isFolder {
		return c.file(name, was, is)
	}
	// If a file replaced a folder, all files of the folder were deleted, and the other way round.
	if wasFolder {
		was = nil
	}
	if isFolder {
		is = nil
	}
	if was != nil || is != nil {
		if err := c.file(name, was, is); err != nil {
			return err
		}
	}
	return c.folder(name, wasFolder, isFolder)
}

// same reports whether two entries have the same content and type.
func same(a, b fs.DirEntry) bool {
	x, known := a.(digested)
	y, too := b.(digested)
	return known && too && x.Digest() == y.Digest() && a.Type() == b.Type()
}

// tooLarge is the reason why a file has no patch once all patches together have maxPatch bytes. Later files are not even read.
const tooLarge = "all patches together would be too large"

// file records a file that changed.
func (c *comparison) file(name string, was, is fs.DirEntry) (err error) {
	if len(c.found.Files) == maxFiles {
		return errEnough
	}
	f := FileDiff{Path: path.Join(c.prefix, name), Change: Changed}
	switch {
	case was == nil:
		f.Change = Added
	case is == nil:
		f.Change = Removed
	}
	switch {
	case strings.ContainsFunc(f.Path, unicode.IsControl):
		f.Omitted = "its name has a control character"
	case c.size > maxPatch:
		f.Omitted = tooLarge
	default:
		if f.Patch, f.Omitted, err = c.compare(f, name, was, is); err != nil {
			return err
		}
	}
	if c.size += len(f.Patch); c.size > maxPatch {
		f.Patch, f.Omitted = "", tooLarge
	}
	c.found.Files = append(c.found.Files, f)
	return nil
}

// compare returns the patch of a file, or the reason why it has none.
func (c *comparison) compare(f FileDiff, name string, was, is fs.DirEntry) (text, omitted string, err error) {
	before, omitted, err := read(c.before, name, was)
	if omitted != "" || err != nil {
		return "", omitted, err
	}
	after, omitted, err := read(c.after, name, is)
	if omitted != "" || err != nil {
		return "", omitted, err
	}
	if f.Change == Changed && bytes.Equal(before, after) {
		return "", "only its mode differs", nil
	}
	return patch(f, before, after), "", nil
}

// secret matches the kind Secret in the usual spellings of YAML and JSON, and some other texts. It does not match every spelling that YAML allows.
var secret = regexp.MustCompile(`(?i)["']?\bkind["']?\s*:\s*(?:&\S+\s+|!\S+\s+)*["']?Secret(?:List)?\b`)

// read returns the text of a file, or the reason why it has no patch.
func read(files fs.FS, name string, entry fs.DirEntry) (text []byte, omitted string, err error) {
	if entry == nil {
		return nil, "", nil
	}
	if !entry.Type().IsRegular() {
		return nil, "it is no file, but a symbolic link or a submodule", nil
	}
	about, err := entry.Info()
	if err != nil {
		return nil, "", err
	}
	if about.Size() > maxFile {
		return nil, "the file is too large", nil
	}
	text, err = fs.ReadFile(files, name)
	switch {
	case err != nil:
		return nil, "", err
	case bytes.ContainsRune(text, 0) || !utf8.Valid(text):
		return nil, "the file is no text", nil
	case secret.Match(text):
		return nil, "the file may have a Secret, which is not shown", nil
	}
	return text, "", nil
}

// patch returns a unified diff.
func patch(f FileDiff, before, after []byte) string {
	was, is := "a/"+f.Path, "b/"+f.Path
	switch f.Change {
	case Added:
		was = "/dev/null"
	case Removed:
		is = "/dev/null"
	}
	text := diff.Diff(was, before, is, after)
	// Its first line, which is a title, is no part of a patch.
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return string(text)
}
