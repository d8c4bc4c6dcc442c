package repositories

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/tree"
)

// cache is what was read of repositories and need not be read again. It is bounded by the repositories that there are: Forget removes what is about
// those that are gone.
type cache struct {
	mu *sync.Mutex
	// trees are those that were checked last, so that the next check reads only what changed since.
	trees map[tree.Scope]checkedTree
	// contained has which revisions contain which commits.
	contained map[containment]bool
	// commits are those that the branch of a repository is known to have, by its name.
	commits map[string]*knownCommits
	// logs are the last commits of branches, by their remotes.
	logs map[string]branchLog
}

type checkedTree struct {
	*tree.Tree
	used time.Time
}

// containment is the question whether a revision of a repository contains a commit.
type containment struct{ repository, revision, commit string }

type knownCommits struct {
	hashes map[string]bool
	// read is when the log of the branch was read, the zero time if it was not.
	read time.Time
}

const (
	// treeLife is how long a tree is kept that nobody writes to.
	treeLife = time.Hour
	// maxContained, maxCommits and maxLogs bound the cache: answers about containment, commits that the manager made to one branch, and logs.
	maxContained = 10_000
	maxCommits   = 10 * lookBack
	maxLogs      = 100
)

func newCache() cache {
	return cache{mu: &sync.Mutex{}, trees: map[tree.Scope]checkedTree{}, contained: map[containment]bool{}, commits: map[string]*knownCommits{}, logs: map[string]branchLog{}}
}

func (c *cache) tree(scope tree.Scope) *tree.Tree {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trees[scope].Tree
}

func (c *cache) keepTree(scope tree.Scope, t *tree.Tree, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trees[scope] = checkedTree{t, now}
}

func (c *cache) contains(q containment) (contains, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	contains, known = c.contained[q]
	return contains, known
}

func (c *cache) keepContains(q containment, contains bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.contained) >= maxContained {
		clear(c.contained)
	}
	c.contained[q] = contains
}

// addCommit keeps that a branch has a commit.
func (c *cache) addCommit(repository, commit string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.commits[repository]
	if known == nil || len(known.hashes) > maxCommits {
		known = &knownCommits{hashes: map[string]bool{}}
		c.commits[repository] = known
	}
	known.hashes[commit] = true
}

// keepCommits keeps the commits in the log of a branch, in place of those that were known.
func (c *cache) keepCommits(repository string, messages map[string]string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := &knownCommits{hashes: map[string]bool{}, read: now}
	for hash := range messages {
		known.hashes[hash] = true
	}
	c.commits[repository] = known
}

// hasCommit reports whether a branch is known to have a commit, and when its log was read.
func (c *cache) hasCommit(repository, commit string) (has bool, read time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.commits[repository]; known != nil {
		return known.hashes[commit], known.read
	}
	return false, time.Time{}
}

func (c *cache) log(remote string) branchLog {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs[remote]
}

func (c *cache) keepLog(remote string, log branchLog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.logs) >= maxLogs {
		clear(c.logs)
	}
	c.logs[remote] = log
}

// Forget removes from the cache what is about repositories that are gone, and trees that were not used for an hour.
func (r *Repositories) Forget(ctx context.Context) error {
	all := &v1alpha1.RepositoryList{}
	if err := r.Objects.List(ctx, all); err != nil {
		return fmt.Errorf("reading the repositories: %w", err)
	}
	there := map[string]bool{}
	for i := range all.Items {
		there[all.Items[i].Name] = true
	}
	c, now := &r.cache, r.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.trees, func(scope tree.Scope, t checkedTree) bool {
		return !there[scope.Repository] || now.Sub(t.used) > treeLife
	})
	maps.DeleteFunc(c.contained, func(q containment, _ bool) bool { return !there[q.repository] })
	maps.DeleteFunc(c.commits, func(name string, _ *knownCommits) bool { return !there[name] })
	return nil
}
