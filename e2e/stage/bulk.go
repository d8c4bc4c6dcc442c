package stage

import (
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
		"--webhook", s.hookURL("{name}"), "--webhook-secret", hookKey}
	_, err := run(ctx, nil, s.bin.cluster, append(args, names...)...)
	return err
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
