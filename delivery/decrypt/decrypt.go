// Package decrypt reads the files of a repository of which SOPS encrypted some (https://github.com/getsops/sops). It knows which files
// those are; decrypting one is a Decrypter's, of which package sops makes one with SOPS' library. Nothing here links that library: it
// brings the clients of five clouds.
package decrypt

import (
	"errors"
	"fmt"
	"io/fs"
)

var (
	// ErrKeys is wrapped by errors that say the keys at hand do not decrypt a file, or are no keys.
	ErrKeys = errors.New("cannot be decrypted")
	// ErrDamaged is wrapped by errors that say a file was changed after it was encrypted, or cannot be read.
	ErrDamaged = errors.New("damaged")
	// ErrService is wrapped by errors of a service that keeps keys, such as AWS KMS: it gave no answer, or refused. Another try may do.
	ErrService = errors.New("no key service decrypted it")
)

// Decrypter decrypts a file that SOPS encrypted, and returns the values that were encrypted in it. Its errors wrap ErrKeys, ErrDamaged or
// ErrService, do not name the file, and hold neither a decrypted value nor a key.
type Decrypter func(in Format, data []byte) (plain []byte, secrets []string, err error)

// Files is a file system that decrypts encrypted files when they are read. The reported sizes are those of the encrypted files, which are
// larger. It is not safe for concurrent use.
type Files struct {
	files   fs.FS
	decrypt Decrypter
	secrets []string
}

var (
	_ fs.ReadFileFS = (*Files)(nil)
	_ fs.ReadDirFS  = (*Files)(nil)
	_ fs.StatFS     = (*Files)(nil)
)

// Open returns the files decrypted. Without a Decrypter, reading a file that is encrypted is an error: applied as it
// is, it would overwrite what works with ciphertext.
func Open(files fs.FS, decrypt Decrypter) *Files { return &Files{files: files, decrypt: decrypt} }

// Secrets are the values that were decrypted so far.
func (f *Files) Secrets() []string { return f.secrets }

// ReadFile returns what a file holds, decrypted as its extension says: .yaml and .yml, .json, .env, .ini, and the whole
// file as one value for any other. Errors do not name the file.
func (f *Files) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(f.files, name)
	if err != nil {
		return nil, err
	}
	return f.decrypted(formatOf(name, data), data)
}

// Manifest decrypts an object as JSON, which errors call name.
func (f *Files) Manifest(name string, data []byte) ([]byte, error) {
	plain, err := f.decrypted(JSON, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plain, nil
}

// Open is refused: it would read past the decryption.
func (f *Files) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// Stat describes a file, and a link itself instead of what it points to.
func (f *Files) Stat(name string) (fs.FileInfo, error) { return fs.Lstat(f.files, name) }

// ReadDir lists a folder.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.files, name) }

func (f *Files) decrypted(in Format, data []byte) ([]byte, error) {
	if !encrypted(in, data) {
		return data, nil
	}
	if f.decrypt == nil {
		return nil, fmt.Errorf("is encrypted with SOPS, and the app has no decryption: set decryption.secretRef: %w", ErrKeys)
	}
	plain, secrets, err := f.decrypt(in, data)
	f.secrets = append(f.secrets, secrets...)
	return plain, err
}
