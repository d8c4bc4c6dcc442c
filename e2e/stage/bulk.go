package stage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// CreateCopies makes many private repositories whose content and user are those of a clone, without a push for each. Pushes
// to each are reported to the operator's hook of its name, all under the same key.
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

// Commits is a stream of commits for Import.
type Commits struct{ bytes.Buffer }

// Commit begins a commit on a branch, after another one where from names it.
func (c *Commits) Commit(branch, from, message string) {
	_, _ = fmt.Fprintf(c, "commit refs/heads/%s\ncommitter dev <dev@acme.example> now\ndata %d\n%s\n", branch, len(message), message)
	if from != "" {
		_, _ = fmt.Fprintf(c, "from %s\n", from)
	}
}

// File adds or replaces a file in the commit that was begun last.
func (c *Commits) File(name string, content []byte) {
	_, _ = fmt.Fprintf(c, "M 100644 inline %s\ndata %d\n", name, len(content))
	_, _ = c.Write(content)
	_ = c.WriteByte('\n')
}

// Remove removes a file or a folder in the commit that was begun last.
func (c *Commits) Remove(name string) { _, _ = fmt.Fprintf(c, "D %s\n", name) }

// Done ends the stream.
func (c *Commits) Done() *Commits {
	_, _ = c.WriteString("done\n")
	return c
}

// Import has git fast-import read commits into the clone, which costs what they change. The files of the clone stay as they are.
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
