package stage

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
)

// Repository is a repository on the cluster's Git server, and a clone to change it through.
type Repository struct {
	Name string
	// URL is the address for the host, and OperatorURL that for the operator.
	URL, OperatorURL string
	User, Password   string
	// Dir is the clone. Push commits and pushes its changes.
	Dir string

	askpass string
}

// CreateRepository creates a private repository with one user. The Git server reports its pushes to the operator's hook with the given key.
// With an empty key the repository is public and has no hook.
func (s *Stage) CreateRepository(ctx context.Context, name, hookKey string) (*Repository, error) {
	r := &Repository{
		Name: name, URL: s.Cluster.Git.Host + "/" + name + ".git", OperatorURL: s.GitURL() + "/" + name + ".git",
		User: "dev", Password: rand.Text(), Dir: s.Path("repositories", name), askpass: s.Path("askpass"),
	}
	args := []string{"repo", "create", name, "--dir", s.clusterDir(), "--user", r.User, "--password", r.Password}
	if hookKey == "" {
		args = append(args, "--public")
	} else {
		args = append(args, "--webhook", s.HookURL(name), "--webhook-secret", hookKey)
	}
	if _, err := run(ctx, nil, s.bin.cluster, args...); err != nil {
		return nil, err
	}
	// Git gets the user name and the password from this script. They are in its environment, not in an argument or a file.
	const answer = "#!/bin/sh\ncase \"$1\" in Username*) echo \"$STAGE_USER\" ;; *) echo \"$STAGE_PASSWORD\" ;; esac\n"
	// Write it once: a file cannot be written while it is executed.
	s.askpass.Do(func() { s.askpassFailed = os.WriteFile(r.askpass, []byte(answer), 0o700) })
	if s.askpassFailed != nil {
		return nil, fmt.Errorf("writing the password helper: %w", s.askpassFailed)
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the clone of %s: %w", name, err)
	}
	if err := r.git(ctx, "init", "--quiet", "--initial-branch", "main"); err != nil {
		return nil, err
	}
	return r, r.git(ctx, "remote", "add", "origin", r.URL)
}

// GitURL is the operator's address for repositories.
func (s *Stage) GitURL() string {
	if s.inPods {
		return s.Cluster.Git.Pods
	}
	return s.Cluster.Git.Host
}

// HookURL is the hook address for the Git server, which is a process of the host.
func (s *Stage) HookURL(repository string) string {
	return "http://" + s.hookHost + "/hook/" + repository
}

// Write writes a file of the clone.
func (r *Repository) Write(name string, content []byte) error {
	path := filepath.Join(r.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", name, err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// Read returns a file of the clone.
func (r *Repository) Read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.Dir, filepath.FromSlash(name)))
}

// Remove removes a file or folder from the clone.
func (r *Repository) Remove(name string) error {
	return os.RemoveAll(filepath.Join(r.Dir, filepath.FromSlash(name)))
}

// Push commits what changed in the clone and pushes it.
func (r *Repository) Push(ctx context.Context, message string) error {
	for _, args := range [][]string{
		{"add", "--all"}, {"commit", "--quiet", "--allow-empty", "--message", message}, {"push", "--quiet", "--set-upstream", "origin", "main"},
	} {
		if err := r.git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Git runs git in the clone, without the user's own configuration, and returns what it printed.
func (r *Repository) Git(ctx context.Context, args ...string) (string, error) {
	out, err := run(ctx, r.env(), "git", append([]string{"-C", r.Dir}, args...)...)
	if err != nil {
		return "", fmt.Errorf("repository %s: git %s: %w", r.Name, args[0], err)
	}
	return out, nil
}

func (r *Repository) git(ctx context.Context, args ...string) error {
	_, err := r.Git(ctx, args...)
	return err
}

func (r *Repository) env() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=" + r.askpass,
		"STAGE_USER=" + r.User, "STAGE_PASSWORD=" + r.Password,
		"GIT_AUTHOR_NAME=dev", "GIT_AUTHOR_EMAIL=dev@acme.example", "GIT_COMMITTER_NAME=dev", "GIT_COMMITTER_EMAIL=dev@acme.example",
	}
}
