package artifact

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/few"
)

// unpacking reads an archive of manifests, a tar compressed with gzip, which is untrusted. It rewrites the archive as a zip file, because
// one file of a zip can be read without the others, and no name from the archive is ever created on disk. Only the names are held in
// memory.
type unpacking struct {
	limits limits
	to     *zip.Writer
	// known has the paths of the files (false), and of the folders in which they are (true).
	known map[string]bool
	names int64
	// bytes is the size of all files together. A sparse file is larger than its bytes in the archive.
	bytes int64
}

// unpack reads the archive to its end, or until a limit is exceeded.
//
// Errors: ErrTooLarge, which names the limit; ErrInvalid for anything that is not such an archive, and for links, devices and paths that
// lead out of the archive.
func unpack(from io.Reader, to io.Writer, l limits) error {
	inflated, err := gzip.NewReader(from)
	if err != nil {
		return unreadableArchive(err)
	}
	u := &unpacking{limits: l, to: zip.NewWriter(to), known: map[string]bool{}}
	archive := tar.NewReader(limit.NewReader(inflated, l.unpacked, failure.TooLarge("the unpacked artifact", l.unpacked)))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return unreadableArchive(err)
		}
		if err := u.entry(header, archive); err != nil {
			return err
		}
	}
	if err := u.to.Close(); err != nil {
		return fmt.Errorf("writing the artifact: %w", err)
	}
	return nil
}

func unreadableArchive(err error) error {
	var ours *failure.Error
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failure.New(failure.ErrInvalid, "the artifact is not a whole tar archive compressed with gzip: publish it as \"flux push artifact\" does")
	}
	return err
}

func (u *unpacking) entry(header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeReg, tar.TypeDir:
	default:
		return failure.New(failure.ErrInvalid, "the artifact holds %s, which is a link or a device: publish files and folders only", few.Quote(header.Name))
	}
	name, err := u.place(header.Name)
	if err != nil || name == "." {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		return u.know(name, true)
	}
	if header.Size > u.limits.unpackedFile {
		return failure.TooLarge("the file "+few.Quote(name)+" of the artifact", u.limits.unpackedFile)
	}
	if u.bytes += header.Size; u.bytes > u.limits.unpacked {
		return failure.TooLarge("the unpacked artifact", u.limits.unpacked)
	}
	if _, twice := u.known[name]; twice {
		return failure.New(failure.ErrInvalid, "the artifact holds %s twice", few.Quote(name))
	}
	if err := u.know(name, false); err != nil {
		return err
	}
	about := &zip.FileHeader{Name: name, Method: zip.Deflate}
	about.SetMode(0o444)
	file, err := u.to.CreateHeader(about)
	if err != nil {
		return fmt.Errorf("writing the artifact: %w", err)
	}
	if _, err := io.Copy(file, content); err != nil {
		return unreadableArchive(err)
	}
	return nil
}

// place returns the path of an entry as fs.FS needs it.
func (u *unpacking) place(written string) (string, error) {
	if len(written) > u.limits.path {
		return "", failure.TooMany("the length in bytes of a path in the artifact", int64(u.limits.path))
	}
	name := path.Clean(written)
	if strings.HasPrefix(written, "/") || !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") {
		return "", failure.New(failure.ErrInvalid, "the artifact holds the path %q, which leads out of it: publish relative paths only", few.Quote(written))
	}
	if strings.Count(name, "/") >= u.limits.depth {
		return "", failure.TooMany("the number of folders inside each other in the artifact", int64(u.limits.depth))
	}
	return name, nil
}

// know records a file, or a folder, and the folders above it.
func (u *unpacking) know(name string, folder bool) error {
	for at := name; at != "."; at, folder = path.Dir(at), true {
		was, known := u.known[at]
		if known && was == folder {
			if folder {
				return nil
			}
			continue
		}
		if known {
			return failure.New(failure.ErrInvalid, "the artifact holds %s as a file and as a folder", few.Quote(at))
		}
		if u.names += int64(len(at)); u.names > u.limits.paths {
			return failure.TooLarge("all the paths of the artifact together", u.limits.paths)
		}
		if len(u.known) >= u.limits.files {
			return failure.TooMany("the number of files and folders in the artifact", int64(u.limits.files))
		}
		u.known[at] = folder
	}
	return nil
}
