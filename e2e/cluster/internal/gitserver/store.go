// Package gitserver serves Git repositories over smart HTTP with basic authentication per repository, and calls a
// webhook after every push.
package gitserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// Store is the directory with the bare repositories, and the file with the permissions of users. The server and the command line share it
// without communication, because the server notices each change of the file.
type Store struct{ dir string }

// Repository is the entry of one repository in the file.
type Repository struct {
	// Public means that everyone may read the repository.
	Public bool `json:"public"`
	// Users are the users who may read and write, with their salted password hashes.
	Users map[string]string `json:"users,omitempty"`
	// Webhook is the URL that is called after every push, if set, with {name} replaced by the repository's name. WebhookSecret signs the calls.
	Webhook       string `json:"webhook,omitempty"`
	WebhookSecret string `json:"webhookSecret,omitempty"`
}

// AdminUser may read and write every repository.
const AdminUser = "admin"

// access is the content of the file.
type access struct {
	Admin        string                `json:"admin"`
	Repositories map[string]Repository `json:"repositories"`
}

// namePattern allows one or two segments of lower case letters, digits, dots, dashes and underscores. A segment is not empty and does not begin
// with a dot, so a path with a name is always in the directory.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)?$`)

// CheckName returns an error if a repository may not have the name.
func CheckName(name string) error {
	if !namePattern.MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".git") ||
		strings.Contains(name, ".git/") {
		return fmt.Errorf("repository name %q: use lower case letters, digits, dots, dashes and at most one slash", name)
	}
	return nil
}

// Open returns the store in dir.
func Open(dir string) *Store { return &Store{dir: dir} }

// Init creates the store with the administrator's password.
func (s *Store) Init(password string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("making the Git server's directory: %w", err)
	}
	return s.change(func(a *access) { a.Admin = hash(password) })
}

// Path returns the bare repository's directory.
func (s *Store) Path(name string) string { return filepath.Join(s.dir, "repositories", name+".git") }

// Wanted are the properties of the repositories that Create creates.
type Wanted struct {
	Repository
	// User and Password are those of a user who may read and write. They are optional.
	User, Password string
	// From is the path of a bare repository to copy. With "" the repositories are empty.
	From string
}

// Create creates repositories, or changes existing ones: it adds users, and replaces other properties that are given. The server serves the new
// names when all repositories exist.
func (s *Store) Create(wanted Wanted, names ...string) error {
	for _, name := range names {
		if err := s.make(name, wanted.From); err != nil {
			return err
		}
	}
	return s.change(func(a *access) {
		for _, name := range names {
			a.Repositories[name] = wanted.onto(a.Repositories[name])
		}
	})
}

// make creates the bare repository. It does not change an existing one, unless it is to be a copy.
func (s *Store) make(name, from string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if from != "" {
		if err := os.CopyFS(s.Path(name), os.DirFS(from)); err != nil {
			return fmt.Errorf("making repository %s: %w", name, err)
		}
		return nil
	}
	command := exec.Command("git", "init", "--quiet", "--bare", "--initial-branch=main", s.Path(name))
	command.Env = append(os.Environ(), environment()...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("making repository %s: %w: %s", name, err, out)
	}
	return nil
}

func (w Wanted) onto(repository Repository) Repository {
	repository.Public = w.Public
	if w.Webhook != "" {
		repository.Webhook, repository.WebhookSecret = w.Webhook, w.WebhookSecret
	}
	if repository.Users == nil {
		repository.Users = map[string]string{}
	}
	if w.User != "" {
		repository.Users[w.User] = hash(w.Password)
	}
	return repository
}

// Delete removes the repository's content, but not its users, so that they get the answer that it does not exist instead of a request for a
// password.
func (s *Store) Delete(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.RemoveAll(s.Path(name)); err != nil {
		return fmt.Errorf("deleting repository %s: %w", name, err)
	}
	return nil
}

// List returns the repositories by name.
func (s *Store) List() (map[string]Repository, error) {
	a, err := s.read()
	return a.Repositories, err
}

// environment returns an environment for Git without the configuration of the user who runs the cluster.
func environment() []string {
	return []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"}
}

func (s *Store) file() string { return filepath.Join(s.dir, "access.json") }

func (s *Store) read() (access, error) {
	a := access{Repositories: map[string]Repository{}}
	data, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("reading who may use the repositories: %w", err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("parsing %s: %w", s.file(), err)
	}
	return a, nil
}

// changing serializes changes within this process. The file lock does so between processes.
var changing sync.Mutex

func (s *Store) change(apply func(*access)) error {
	changing.Lock()
	defer changing.Unlock()
	lock, err := os.OpenFile(s.file()+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("opening the Git server's lock: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking the Git server's users: %w", err)
	}
	a, err := s.read()
	if err != nil {
		return err
	}
	apply(&a)
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the Git server's users: %w", err)
	}
	if err := os.WriteFile(s.file()+".next", data, 0o600); err != nil {
		return fmt.Errorf("writing the Git server's users: %w", err)
	}
	return os.Rename(s.file()+".next", s.file())
}

// hash returns salt and digest. It is fast, because passwords are checked on every request and protect only a temporary cluster.
func hash(password string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt)
	return hex.EncodeToString(salt) + "$" + digest(salt, password)
}

func matches(stored, password string) bool {
	salt, want, ok := strings.Cut(stored, "$")
	raw, err := hex.DecodeString(salt)
	return ok && err == nil && subtle.ConstantTimeCompare([]byte(digest(raw, password)), []byte(want)) == 1
}

func digest(salt []byte, password string) string {
	sum := sha256.Sum256(append(salt, password...))
	return hex.EncodeToString(sum[:])
}
