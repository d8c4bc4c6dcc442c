package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/manifests"
)

const (
	// Questions is how many requests about files a process may make: for 20,000 files and folders, one about each and one for its content.
	Questions = 50_000
	// maxRead is how many bytes of files a process may read.
	maxRead = 64 << 20
	// attachedBytes is the size up to which the content of a file is sent with its description. listedBytes is how many bytes of files are
	// sent with the list of a folder. A process that lists a folder reads all its files, so this saves two requests for each file.
	attachedBytes, listedBytes = 32 << 10, 256 << 10
)

var errQuestion = errors.New("the question is none of this operator's")

// answers answers a process's requests about the files of one build. It keeps the errors of its answers.
type answers struct {
	files fs.FS
	// service calls a key service. Nil: the build has no keys.
	service func(ctx context.Context, request []byte) ([]byte, error)
	kept    []error
	bytes   int64
}

// again returns new answers for another process that gets the same order.
func (a *answers) again() *answers {
	return &answers{files: a.files, service: a.service, kept: slices.Clone(a.kept), bytes: a.bytes}
}

// keep stores an error, and returns it as a failure with its number; nil for nil.
func (a *answers) keep(err error) *failure {
	f := failureOf(err)
	if f != nil && !errors.Is(err, fs.ErrNotExist) { // Kustomize tries many names.
		a.kept = append(a.kept, err)
		f.Kept = []int{len(a.kept)}
	}
	return f
}

// answer answers one request.
func (a *answers) answer(ctx context.Context, question []byte) ([]byte, error) {
	if len(question) > 0 && question[0] == askService && a.service != nil {
		return a.service(ctx, question[1:])
	}
	if len(question) == 0 || a.files == nil {
		return nil, errQuestion
	}
	var r *reply
	switch name := string(question[1:]); question[0] {
	case askInfo:
		r = a.info(name)
	case askFile:
		data, err := a.file(name)
		if err == nil {
			return append([]byte{content}, data...), nil
		}
		r = &reply{Err: a.keep(err)}
	case askFolder:
		r = a.folder(name)
	default:
		return nil, errQuestion
	}
	return message.Write(r)
}

func (a *answers) info(name string) *reply {
	is, err := fs.Lstat(a.files, name)
	if err != nil {
		return &reply{Err: a.keep(err)}
	}
	r := &reply{Info: &info{Called: is.Name(), Perm: is.Mode(), Bytes: is.Size()}}
	if is.Mode().IsRegular() && is.Size() <= attachedBytes {
		// A process reads a file after it has got the description. If the file cannot be read, that request returns the error.
		if data, err := a.read(name, is.Size()); err == nil {
			r.Data, r.HasData = data, true
		}
	}
	return r
}

func (a *answers) read(name string, size int64) ([]byte, error) {
	if a.bytes += size; a.bytes > maxRead {
		return nil, fmt.Errorf("the files of the build have more than %d MiB together: %w", maxRead>>20, render.ErrTooLarge)
	}
	return fs.ReadFile(a.files, name)
}

func (a *answers) file(name string) ([]byte, error) {
	is, err := fs.Lstat(a.files, name)
	if err != nil {
		return nil, err
	}
	return a.read(name, is.Size())
}

func (a *answers) folder(name string) *reply {
	entries, err := fs.ReadDir(a.files, name)
	r := &reply{Err: a.keep(err)}
	left := int64(listedBytes)
	for _, e := range entries {
		r.Entries = append(r.Entries, info{Called: e.Name(), Perm: e.Type()})
		if left > 0 && e.Type().IsRegular() && manifests.IsFile(e.Name()) {
			if file := a.info(path.Join(name, e.Name())); file.HasData {
				r.Files = append(r.Files, *file)
				left -= file.Info.Bytes
			}
		}
	}
	return r
}

// made returns the final result of a process.
func (a *answers) made(answer []byte) (made Made, err error) {
	var out outcome
	if err := reader.Read(answer, &out); err != nil {
		return Made{}, unfit(err)
	}
	for _, secret := range out.Secrets {
		made.Secrets = append(made.Secrets, string(secret))
	}
	if out.Err != nil {
		failed := out.Err.error()
		failed.classes = append(failed.classes, a.errors(out.Err.Kept)...)
		return made, failed
	}
	made.Outdated = out.Outdated[:min(len(out.Outdated), maxOutdated)]
	made.Objects, err = decoded(out.Objects)
	return made, err
}

// errors returns the errors with these numbers.
func (a *answers) errors(numbers []int) (found []error) {
	for _, n := range numbers {
		if n > 0 && n <= len(a.kept) {
			found = append(found, a.kept[n-1])
		}
	}
	return found
}
