package build

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"sigs.k8s.io/kustomize/api/konfig"
)

// These are the requests of a process: the description of a path, the content of a file, the list of a folder, or a call of a key service.
const (
	askInfo byte = iota + 1
	askFile
	askFolder
	askService
)

// content is the first byte of an answer with a file's content; any other answer is a reply.
const content byte = 0

// reply is the answer about a path.
type reply struct {
	Info    *info
	Entries []info
	// Files are some of the Entries with their content.
	Files []reply
	Err   *failure
	// Data is the content of a file, if HasData.
	Data    []byte
	HasData bool
}

// info describes a file or folder. In a list of a folder, the size is unknown.
type info struct {
	Called string
	Perm   fs.FileMode
	Bytes  int64
}

// Name implements fs.FileInfo and fs.DirEntry.
func (i *info) Name() string { return i.Called }

// Size implements fs.FileInfo.
func (i *info) Size() int64 { return i.Bytes }

// Mode implements fs.FileInfo.
func (i *info) Mode() fs.FileMode { return i.Perm }

// Type implements fs.DirEntry.
func (i *info) Type() fs.FileMode { return i.Perm.Type() }

// ModTime implements fs.FileInfo. No build depends on times.
func (i *info) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo and fs.DirEntry.
func (i *info) IsDir() bool { return i.Perm.IsDir() }

// Sys implements fs.FileInfo.
func (i *info) Sys() any { return nil }

// Info is refused: the size of an entry in a list is unknown.
func (i *info) Info() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// remoteFiles are the files of a source, as seen by the process that evaluates it. It requests each file from the operator.
type remoteFiles struct {
	ask  func([]byte) ([]byte, error)
	note func(string)
	// infos are the known descriptions of paths: each read checks the folders on the way to its file. lists are those of folders.
	infos, lists map[string]*reply
	// builds is the folder of the first kustomization that was read.
	builds string
}

var (
	_ fs.ReadFileFS = (*remoteFiles)(nil)
	_ fs.ReadDirFS  = (*remoteFiles)(nil)
	_ fs.StatFS     = (*remoteFiles)(nil)
)

func newRemoteFiles(ask func([]byte) ([]byte, error), note func(string)) *remoteFiles {
	return &remoteFiles{ask: ask, note: note, infos: map[string]*reply{}, lists: map[string]*reply{}}
}

func (a *remoteFiles) question(about byte, op, name string) (*reply, error) {
	answer, err := a.ask(append([]byte{about}, name...))
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if about == askFile && len(answer) > 0 && answer[0] == content {
		return &reply{Data: answer[1:]}, nil
	}
	r := &reply{}
	if err := reader.Read(answer, r); err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return r, nil
}

// Open is refused: files are read only as a whole.
func (a *remoteFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// Stat describes a file. It does not follow links.
func (a *remoteFiles) Stat(name string) (fs.FileInfo, error) {
	r, known := a.infos[name]
	if !known {
		var err error
		if r, err = a.question(askInfo, "stat", name); err != nil {
			return nil, err
		}
		a.infos[name] = r
	}
	if r.Err != nil {
		return nil, r.Err.numbered()
	}
	return r.Info, nil
}

// ReadFile records that the file is being read, or that a kustomization is being built with it, and reads it.
func (a *remoteFiles) ReadFile(name string) ([]byte, error) {
	if a.builds == "" && slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
		a.builds = path.Dir(name)
	}
	if a.builds != "" {
		a.note("building " + a.builds + " with kustomize, after it read " + name + ",")
	} else {
		a.note(name)
	}
	if known := a.infos[name]; known != nil && known.HasData {
		known.HasData = false // The content is kept for one read only.
		data := known.Data
		known.Data = nil
		return data, nil
	}
	r, err := a.question(askFile, "read", name)
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, r.Err.numbered()
	}
	return r.Data, nil
}

// ReadDir lists a folder.
func (a *remoteFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	r, known := a.lists[name]
	if !known {
		var err error
		if r, err = a.question(askFolder, "readdir", name); err != nil {
			return nil, err
		}
		a.lists[name] = r
		for i := range r.Files {
			a.infos[path.Join(name, r.Files[i].Info.Called)] = &r.Files[i]
		}
	}
	entries := make([]fs.DirEntry, 0, len(r.Entries))
	for i := range r.Entries {
		entries = append(entries, &r.Entries[i])
	}
	if r.Err != nil {
		return entries, r.Err.numbered()
	}
	return entries, nil
}
