package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	fetched "github.com/kubeop/kubeop/delivery/fetch/git"
)

// Branch is the branch of a server to which the current branch of a clone is pushed. Commits are made and pushed with the person's identity,
// signing key and credentials; the work tree and the branch of the clone stay as they are. It implements commit.Branch.
type Branch struct {
	// Remote is the name of the remote in the clone, and Branch that of the branch there.
	Remote, Branch string

	root, objects string
}

// Line runs a command in a folder and returns the first line that it prints.
func Line(ctx context.Context, folder string, args ...string) (string, error) {
	out, err := Run(ctx, folder, args...)
	line, _, _ := strings.Cut(out, "\n")
	return line, err
}

// Upstream returns the branch to which the current branch of a clone is pushed, and the path of the folder within the clone.
func Upstream(ctx context.Context, dir string) (b *Branch, prefix string, err error) {
	b = &Branch{}
	if b.root, err = Line(ctx, dir, "rev-parse", "--show-toplevel"); err != nil {
		return nil, "", fmt.Errorf("%s is in no clone of a repository: %w", dir, err)
	}
	if prefix, err = Line(ctx, dir, "rev-parse", "--show-prefix"); err != nil {
		return nil, "", err
	}
	if b.objects, err = Line(ctx, b.root, "rev-parse", "--path-format=absolute", "--git-common-dir"); err != nil {
		return nil, "", err
	}
	local, err := Line(ctx, b.root, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return nil, "", errors.New("no branch is checked out, so it is not known where to push: git switch main")
	}
	b.Remote, _ = Line(ctx, b.root, "config", "branch."+local+".remote")
	merge, _ := Line(ctx, b.root, "config", "branch."+local+".merge")
	b.Branch = strings.TrimPrefix(merge, "refs/heads/")
	if b.Remote == "" || b.Remote == "." || b.Branch == "" {
		return nil, "", fmt.Errorf("the branch %s has no upstream, so it is not known where to push: git push -u origin %s", local, local)
	}
	return b, strings.TrimSuffix(prefix, "/"), nil
}

// Name implements commit.Branch.
func (b *Branch) Name() string { return b.Remote + "/" + b.Branch }

// tracking is the ref of the branch in the clone.
func (b *Branch) tracking() string { return "refs/remotes/" + b.Remote + "/" + b.Branch }

// Fetch implements commit.Branch.
func (b *Branch) Fetch(ctx context.Context) (fetched.Commit, error) {
	_, err := Run(ctx, b.root, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", b.Remote, "+refs/heads/"+b.Branch+":"+b.tracking())
	if err != nil {
		return fetched.Commit{}, err
	}
	return b.Commit(ctx, b.tracking())
}

// Seen returns the files that the person saw: those of the newest commit of the branch that is in the clone's own branch. Nil if there is none.
func (b *Branch) Seen(ctx context.Context) (*folder.Folder, error) {
	base, err := Line(ctx, b.root, "merge-base", "HEAD", b.tracking())
	if err != nil {
		return nil, nil // Unrelated or cut histories have no common commit.
	}
	commit, err := b.Commit(ctx, base)
	return commit.Root, err
}

// Commit reads a commit of the clone.
func (b *Branch) Commit(ctx context.Context, ref string) (fetched.Commit, error) {
	line, err := Line(ctx, b.root, "log", "-1", "--format=%H %T", "--end-of-options", ref, "--")
	if err != nil {
		return fetched.Commit{}, err
	}
	hash, tree, _ := strings.Cut(line, " ")
	return fetched.Commit{Hash: hash, Revision: b.Branch + "@sha1:" + hash, Root: folder.Local(b.objects, tree)}, nil
}

// Messages implements commit.Branch.
func (b *Branch) Messages(ctx context.Context, commit fetched.Commit, since string, most int) (map[string]string, error) {
	args := []string{"log", "-z", "--no-show-signature", "--format=%H%n%B", "--max-count=" + strconv.Itoa(most), commit.Hash}
	if since != "" {
		args = append(args, "^"+since)
	}
	out, err := Run(ctx, b.root, append(args, "--")...)
	if err != nil {
		return nil, err
	}
	messages := map[string]string{}
	for out != "" {
		var one string
		one, out, _ = strings.Cut(out, "\x00")
		hash, message, _ := strings.Cut(one, "\n")
		messages[hash] = message
	}
	return messages, nil
}

// Push implements commit.Branch.
func (b *Branch) Push(ctx context.Context, p fetched.Proposed) ([]string, error) {
	var pack bytes.Buffer
	if err := p.Draft.Pack(&pack); err != nil {
		return nil, err
	}
	if _, err := pipe(ctx, b.root, &pack, "unpack-objects", "-q"); err != nil {
		return nil, err
	}
	hashes := []string{p.Upon.Hash}
	for _, c := range p.Draft.Commits {
		hash, err := b.commit(ctx, c, hashes[len(hashes)-1])
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, hash)
	}
	return hashes[1:], b.send(ctx, p, hashes[len(hashes)-1])
}

// commit makes a commit upon another.
func (b *Branch) commit(ctx context.Context, c draft.Commit, upon string) (hash string, err error) {
	args := []string{"commit-tree", c.Tree, "-p", upon, "-F", "-"}
	if signs, _ := Line(ctx, b.root, "config", "--type=bool", "commit.gpgsign"); signs == "true" {
		args = append(args, "-S")
	}
	out, err := pipe(ctx, b.root, strings.NewReader(c.Message), args...)
	return strings.TrimSpace(out), err
}

// send pushes a commit, and those that lead to it.
func (b *Branch) send(ctx context.Context, p fetched.Proposed, hash string) error {
	to := "refs/heads/" + p.Branch
	args := []string{"push", "--quiet", b.Remote, hash + ":" + to}
	if p.New {
		args = append(args, "--force-with-lease="+to+":") // It must not exist.
	}
	_, refusal := Run(ctx, b.root, args...)
	if refusal == nil || p.New {
		return refusal
	}
	now, err := b.Fetch(ctx)
	switch {
	case err != nil:
		return refusal
	case now.Hash == hash:
		return nil
	case now.Hash != p.Upon.Hash:
		return fetched.ErrMoved
	}
	return failure.Because(fetched.ErrRefused, refusal, "%s", refusal)
}

// URL returns the URL of the remote.
func (b *Branch) URL(ctx context.Context) (string, error) { return urlOf(ctx, b.root, b.Remote) }

// urlOf returns the URL of a remote. The form user@host:path is written as ssh://user@host/path.
func urlOf(ctx context.Context, folder, remote string) (string, error) {
	at, err := Line(ctx, folder, "remote", "get-url", "--push", remote)
	if err != nil {
		return "", err
	}
	if user, path, scp := strings.Cut(at, ":"); scp && !strings.Contains(at, "://") && !strings.HasPrefix(path, "/") {
		return "ssh://" + user + "/" + path, nil
	}
	return at, nil
}

// Credentials returns the user and the token with which Git reaches a host over HTTPS, from the person's credential helpers.
func Credentials(ctx context.Context, at string) (user, token string, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", "", fmt.Errorf("the URL of the remote cannot be used: %w", err)
	}
	if password, has := u.User.Password(); has {
		return u.User.Username(), password, nil
	}
	protocol, host := "https", u.Hostname()
	if u.Scheme == "http" || u.Scheme == "https" {
		protocol, host = u.Scheme, u.Host
	}
	out, err := pipe(ctx, ".", strings.NewReader("protocol="+protocol+"\nhost="+host+"\n\n"), "credential", "fill")
	if err != nil {
		return "", "", fmt.Errorf("there are no Git credentials for %s: %w", host, err)
	}
	for line := range strings.Lines(out) {
		switch key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "="); key {
		case "username":
			user = value
		case "password":
			token = value
		}
	}
	return user, token, nil
}
