package chart

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/few"
)

// Overlaid is a chart's folder with additional dependencies in charts/ that are not in Git. It implements fs.FS, fs.ReadDirFS,
// fs.ReadFileFS and fs.StatFS, and is safe for concurrent use.
type Overlaid struct {
	base   *folder.Folder
	digest string
	// added are the additional files and folders of charts/, by name.
	added map[string]addition
}

// addition is an archive on disk or a folder.
type addition struct {
	archive string
	folder  *Overlaid
}

var (
	_ fs.ReadDirFS  = (*Overlaid)(nil)
	_ fs.ReadFileFS = (*Overlaid)(nil)
	_ fs.StatFS     = (*Overlaid)(nil)
)

const chartsFolder = "charts"

// Overlay adds dependencies to charts/ of the chart in a folder: an archive as <name>-<version>.tgz, a folder as <name>-<version>. Nothing
// is copied.
//
// at may be written as "./chart/"; empty is root itself. Without dependencies the result is the folder and its digest.
//
// Errors: ErrNotFound when root has no such folder, ErrInvalid when at leads out of root.
func Overlay(root *folder.Folder, at string, needs []Dependency) (*Overlaid, error) {
	at, err := inside(at)
	if err != nil {
		return nil, err
	}
	base, err := root.Sub(at)
	if err != nil {
		return nil, err
	}
	o := &Overlaid{base: base, added: map[string]addition{}}
	if o.digest, err = base.Digest("."); err != nil || len(needs) == 0 {
		return o, err
	}
	parts := []string{o.digest}
	for _, d := range needs {
		content := d.Archive.Digest
		more := addition{archive: d.Archive.Path}
		if d.Path != "" {
			if more.folder, err = Overlay(root, d.Path, d.Needs); err != nil {
				return nil, fmt.Errorf("dependency %s: %w", d.Name, err)
			}
			content = more.folder.digest
		}
		o.added[d.file()] = more
		parts = append(parts, d.file()+" "+content)
	}
	slices.Sort(parts[1:])
	o.digest = digestOf([]byte(strings.Join(parts, "\n")))
	return o, nil
}

// inside cleans a path for fs.FS.
func inside(written string) (string, error) {
	at := path.Clean(written)
	if !fs.ValidPath(at) {
		return "", failure.New(failure.ErrInvalid, "the path %q leads out of the folder it is in", few.Quote(written))
	}
	return at, nil
}

// file returns the name in charts/.
func (d Dependency) file() string {
	name := d.Name + "-" + d.Version
	if strings.ContainsAny(name, "/\\") {
		return ""
	}
	if d.Path != "" {
		return name
	}
	return name + archiveEnd
}

func digestOf(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }

// Digest is the digest of the folder when nothing was added, otherwise of the folder and all additions. The same digest means the same
// content.
func (o *Overlaid) Digest() string { return o.digest }

// find returns the addition at a path, and the rest of the path inside it.
func (o *Overlaid) find(name string) (addition, string, bool) {
	below, in := strings.CutPrefix(name, chartsFolder+"/")
	if !in || !fs.ValidPath(name) {
		return addition{}, "", false
	}
	first, rest, deeper := strings.Cut(below, "/")
	more, ok := o.added[first]
	if !deeper {
		rest = "."
	}
	return more, rest, ok
}

// Open implements fs.FS.
func (o *Overlaid) Open(name string) (fs.File, error) {
	about, err := o.Stat(name)
	if err != nil {
		return nil, err
	}
	if about.IsDir() {
		entries, err := o.ReadDir(name)
		return folder.OpenFolder(about, entries), err
	}
	more, rest, ok := o.find(name)
	switch {
	case !ok:
		return o.base.Open(name)
	case more.folder != nil:
		return more.folder.Open(rest)
	}
	file, err := os.Open(more.archive)
	if err != nil {
		return nil, folder.PathError("open", name, swept(err))
	}
	return &overlaidFile{file, about}, nil
}

// ReadFile implements fs.ReadFileFS.
func (o *Overlaid) ReadFile(name string) ([]byte, error) {
	more, rest, ok := o.find(name)
	switch {
	case !ok:
		return o.base.ReadFile(name)
	case more.folder != nil:
		return more.folder.ReadFile(rest)
	case rest != ".":
		return nil, folder.PathError("read", name, folder.ErrNotExist)
	}
	content, err := os.ReadFile(more.archive)
	if err != nil {
		return nil, folder.PathError("read", name, swept(err))
	}
	return content, nil
}

// Stat implements fs.StatFS.
func (o *Overlaid) Stat(name string) (fs.FileInfo, error) {
	more, rest, ok := o.find(name)
	switch {
	case name == chartsFolder && len(o.added) > 0:
		return o.folder(name)
	case !ok:
		return o.base.Stat(name)
	case more.folder != nil && rest == ".":
		return o.folder(name)
	case more.folder != nil:
		return more.folder.Stat(rest)
	case rest != ".":
		return nil, folder.PathError("stat", name, folder.ErrNotExist)
	}
	about, err := os.Stat(more.archive)
	if err != nil {
		return nil, folder.PathError("stat", name, swept(err))
	}
	return named{about, path.Base(name)}, nil
}

// ReadDir implements fs.ReadDirFS. The entries are sorted by name.
func (o *Overlaid) ReadDir(name string) ([]fs.DirEntry, error) {
	if more, rest, ok := o.find(name); ok && more.folder != nil {
		return more.folder.ReadDir(rest)
	}
	entries, err := o.base.ReadDir(name)
	if name == chartsFolder && errors.Is(err, fs.ErrNotExist) && len(o.added) > 0 {
		err = nil
	}
	if err != nil || len(o.added) == 0 {
		return entries, err
	}
	var more []string
	switch name {
	case ".":
		more = []string{chartsFolder}
	case chartsFolder:
		for file := range o.added {
			more = append(more, file)
		}
	}
	for _, file := range more {
		about, err := o.Stat(path.Join(name, file))
		if err != nil {
			return nil, err
		}
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == file })
		entries = append(entries, fs.FileInfoToDirEntry(about))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// swept explains that an archive was removed; Dependencies fetches it again. The result is not an fs.ErrNotExist: a reader would take the
// file for one that the chart does not have, and render the chart without it.
func swept(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the archive of a dependency was swept: fetch it again")
	}
	return err
}

// folder returns the FileInfo of a folder with this name.
func (o *Overlaid) folder(name string) (fs.FileInfo, error) {
	about, err := o.base.Stat(".")
	return named{about, path.Base(name)}, err
}

// named is a file or folder with another name, read-only.
type named struct {
	fs.FileInfo
	name string
}

// Name implements fs.FileInfo.
func (n named) Name() string { return n.name }

// Mode implements fs.FileInfo.
func (n named) Mode() fs.FileMode {
	if n.IsDir() {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type overlaidFile struct {
	*os.File
	about fs.FileInfo
}

// Stat implements fs.File.
func (f *overlaidFile) Stat() (fs.FileInfo, error) { return f.about, nil }
