// Package decrypt reads the files of a repository, some of which SOPS has encrypted (https://github.com/getsops/sops). The package
// recognizes encrypted files; a Decrypter decrypts them. Package sops makes a Decrypter with SOPS' library. This package does not link that
// library, because it brings the clients of five clouds.
package decrypt

import (
	"errors"
	"fmt"
	"io/fs"
)

var (
	// ErrKeys is wrapped by errors that say that the given keys do not decrypt a file, or are invalid.
	ErrKeys = errors.New("cannot be decrypted")
	// ErrDamaged is wrapped by errors that say that a file was changed after it was encrypted, or cannot be parsed.
	ErrDamaged = errors.New("damaged")
	// ErrService is wrapped by errors of a key service, such as AWS KMS: it did not answer, or refused. A retry may succeed.
	ErrService = errors.New("no key service decrypted it")
)

// Decrypter decrypts a file that SOPS encrypted, and returns the values that were encrypted in it. Its errors wrap ErrKeys, ErrDamaged or
// ErrService, do not name the file, and contain neither a decrypted value nor a key.
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

// Open returns a file system that decrypts files. Without a Decrypter, reading an encrypted file is an error: applying it undecrypted would
// overwrite a working object with ciphertext.
func Open(files fs.FS, decrypt Decrypter) *Files { return &Files{files: files, decrypt: decrypt} }

// Secrets returns the values that were decrypted so far.
func (f *Files) Secrets() []string { return f.secrets }

// ReadFile reads a file and decrypts it by its extension: .yaml and .yml, .json, .env, .ini; the whole file as one value for any other
// extension. Errors do not name the file.
func (f *Files) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(f.files, name)
	if err != nil {
		return nil, err
	}
	return f.decrypted(formatOf(name, data), data)
}

// Manifest decrypts an object that is encoded as JSON. Errors name it by name.
func (f *Files) Manifest(name string, data []byte) ([]byte, error) {
	plain, err := f.decrypted(JSON, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plain, nil
}

// Open is refused, because the file would not be decrypted.
func (f *Files) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// Stat describes a file. It does not follow links.
func (f *Files) Stat(name string) (fs.FileInfo, error) { return fs.Lstat(f.files, name) }

// ReadDir lists a folder.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.files, name) }

func (f *Files) decrypted(in Format, data []byte) ([]byte, error) {
	if !encrypted(in, data) {
		return data, nil
	}
	if f.decrypt == nil {
		return nil, fmt.Errorf("is encrypted with SOPS, and the app has no decryption: set it in app.yaml, with provider sops: %w", ErrKeys)
	}
	plain, secrets, err := f.decrypt(in, data)
	f.secrets = append(f.secrets, secrets...)
	return plain, err
}
