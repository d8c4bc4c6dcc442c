// Package git fetches commits of Git repositories, without their history, into bare object stores on disk. There is no working tree:
// commits are read from their objects, so hooks, symbolic links and ".." have no effect.
package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/keymutex"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// Source is a Git repository at a ref, with credentials.
type Source struct {
	// URL is https://host/path, http://host/path or ssh://user@host/path, without credentials.
	URL string
	// Ref to read. Default: the branch of the remote's HEAD.
	Ref *sourcev1.GitRepositoryRef
	// Auth is sent to the host of URL only.
	Auth transport.Auth
	// Tenant for whom it is fetched, and whose share of the disk it uses.
	Tenant string
	// WithTag fetches the annotated tag that names the commit, too, for Commit.Verify.
	WithTag bool
	// After is the hash of a commit that was fetched before. Commit.Ancestry then says whether the fetched commit descends from it. Empty:
	// they are not compared. WithAfter fetches that commit, too, if the store does not have it any more.
	After     string
	WithAfter bool
	// Signers checks the signature of the commit, or of the tag that names it: see Commit.Unsigned. Nil: it is not checked.
	Signers *signature.Verification
}

// Commit is one commit of a repository.
type Commit struct {
	// Revision names the commit as Flux does, such as "main@sha1:<hash>".
	Revision string
	// Hash is the commit's hash, 40 hexadecimal digits.
	Hash string
	// Author is the name of the commit's author as the commit has it, which nothing proves; at most 100 characters, on one line.
	Author string
	// Time is when the commit was made, as the commit has it, which nothing proves.
	Time time.Time
	// Root is the commit's tree. It stays readable while later fetches run.
	Root *folder.Folder
	// Ancestry is how the commit relates to Source.After.
	Ancestry Ancestry
	// Unsigned is why the commit is not signed by Source.Signers, an error of Verify; nil if it is signed, or if there are no Signers.
	Unsigned error

	from *repository
	ref  fetchedTag
}

// fetchedTag is the tag by which a commit was fetched: its name, and the annotated tag itself. The latter is zero for a lightweight tag, and
// if Source.WithTag is not set.
type fetchedTag struct {
	name string
	tag  plumbing.Hash
}

// Folder is Store.Folder for the source of the commit: a folder of any commit of that source.
func (c Commit) Folder(treeHash string) (*folder.Folder, error) {
	if c.from == nil {
		return nil, failure.New(failure.ErrNotFound, "tree %s is not in the store: fetch first", few.Quote(treeHash))
	}
	return c.from.folder(treeHash)
}

// Store keeps fetched commits in bare object stores on disk. There is one store per pair of URL and credentials, so what one credential
// fetched is never readable with another. Safe for concurrent use; only one process at a time may use a directory.
type Store struct {
	dir     string
	network *transport.Network
	limits  limits
	locks   keymutex.Mutexes
	// Disk counts the disk usage of packs. Nil: it is not counted.
	Disk *disk.Disk
	// Used records which stores were used.
	Used disk.Usage
	// unpacking is shared by all repositories.
	unpacking *packs

	mu sync.Mutex
	// repositories are those of which a commit or a folder is in use, and some that the garbage collector may already have freed. On disk
	// there may be more. When there are crowded of them, the freed ones are dropped.
	repositories map[string]weak.Pointer[repository]
	crowded      int
}

// NewStore returns a Store below dir, which is created when it is first needed. What an earlier process left there is used, and its
// unfinished files are removed. Servers are reached over the network; nil is the strictest network.
func NewStore(dir string, network *transport.Network) *Store {
	return &Store{
		dir:          dir,
		network:      network,
		limits:       defaultLimits(),
		unpacking:    &packs{},
		repositories: map[string]weak.Pointer[repository]{}, crowded: maxUnheld,
	}
}

// Unpack sets the Reader of packs. Call it before the first fetch.
func (s *Store) Unpack(reader pack.Reader) { s.unpacking.Reader = reader }

// LimitPacks sets the size, in bytes, to which one pack may inflate, by the name of the tenant, or of the Repository, for which it is
// fetched. Call it before the first fetch.
func (s *Store) LimitPacks(limitOf func(name string) int64) { s.unpacking.limitOf = limitOf }

// Fetch reads the commit that src points to now. It always lists the remote's refs, with the credentials of src. It transfers the commit,
// without its history, only when the store does not have it. ctx bounds its time; a server that stops answering ends it sooner (see
// limits).
//
// Errors: ErrNotFound, ErrAuthentication, ErrInvalid, ErrTooLarge; any other is transient.
func (s *Store) Fetch(ctx context.Context, src Source) (Commit, error) {
	commit, err := transport.Within(ctx, s.limits.Timeouts, func(ctx context.Context) (Commit, error) {
		ctx = onBehalfOf(ctx, src.Tenant)
		repo := s.repository(src)
		from, err := s.way(ctx, repo, src)
		if err != nil {
			return Commit{}, err
		}
		commit, err := s.fetch(ctx, repo, from, src)
		if err != nil {
			return Commit{}, err
		}
		return examine(ctx, from, src, commit)
	})
	if err != nil {
		return Commit{}, fmt.Errorf("fetching %s: %w", transport.SafeURL(src.URL), src.Auth.NameSecret(err))
	}
	return commit, nil
}

// Folder returns the folder with this tree hash (see Folder.Digest) from the store, without a request. Its error is ErrNotFound when the
// store does not have the folder, or has it no longer; then fetch.
func (s *Store) Folder(src Source, treeHash string) (*folder.Folder, error) {
	if _, err := parseGitURL(src.URL); err != nil {
		return nil, fmt.Errorf("reading %s: %w", transport.SafeURL(src.URL), err)
	}
	folder, err := s.repository(src).folder(treeHash)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", transport.SafeURL(src.URL), err)
	}
	return folder, nil
}

func (s *Store) fetch(ctx context.Context, repo *repository, from *remote, src Source) (Commit, error) {
	refs, err := from.open(ctx)
	if err != nil {
		return Commit{}, err
	}
	defer refs.Close()
	wanted, err := resolve(refs.advertised(), src.Ref)
	if err != nil {
		return Commit{}, err
	}
	wanted.withTag = src.WithTag || (src.Signers != nil && src.Signers.WantsTag())
	if commit, ok := repo.commit(wanted); ok {
		return commit, nil
	}
	unlock, err := s.locks.Lock(ctx, repo.dir)
	if err != nil {
		return Commit{}, err
	}
	defer unlock()
	if commit, ok := repo.commit(wanted); ok {
		return commit, nil
	}
	before := repo.packs()
	// Before the lock is released, so that the tenant is charged only for what this fetch brought.
	defer func() { s.Disk.Claim(src.Tenant, added(before, repo.packs())...) }()
	return repo.ensure(ctx, refs, wanted, from.open)
}

// way returns the remote of a source. What is received from it counts for the tenant.
func (s *Store) way(ctx context.Context, repo *repository, src Source) (*remote, error) {
	from, err := repo.remote(src)
	if err == nil {
		from.meter = func(pack io.ReadCloser) io.ReadCloser { return s.Disk.Meter(ctx, src.Tenant, pack) }
	}
	return from, err
}

// added returns the paths of after that are not in before.
func added(before, after []string) []string {
	return slices.DeleteFunc(after, func(path string) bool { return slices.Contains(before, path) })
}

// repository returns the store for one pair of URL and credentials.
func (s *Store) repository(src Source) *repository {
	key := src.Auth.Digest(src.URL)
	dir := filepath.Join(s.dir, key)
	if _, err := os.Stat(dir); err == nil {
		s.Used.Mark(dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := s.repositories[key].Value()
	if repo == nil {
		if len(s.repositories) >= s.crowded {
			s.forgetUnheld()
		}
		repo = &repository{dir: dir, network: s.network, limits: s.limits, unpacking: s.unpacking}
		s.repositories[key] = weak.Make(repo)
	}
	return repo
}

// maxUnheld is how many repositories are kept in memory before the unused ones are dropped.
const maxUnheld = 4096

// forgetUnheld drops the repositories that are not in use. It runs again when there are twice as many.
func (s *Store) forgetUnheld() {
	maps.DeleteFunc(s.repositories, func(_ string, held weak.Pointer[repository]) bool { return held.Value() == nil })
	s.crowded = max(maxUnheld, 2*len(s.repositories))
}

// Kept returns the stores of all sources.
func (s *Store) Kept() ([]string, error) {
	sources, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil {
		return nil, fmt.Errorf("sweeping %s: %w", s.dir, err)
	}
	return sources, nil
}

// Clear removes the store of a source that was not used in that time and is not being read.
func (s *Store) Clear(_ context.Context, path string, now time.Time, unused time.Duration) error {
	below, ours := strings.CutPrefix(path, s.dir+string(filepath.Separator))
	if !ours {
		return nil
	}
	key, _, _ := strings.Cut(below, string(filepath.Separator))
	source := filepath.Join(s.dir, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repositories[key].Value() != nil {
		s.Used.Mark(source)
	}
	if old, err := s.Used.Stale(source, now, unused); err != nil || !old {
		return err
	}
	delete(s.repositories, key)
	return disk.Present(os.RemoveAll(source))
}

// Tidy drops the repositories that are not in use.
func (s *Store) Tidy() {
	s.Used.Tidy()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetUnheld()
}

// remote prepares the connection to the server. The HTTP client is kept, so that polling reuses its connection.
func (r *repository) remote(src Source) (*remote, error) {
	u, err := parseGitURL(src.URL)
	if err != nil {
		return nil, err
	}
	if err := src.Auth.Check(); err != nil {
		return nil, err
	}
	// Not the folder of the repository, which is created with its first commit.
	scratch := filepath.Dir(r.dir)
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, disk.Writing(scratch, err)
	}
	from := &remote{url: u, auth: src.Auth, limits: r.limits, service: uploadPack, network: r.network, scratch: scratch}
	if u.Scheme == "ssh" {
		return from, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.http == nil {
		if r.http, err = transport.NewGitClient(r.network, src.Auth, u); err != nil {
			return nil, err
		}
	}
	from.http = r.http
	return from, nil
}

// ensure fetches the commit into the store. It tries the current generation, for which only the difference is transferred; then a new
// generation, which repairs a damaged one; and for a commit that the server does not serve by its hash, a new generation with the history
// of the branches.
func (r *repository) ensure(ctx context.Context, refs session, wanted target, open func(context.Context) (session, error)) (Commit, error) {
	if err := r.unpacking.check(ctx, r.dir, wanted.commit, r.limits); err != nil {
		return Commit{}, err
	}
	if g := r.usable(); g != nil {
		if err := g.receive(ctx, refs, order{wants: []plumbing.Hash{wanted.want}, commit: wanted.commit, depth: 1}); err == nil {
			return r.found(wanted)
		} else if isFinal(ctx, err) {
			return Commit{}, err
		}
		_ = refs.Close()
		var err error
		if refs, err = open(ctx); err != nil {
			return Commit{}, err
		}
		defer refs.Close()
	}
	err := r.renew(ctx, refs, order{wants: []plumbing.Hash{wanted.want}, commit: wanted.commit, depth: 1})
	if wanted.unlisted && len(wanted.tips) > 0 && (errors.Is(err, errRefused) || errors.Is(err, errNotSent)) {
		err = r.fetchHistory(ctx, wanted, open)
	}
	if err != nil {
		return Commit{}, err
	}
	return r.found(wanted)
}

func (r *repository) fetchHistory(ctx context.Context, wanted target, open func(context.Context) (session, error)) error {
	refs, err := open(ctx)
	if err != nil {
		return err
	}
	defer refs.Close()
	err = r.renew(ctx, refs, order{wants: wanted.tips, commit: wanted.commit})
	if errors.Is(err, errNotSent) {
		return failure.New(failure.ErrNotFound, "commit %s is in none of the branches looked at: check ref.commit and ref.branch in Git", wanted.commit)
	}
	return err
}

// isFinal reports whether a new store would not help. A network error is not final: one more try costs little, and a server that fails
// because of the commits that we claim to have looks the same.
func isFinal(ctx context.Context, err error) bool {
	if errors.Is(err, disk.Err) {
		// A deleted folder is repaired like a damaged one.
		return !errors.Is(err, fs.ErrNotExist)
	}
	return ctx.Err() != nil || errors.Is(err, failure.ErrTooLarge) || errors.Is(err, failure.ErrAuthentication) ||
		errors.Is(err, failure.ErrInvalid) || errors.Is(err, failure.ErrNotFound) || errors.Is(err, failure.ErrServer) || errors.Is(err, pack.ErrUnfit)
}

func (r *repository) found(wanted target) (Commit, error) {
	if commit, ok := r.commit(wanted); ok {
		return commit, nil
	}
	return Commit{}, fmt.Errorf("commit %s was received and cannot be read back", wanted.commit)
}
