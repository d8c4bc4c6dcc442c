package gitserver

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Server answers Git's smart HTTP protocol with Git's own http-backend.
type Server struct {
	store  *Store
	git    string
	log    *log.Logger
	hook   *webhook
	pushes sync.Map // repository name → *sync.Mutex

	advertised advertisements
	access     accessCache
}

// operations are the requests of the smart protocol. Other paths below a repository are not served, such as its files for the dumb protocol.
var operations = []string{"/info/refs", "/git-upload-pack", "/git-receive-pack"}

// NewServer returns the server of a store. It writes one line to out for each refused request and each webhook call.
func NewServer(store *Store, out io.Writer) (*Server, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("the Git server needs git: %w", err)
	}
	logger := log.New(out, "", log.LstdFlags)
	return &Server{store: store, git: git, log: logger, hook: newWebhook(logger), advertised: advertisements{known: map[[2]string]advertisement{}}}, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, operation, ok := parsePath(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	a, err := s.access.read(s.store)
	if err != nil {
		s.log.Print(err)
		http.Error(w, "the Git server cannot read its users", http.StatusInternalServerError)
		return
	}
	repository, exists := a.Repositories[name]
	user, allowed := authenticate(a, repository, r)
	writes := operation == "/git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"
	if !allowed && (writes || !repository.Public) {
		s.log.Printf("refused %s %s to %q", r.Method, r.URL.Path, user)
		w.Header().Set("WWW-Authenticate", `Basic realm="cluster"`)
		http.Error(w, "user name and password of this repository, please", http.StatusUnauthorized)
		return
	}
	if !exists {
		http.NotFound(w, r)
		return
	}
	if operation == "/git-receive-pack" {
		s.push(w, r, name, user, repository)
		return
	}
	if operation == "/info/refs" && r.URL.RawQuery == "service=git-upload-pack" {
		s.advertise(w, r, name, user)
		return
	}
	s.backend(w, r, user)
}

// parsePath splits /NAME.git/OPERATION. ok is false for invalid names and unknown operations.
func parsePath(path string) (name, operation string, ok bool) {
	name, operation, ok = strings.Cut(strings.TrimPrefix(path, "/"), ".git/")
	if !ok || CheckName(name) != nil {
		return "", "", false
	}
	for _, known := range operations {
		if operation = "/" + strings.TrimPrefix(operation, "/"); operation == known {
			return name, operation, true
		}
	}
	return "", "", false
}

// authenticate returns the user's name, and whether the user may access the repository. Only the administrator learns that a repository does not
// exist; all others get the answer for a wrong password.
func authenticate(a access, repository Repository, r *http.Request) (user string, ok bool) {
	user, password, given := r.BasicAuth()
	if !given {
		return "", false
	}
	if user == AdminUser && matches(a.Admin, password) {
		return user, true
	}
	stored, known := repository.Users[user]
	return user, known && matches(stored, password)
}

// push serves one push and then calls the webhook with the changed references. It serves one push to a repository at a time, so that the
// comparison of references before and after contains only this push.
func (s *Server) push(w http.ResponseWriter, r *http.Request, name, user string, repository Repository) {
	lock, _ := s.pushes.LoadOrStore(name, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	before, err := s.references(name)
	if err != nil {
		s.log.Print(err)
	}
	s.backend(w, r, user)
	after, err := s.references(name)
	if err != nil {
		s.log.Print(err)
		return
	}
	if repository.Webhook != "" {
		s.hook.notify(repository, name, changes(before, after))
	}
}

// backend serves the request with git http-backend.
func (s *Server) backend(w http.ResponseWriter, r *http.Request, user string) {
	if len(r.TransferEncoding) > 0 {
		// Git sends packs of more than a megabyte in chunks, and CGI needs to know the length beforehand.
		spooled, err := spool(r)
		if err != nil {
			s.log.Print(err)
			http.Error(w, "the Git server cannot store the request", http.StatusInternalServerError)
			return
		}
		defer spooled.Close()
	}
	handler := &cgi.Handler{
		Path: s.git, Args: []string{"http-backend"}, Dir: s.store.dir, Stderr: s.log.Writer(), Logger: s.log,
		Env: append(environment(),
			"GIT_PROJECT_ROOT="+filepath.Join(s.store.dir, "repositories"),
			"GIT_HTTP_EXPORT_ALL=1",
			"REMOTE_USER="+user, // http-backend permits pushes only to authenticated users
		),
	}
	handler.ServeHTTP(w, r)
}

// spool replaces a chunked body by an unlinked file of known length.
func spool(r *http.Request) (*os.File, error) {
	file, err := os.CreateTemp("", "push-")
	if err != nil {
		return nil, fmt.Errorf("spooling a push: %w", err)
	}
	_ = os.Remove(file.Name())
	length, err := io.Copy(file, r.Body)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("spooling a push: %w", err)
	}
	r.Body, r.ContentLength, r.TransferEncoding = file, length, nil
	return file, nil
}

// references returns the repository's references and the objects at which they point.
func (s *Server) references(name string) (map[string]string, error) {
	command := exec.Command(s.git, "--git-dir="+s.store.Path(name), "for-each-ref", "--format=%(refname) %(objectname)")
	command.Env = append(os.Environ(), environment()...)
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("reading the references of %s: %w", name, err)
	}
	references := map[string]string{}
	for line := range strings.Lines(string(out)) {
		ref, object, _ := strings.Cut(strings.TrimSpace(line), " ")
		references[ref] = object
	}
	return references, nil
}
