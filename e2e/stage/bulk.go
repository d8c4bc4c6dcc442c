package stage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// CreateCopies creates many private repositories with the content and user of a clone, without a push for each. The Git server reports pushes
// to the operator's hook, with the repository's own name and the same key for all.
func (s *Stage) CreateCopies(ctx context.Context, of *Repository, hookKey string, names ...string) error {
	bare := s.Path("repositories", of.Name+"-bare")
	if err := of.git(ctx, "clone", "--quiet", "--bare", "--template=", of.Dir, bare); err != nil {
		return err
	}
	args := []string{"repo", "create", "--dir", s.clusterDir(), "--user", of.User, "--password", of.Password, "--from", bare,
		"--webhook", s.HookURL("{name}"), "--webhook-secret", hookKey}
	_, err := run(ctx, nil, s.bin.cluster, append(args, names...)...)
	return err
}

// Commits is a stream of commits for Import, in the format of git fast-import.
type Commits struct{ bytes.Buffer }

// Commit begins a commit on a branch. If from is not empty, that commit is its parent.
func (c *Commits) Commit(branch, from, message string) {
	_, _ = fmt.Fprintf(c, "commit refs/heads/%s\ncommitter dev <dev@acme.example> now\ndata %d\n%s\n", branch, len(message), message)
	if from != "" {
		_, _ = fmt.Fprintf(c, "from %s\n", from)
	}
}

// File adds or replaces a file in the last begun commit.
func (c *Commits) File(name string, content []byte) {
	_, _ = fmt.Fprintf(c, "M 100644 inline %s\ndata %d\n", name, len(content))
	_, _ = c.Write(content)
	_ = c.WriteByte('\n')
}

// Remove removes a file or a folder in the last begun commit.
func (c *Commits) Remove(name string) { _, _ = fmt.Fprintf(c, "D %s\n", name) }

// Done ends the stream.
func (c *Commits) Done() *Commits {
	_, _ = c.WriteString("done\n")
	return c
}

// Import adds the commits to the clone with git fast-import, whose cost depends only on what they change. It does not change the work tree.
func (r *Repository) Import(ctx context.Context, commits io.Reader) error {
	command := exec.CommandContext(ctx, "git", "-C", r.Dir, "fast-import", "--quiet", "--force", "--done", "--date-format=now")
	command.Env = append(os.Environ(), r.env()...)
	command.Stdin = commits
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("repository %s: git fast-import: %w: %s", r.Name, err, out)
	}
	return nil
}

// PushRef pushes a reference of the clone as main to a repository of the same user.
func (r *Repository) PushRef(ctx context.Context, ref, url string) error {
	return r.git(ctx, "push", "--quiet", url, ref+":refs/heads/main")
}
