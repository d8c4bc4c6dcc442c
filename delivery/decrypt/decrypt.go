// Package decrypt reads the files of a repository, some of which SOPS has encrypted (https://github.com/getsops/sops). The package
// recognizes encrypted files; a Decrypter decrypts them. Package sops makes a Decrypter with SOPS' library. This package does not link that
// library, because it brings the clients of five clouds.
package decrypt

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

var (
	// ErrKeys is wrapped by errors that say that the given keys do not decrypt a file, or are invalid.
	ErrKeys = errors.New("cannot be decrypted")
	// ErrDamaged is wrapped by errors that say that a file was changed after it was encrypted, or cannot be parsed.
	ErrDamaged = errors.New("damaged")
	// ErrService is wrapped by errors of a key service, such as AWS KMS: it did not answer, or refused. A retry may succeed.
	ErrService = errors.New("no key service decrypted it")
)

// Decrypter decrypts a file that SOPS encrypted. Its errors wrap ErrKeys, ErrDamaged or ErrService, do not name the file, and contain neither a
// decrypted value nor a key.
type Decrypter func(in Format, data []byte) (Decrypted, error)

// Decrypted is a file after its decryption.
type Decrypted struct {
	Plain []byte
	// Secrets are the values that were encrypted in it.
	Secrets []string
	// Recipients are the age public keys for which it is encrypted.
	Recipients []string
}

// Files is a file system that decrypts encrypted files when they are read. The reported sizes are those of the encrypted files, which are
// larger. It is not safe for concurrent use.
type Files struct {
	files   fs.FS
	decrypt Decrypter
	secrets []string
	// opened has, by the name of each decrypted file, the age public keys for which it is encrypted.
	opened map[string][]string
}

var (
	_ fs.ReadFileFS = (*Files)(nil)
	_ fs.ReadDirFS  = (*Files)(nil)
	_ fs.StatFS     = (*Files)(nil)
)

// Open returns a file system that decrypts files. Without a Decrypter, reading an encrypted file is an error: applying it undecrypted would
// overwrite a working object with ciphertext.
func Open(files fs.FS, decrypt Decrypter) *Files {
	return &Files{files: files, decrypt: decrypt, opened: map[string][]string{}}
}

// Secrets returns the values that were decrypted so far.
func (f *Files) Secrets() []string { return f.secrets }

// NotFor returns the names of the files, and manifests, that were decrypted so far and are not encrypted for the age public key, in order.
func (f *Files) NotFor(recipient string) []string {
	var names []string
	for name, recipients := range f.opened {
		if !slices.Contains(recipients, recipient) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ReadFile reads a file and decrypts it by its extension: .yaml and .yml, .json, .env, .ini; the whole file as one value for any other
// extension. Errors do not name the file.
func (f *Files) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(f.files, name)
	if err != nil {
		return nil, err
	}
	return f.decrypted(name, formatOf(name, data), data)
}

// Manifest decrypts an object that is encoded as JSON. Errors name it by name.
func (f *Files) Manifest(name string, data []byte) ([]byte, error) {
	plain, err := f.decrypted(name, JSON, data)
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

func (f *Files) decrypted(name string, in Format, data []byte) ([]byte, error) {
	if !encrypted(in, data) {
		return data, nil
	}
	if f.decrypt == nil {
		return nil, fmt.Errorf("is encrypted with SOPS, and the app has no decryption: set it in app.yaml, with provider sops: %w", ErrKeys)
	}
	file, err := f.decrypt(in, data)
	f.secrets = append(f.secrets, file.Secrets...)
	if err == nil {
		f.opened[name] = file.Recipients
	}
	return file.Plain, err
}
