package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// Ancestry is how a commit relates to an earlier one, see Source.After.
type Ancestry struct {
	// Of is the hash of the earlier commit; "" when Source.After was not set.
	Of string
	// Descends: the earlier commit is an ancestor of this one, or this one itself. The hashes of the commits between them prove it, so the
	// server need not be trusted.
	Descends bool
	// Beyond names the limit at which the search ended without an answer; "" when neither commit descends from the other.
	Beyond string
}

// Earlier returns another commit of the same source from the store, by its revision, such as "main@sha1:<hash>". Its error is ErrNotFound
// when the store does not have the commit, or has it no longer.
func (c Commit) Earlier(revision string) (Commit, error) {
	label, hash, named := strings.Cut(revision, "@sha1:")
	if !named {
		label, hash = "", strings.TrimPrefix(revision, "sha1:")
	}
	if fullHash.MatchString(hash) && c.from != nil {
		if found, ok := c.from.commit(target{label: label, commit: plumbing.NewHash(hash)}); ok {
			return found, nil
		}
	}
	return Commit{}, failure.New(failure.ErrNotFound, "commit %s is not in the store", few.Quote(revision))
}

// examine finds out what src requests about the commit: whether it is signed, and whether it descends from src.After. If it may
// be held, the earlier commit is fetched into the store, if it is missing there and the server still has it.
func examine(ctx context.Context, from *remote, src Source, commit Commit) (Commit, error) {
	if src.Signers != nil {
		commit.Unsigned = commit.Verify(*src.Signers)
	}
	if src.After == "" {
		return commit, nil
	}
	if !fullHash.MatchString(src.After) {
		return Commit{}, failure.New(failure.ErrInvalid, "commit %q is not a full hash of 40 lower-case hexadecimal digits", few.Quote(src.After))
	}
	var err error
	if commit.Ancestry, err = commit.findAncestry(ctx, from, src); err != nil {
		return Commit{}, fmt.Errorf("comparing commit %s with %s: %w", commit.Hash, src.After, err)
	}
	if _, err := commit.Earlier("sha1:" + src.After); err != nil && (src.WithAfter || !commit.Ancestry.Descends || commit.Unsigned != nil) {
		commit.from.fetchEarlier(ctx, from, plumbing.NewHash(src.After))
	}
	return commit, nil
}

// findAncestry finds out whether a commit descends from src.After. If that is the commit itself or one of its parents, as after most pushes, no
// request is made. Otherwise the commits between the two are fetched, without their files if the server supports that, and deleted
// afterwards.
func (c Commit) findAncestry(ctx context.Context, from *remote, src Source) (Ancestry, error) {
	content, err := c.from.read(plumbing.CommitObject, plumbing.NewHash(c.Hash))
	if err != nil {
		return Ancestry{}, err
	}
	commit, err := decodeCommit(plumbing.NewHash(c.Hash), content)
	if err != nil {
		return Ancestry{}, err
	}
	if c.Hash == src.After || slices.Contains(commit.ParentHashes, plumbing.NewHash(src.After)) {
		return Ancestry{Of: src.After, Descends: true}, nil
	}
	if known, ok := c.from.lastAncestry(c.Hash, src.After); ok {
		return known, nil
	}
	found, err := c.from.search(ctx, from, src, c)
	if err == nil {
		c.from.rememberAncestry(c.Hash, found)
	}
	return found, err
}

// search fetches the commits that lead to this one and not to the earlier one, and looks for a path between the two.
func (r *repository) search(ctx context.Context, from *remote, src Source, commit Commit) (Ancestry, error) {
	answer := Ancestry{Of: src.After}
	earlier := plumbing.NewHash(src.After)
	err := r.walk(ctx, from, src, between{commit: commit.Hash, earlier: earlier, generations: r.limits.generations}, func(g *generation, newest plumbing.Hash) (err error) {
		answer.Descends, err = g.hasPath(newest, earlier)
		return err
	})
	if errors.Is(err, failure.ErrTooLarge) {
		answer.Beyond, err = err.Error(), nil
	}
	return answer, err
}

// between are a commit and an earlier one; zero: the first of the branch. At most that many generations are between them. filter leaves out
// files if the server supports it.
type between struct {
	commit      string
	earlier     plumbing.Hash
	generations int
	filter      bool
}

// walk fetches the commits between two, without their files if the server supports that, passes them to look, and deletes them afterwards.
func (r *repository) walk(ctx context.Context, from *remote, src Source, b between, look func(g *generation, newest plumbing.Hash) error) (err error) {
	for _, b.filter = range []bool{true, false} {
		if err = r.walkOnce(ctx, from, src, b, look); !errors.Is(err, errRefused) { // A server may support a filter but refuse to apply it.
			break
		}
	}
	return err
}

func (r *repository) walkOnce(ctx context.Context, from *remote, src Source, b between, look func(*generation, plumbing.Hash) error) error {
	bounded := *from
	bounded.limits.pack = min(bounded.limits.pack, bounded.limits.history)
	refs, err := bounded.open(ctx)
	if err != nil {
		return err
	}
	defer refs.Close()
	wanted, err := resolve(refs.advertised(), src.Ref)
	if err != nil {
		return err
	}
	if wanted.commit.String() != b.commit {
		return failure.New(ErrMoved, "the ref moved on to %s meanwhile", wanted.commit)
	}
	request, err := historyRequest(refs.advertised().Capabilities, wanted.want, b)
	if err != nil {
		return err
	}
	pack, err := refs.upload(ctx, request)
	if err != nil {
		return err
	}
	defer pack.Close()
	return r.readOnce(ctx, pack, "history of "+b.commit, func(g *generation) error { return look(g, wanted.commit) })
}

// historyRequest requests the commits that lead to want and not to the earlier one.
func historyRequest(server *capability.List, want plumbing.Hash, b between) (*packp.UploadPackRequest, error) {
	request, err := newRequest(server, []plumbing.Hash{want}, nil, b.generations)
	if err != nil {
		return nil, err
	}
	// The earlier commit is claimed without its files and as not shallow, so the server leaves out everything that leads to it. The pack
	// must not be thin, because a thin pack builds on these files.
	if !b.earlier.IsZero() {
		request.Haves = []plumbing.Hash{b.earlier}
	}
	if b.filter && server.Supports(capability.Filter) {
		if err := request.Capabilities.Set(capability.Filter); err != nil {
			return nil, fmt.Errorf("asking for %s: %w", capability.Filter, err)
		}
		request.Filter = packp.FilterTreeDepth(0)
	}
	return request, nil
}

// readOnce passes the objects of a pack to look, and deletes them afterwards.
func (r *repository) readOnce(ctx context.Context, pack io.Reader, what string, look func(*generation) error) error {
	aside, err := os.MkdirTemp(r.dir, disk.Temporary)
	if err != nil {
		return disk.Failed(r.dir, err)
	}
	defer os.RemoveAll(aside)
	g, err := openGeneration(aside, r.limits, r.unpacking)
	if err != nil {
		return err
	}
	defer g.shut()
	if err := g.addPack(ctx, pack, what); err != nil {
		return err
	}
	if err := g.reload(); err != nil {
		return err
	}
	return look(g)
}

// hasPath looks for a path from a commit to an earlier one among the commits in the store. Its error is ErrTooLarge when no path was found
// within the limit of generations.
func (g *generation) hasPath(commit, earlier plumbing.Hash) (bool, error) {
	return g.find(commit, func(at *object.Commit) bool { return slices.Contains(at.ParentHashes, earlier) })
}

// find looks for a commit among a commit of the store and those that lead to it, the newest ones first.
func (g *generation) find(commit plumbing.Hash, is func(*object.Commit) bool) (bool, error) {
	seen := map[plumbing.Hash]bool{}
	generation := []plumbing.Hash{commit}
	for range g.limits.generations {
		var before []plumbing.Hash
		for _, hash := range generation {
			at, err := g.commit(hash, g.limits.File)
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				continue // It is one of those that were not requested, or before a root.
			}
			if err != nil {
				return false, err
			}
			if is(at) {
				return true, nil
			}
			before = append(before, notSeen(at.ParentHashes, seen)...)
		}
		if len(before) == 0 {
			return false, nil
		}
		generation = before
	}
	return false, failure.TooMany("the number of commits between the two, one after the other,", int64(g.limits.generations))
}

// fetchEarlier fetches a commit that no ref leads to any more. The server may have deleted it or refuse it; then the caller goes on without
// it.
func (r *repository) fetchEarlier(ctx context.Context, from *remote, commit plumbing.Hash) {
	g := r.usable()
	if g == nil {
		return
	}
	refs, err := from.open(ctx)
	if err != nil {
		return
	}
	defer refs.Close()
	_ = g.receive(ctx, refs, order{wants: []plumbing.Hash{commit}, commit: commit, depth: 1})
}

// lastAncestry returns the last result if it is about these two commits: a held commit is compared in every pass.
func (r *repository) lastAncestry(commit, earlier string) (Ancestry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ancestry, r.ancestryOf == commit && r.ancestry.Of == earlier
}

func (r *repository) rememberAncestry(commit string, ancestry Ancestry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ancestry, r.ancestryOf = ancestry, commit
}

// notSeen returns those of the commits that are not in seen, and adds them.
func notSeen(commits []plumbing.Hash, seen map[plumbing.Hash]bool) (fresh []plumbing.Hash) {
	for _, c := range commits {
		if !seen[c] {
			seen[c] = true
			fresh = append(fresh, c)
		}
	}
	return fresh
}
