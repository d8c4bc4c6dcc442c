// Package decrypt reads files that SOPS encrypted (https://github.com/getsops/sops), with the age and OpenPGP keys it is
// handed and nothing else: what a file says of KMS, Vault or other services is not looked at. It is an implementation of
// its own, because each store of SOPS' library links the clients of five clouds.
//
// Every value is AES-256-GCM, bound to its place in the file; the file as a whole is bound by its MAC, which is always
// verified. No error ever holds a decrypted value or a key.
package decrypt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	// ErrKeys is wrapped by errors that say the keys at hand do not decrypt a file, or are no keys.
	ErrKeys = errors.New("cannot be decrypted")
	// ErrDamaged is wrapped by errors that say a file was changed after it was encrypted, or cannot be read.
	ErrDamaged = errors.New("damaged")
)

// Limits of what a file may make the operator do.
const (
	// maxDepth is how deep mappings and lists may hold each other in an encrypted file.
	maxDepth = 100
	// maxRecipients is how many keys of one kind a file may be encrypted for, in all its key groups together.
	maxRecipients = 64
	// maxGroups is how many key groups a file may have.
	maxGroups = 64
	// maxKeys is how many private keys a Secret may hold: each is tried on each data key.
	maxKeys = 64
	// maxTries is how often a private key is tried for all files of one app together: each key on each encrypted form of a data
	// key that it may fit. A file holds several of these for each recipient, if its author wants.
	maxTries = 5000
	// maxINILines is how many lines an INI file may have: the library looks through all keys of a section for each new one.
	maxINILines = 10_000
	// maxRegex is the length in bytes of a regular expression that says what is encrypted. Compiled it takes hundreds of times
	// as much memory.
	maxRegex = 1024
)

// Files is a repository whose encrypted files are read decrypted. The sizes of files are those of the encrypted ones,
// which are larger. It is for one reading at a time.
type Files struct {
	files   fs.FS
	keys    *Keys
	tries   int
	secrets []string
}

var (
	_ fs.ReadFileFS = (*Files)(nil)
	_ fs.ReadDirFS  = (*Files)(nil)
	_ fs.StatFS     = (*Files)(nil)
)

// Open returns the files decrypted with the keys. Without keys, reading a file that is encrypted is an error: applied as it
// is, it would overwrite what works with ciphertext.
func Open(files fs.FS, keys *Keys) *Files { return &Files{files: files, keys: keys} }

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
	plain, err := f.decrypted(jsonFormat, data)
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

func (f *Files) decrypted(in format, data []byte) ([]byte, error) {
	if !mayBeEncrypted(data) {
		return data, nil
	}
	documents, about, err := in.read(data)
	if about == nil && (err == nil || !claimed.Match(data)) {
		return data, nil // Whoever reads it says what is wrong.
	}
	if f.keys == nil {
		return nil, fmt.Errorf("is encrypted with SOPS, and the app has no decryption: set decryption.secretRef: %w", ErrKeys)
	}
	if errors.Is(err, ErrDamaged) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("is encrypted with SOPS, but not as a file of its extension, or was changed since: %w", ErrDamaged)
	}
	plain, err := f.open(documents, about)
	if err != nil {
		return nil, err
	}
	text, err := in.emit(plain)
	if err != nil {
		return nil, fmt.Errorf("writing what was decrypted: %w", err)
	}
	return text, nil
}

// mayBeEncrypted is a quick look: the MAC of an encrypted file is itself encrypted.
func mayBeEncrypted(data []byte) bool {
	return bytes.Contains(data, []byte(`sops`)) && bytes.Contains(data, []byte(opening))
}

// claimed finds the metadata of SOPS in any format.
var claimed = regexp.MustCompile(`(?m)^(sops:|sops_mac=|\[sops\]|[\s{]*"sops"\s*:)`)

// open decrypts the documents of a file and verifies its MAC.
func (f *Files) open(documents []mapping, about *metadata) ([]mapping, error) {
	rule, err := about.rule()
	if err != nil {
		return nil, err
	}
	key, err := f.dataKey(about)
	if err != nil {
		return nil, err
	}
	o := newOpener(key, rule, about.macOnlyEncrypted())
	for i, document := range documents {
		plain, err := o.mapping(document, nil, false)
		if err != nil {
			return nil, err
		}
		documents[i] = plain
	}
	if err := o.verify(about); err != nil {
		return nil, err
	}
	f.secrets = append(f.secrets, o.secrets...)
	return documents, nil
}

// try counts tries, and says whether they may be made.
func (f *Files) try(n int) bool {
	f.tries = min(f.tries+n, maxTries+1)
	return f.tries <= maxTries
}

// formatOf is the format of a file by its extension. An .ini file may also have been encrypted as one value.
func formatOf(name string, data []byte) format {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml":
		return yamlFormat
	case ".json":
		return jsonFormat
	case ".env":
		return envFormat
	case ".ini":
		if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			return iniFormat
		}
	}
	return binaryFormat
}
