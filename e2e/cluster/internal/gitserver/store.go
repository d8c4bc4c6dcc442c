// Package gitserver serves Git repositories over smart HTTP with basic authentication per repository, and tells a
// webhook about every push.
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

// Store is the directory with the bare repositories and the file that says who may use them. The server and the
// command line share it without talking to each other: the file is read anew for every request.
type Store struct{ dir string }

// Repository is what the file says about one repository.
type Repository struct {
	// Public repositories may be read by anybody.
	Public bool `json:"public"`
	// Users maps the names of those who may read and write to their salted password hashes.
	Users map[string]string `json:"users,omitempty"`
	// Webhook is called after every push when set, with {name} replaced by the repository's name; WebhookSecret signs the calls.
	Webhook       string `json:"webhook,omitempty"`
	WebhookSecret string `json:"webhookSecret,omitempty"`
}

// AdminUser may read and write every repository.
const AdminUser = "admin"

// access is the file's content.
type access struct {
	Admin        string                `json:"admin"`
	Repositories map[string]Repository `json:"repositories"`
}

// namePattern allows one or two segments of lower case letters, digits, dots, dashes and underscores. No segment can be
// empty or begin with a dot, so a name never leaves the directory.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)?$`)

// CheckName returns an error for a name no repository can have.
func CheckName(name string) error {
	if !namePattern.MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".git") ||
		strings.Contains(name, ".git/") {
		return fmt.Errorf("repository name %q: use lower case letters, digits, dots, dashes and at most one slash", name)
	}
	return nil
}

// Open returns the store in dir.
func Open(dir string) *Store { return &Store{dir: dir} }

// Init makes the store with the administrator's password.
func (s *Store) Init(password string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("making the Git server's directory: %w", err)
	}
	return s.change(func(a *access) { a.Admin = hash(password) })
}

// Path is the bare repository's directory.
func (s *Store) Path(name string) string { return filepath.Join(s.dir, "repositories", name+".git") }

// Wanted is what Create makes of each name.
type Wanted struct {
	Repository
	// User and Password are of somebody who may read and write, where given.
	User, Password string
	// From is a bare repository to copy; "" makes empty ones.
	From string
}

// Create makes repositories, or changes existing ones: users are added, the rest is replaced when given. The names are known to
// the server when all are there.
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

// make makes the bare repository; one that is there and not to be a copy stays as it is.
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

// Delete removes the repository's content. Its users stay known, so that they are told that it does not exist instead
// of being asked for a password.
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

// environment keeps the configuration of whoever runs the cluster away from the served repositories.
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

// changing orders changes within the process, the file lock those between processes.
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

// hash returns salt and digest. The passwords are those of a throw-away cluster and are checked on every request, so a
// slow hash would only slow every fetch down.
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
