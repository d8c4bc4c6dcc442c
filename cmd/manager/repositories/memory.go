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

// memory is what spares reading again. It is bounded by what there is: Forget removes what is about repositories that are gone.
type memory struct {
	mu *sync.Mutex
	// trees are those that were read last, so that only what changed is read again.
	trees map[tree.Scope]kept
	// reached has which revisions have which commits.
	reached map[reaching]bool
	// seen are the commits that the branch of a repository had, by its name.
	seen map[string]*seenLog
}

type kept struct {
	*tree.Tree
	used time.Time
}

type seenLog struct {
	commits map[string]bool
	read    time.Time
}

// treeLife is how long a tree is kept that nobody writes to.
const treeLife = time.Hour

func newMemory() memory {
	return memory{mu: &sync.Mutex{}, trees: map[tree.Scope]kept{}, reached: map[reaching]bool{}, seen: map[string]*seenLog{}}
}

func (m *memory) tree(scope tree.Scope) *tree.Tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trees[scope].Tree
}

func (m *memory) keep(scope tree.Scope, t *tree.Tree, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trees[scope] = kept{t, now}
}

func (m *memory) answered(q reaching) (reached, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reached, known = m.reached[q]
	return reached, known
}

func (m *memory) answer(q reaching, reached bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.reached) >= maxReached {
		clear(m.reached)
	}
	m.reached[q] = reached
}

// has records that a branch has a commit.
func (m *memory) has(repository, commit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.seen[repository]
	if h == nil || len(h.commits) > 10*lookBack {
		h = &seenLog{commits: map[string]bool{}}
		m.seen[repository] = h
	}
	h.commits[commit] = true
}

// log records the commits of a branch.
func (m *memory) log(repository string, messages map[string]string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := &seenLog{commits: map[string]bool{}, read: now}
	for hash := range messages {
		h.commits[hash] = true
	}
	m.seen[repository] = h
}

// hasCommit reports whether a branch had a commit, and when its log was read.
func (m *memory) hasCommit(repository, commit string) (has bool, read time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.seen[repository]; h != nil {
		return h.commits[commit], h.read
	}
	return false, time.Time{}
}

// Forget forgets what is remembered of repositories that are gone, and the trees that were not used for an hour.
func (r *Repositories) Forget(ctx context.Context) error {
	all := &v1alpha1.RepositoryList{}
	if err := r.Objects.List(ctx, all); err != nil {
		return fmt.Errorf("reading the repositories: %w", err)
	}
	there := map[string]bool{}
	for i := range all.Items {
		there[all.Items[i].Name] = true
	}
	m, now := &r.memory, r.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.trees, func(scope tree.Scope, t kept) bool { return !there[scope.Repository] || now.Sub(t.used) > treeLife })
	maps.DeleteFunc(m.reached, func(q reaching, _ bool) bool { return !there[q.repository] })
	maps.DeleteFunc(m.seen, func(name string, _ *seenLog) bool { return !there[name] })
	return nil
}
