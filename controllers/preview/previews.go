// Package preview adds the previews of branches to what the commit of a tenant's repository declares.
package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/gitops/tree"
)

// maxReported bounds the list in the status.
const maxReported = 50

// Previews fetches branches and reads their previews.
type Previews struct {
	// Branches caches the branches of each Repository.
	Branches *cache.Answers[Answer]
	clock    clock.PassiveClock
}

// New returns Previews that fetch through the pool.
func New(p *pool.Pool, c clock.PassiveClock) *Previews {
	return &Previews{Branches: cache.NewRecent[Answer](p, c), clock: c}
}

// Request is a commit of a tenant's repository, to which previews are added.
type Request struct {
	Repository *v1alpha1.Repository
	Commit     git.Commit
	// Tree is what the commit declares, and Before the tree with the previews that were read last; nil for none.
	Tree, Before *tree.Tree
	Reader       *tree.Reader
	// Live reads Projects from the cache, and Query is that of the Repository.
	Live  client.Reader
	Query cache.Query
	// Source returns how to fetch, with the keys that sign commits. It may take time, and runs with the fetch.
	Source func(context.Context) (git.Source, error)
	Store  *git.Store
}

// Result are the previews of a commit.
type Result struct {
	Projects []*tree.Project
	Status   []v1alpha1.PreviewStatus
	// undecided are previews of which it is not known whether they go, and undecidedOf the projects all of whose previews are undecided.
	undecided, undecidedOf map[string]bool
}

// Keep reports whether an object belongs to a preview that must stay, because it is not known whether its branch is gone.
func (r *Result) Keep(o client.Object) bool {
	annotations, labels := o.GetAnnotations(), o.GetLabels()
	of := annotations[v1alpha1.PreviewOfAnnotation]
	return of != "" && (r.undecidedOf[of] || r.undecided[labels[v1alpha1.ProjectLabel]])
}

// Read returns the previews of a commit. If the branches cannot be listed, it returns the previews that there were.
func (p *Previews) Read(ctx context.Context, q Request) (*Result, error) {
	r := &reading{Request: q, now: p.clock.Now(), parents: q.Tree.Parents(), Result: Result{undecided: map[string]bool{}, undecidedOf: map[string]bool{}}}
	var patterns []string
	for _, parent := range r.parents {
		if parent != nil && parent.Spec.Previews != nil {
			patterns = append(patterns, parent.Spec.Previews.Branches)
		}
	}
	slices.Sort(patterns)
	var answer Answer
	if len(patterns) > 0 {
		if err := r.findRunning(ctx); err != nil {
			return nil, err
		}
		answer = p.answer(r, slices.Compact(patterns))
	}
	for _, name := range slices.Sorted(maps.Keys(r.parents)) {
		parent := r.parents[name]
		switch {
		case parent == nil: // What project.yaml says about previews is not known.
			r.keepAll(name)
		case parent.Spec.Previews == nil:
		case !slices.Contains(answer.Patterns, parent.Spec.Previews.Branches):
			r.keepAll(name)
		default:
			r.decide(parent, answer.Heads)
		}
	}
	r.Status = r.Status[:min(len(r.Status), maxReported)]
	return &r.Result, nil
}

// answer returns the newest known answer. A listing that fails changes nothing.
func (p *Previews) answer(r *reading, patterns []string) Answer {
	query := r.Query
	query.Key = Key(r.Repository)
	query.Version += " " + strings.Join(patterns, " ")
	query.Request += "/" + r.Commit.Hash + "/" + strings.Join(patterns, " ")
	last, asked, known := p.Branches.Last(query.Key)
	if !known || asked.Generation != r.Repository.Generation {
		last = Answer{}
	}
	answer, err := p.Branches.Get(query, func() (cache.Fetcher[Answer], error) {
		before := last
		if before.Version != query.Version { // Another key may have to sign commits now.
			before = Answer{Version: query.Version}
		}
		w := wanted{Patterns: patterns, First: maps.Clone(r.branches), Except: r.Commit.Hash}
		store, sourceOf := r.Store, r.Source
		return func(ctx context.Context) (Answer, error) {
			source, err := sourceOf(ctx)
			if err != nil {
				return Answer{}, err
			}
			return fetchBranches(ctx, store, source, w, before)
		}, nil
	})
	if err == nil {
		return answer
	}
	if _, failed := p.Branches.Failure(query.Key); failed != nil {
		r.failed = failed
	}
	return last
}

// Key is the key of a Repository's branches.
func Key(repository *v1alpha1.Repository) string { return "branches/" + string(repository.UID) }

// findRunning finds the previews that run.
func (r *reading) findRunning(ctx context.Context) error {
	r.running, r.branches = map[string]bool{}, map[string]bool{}
	list := &v1alpha1.ProjectList{}
	if err := r.Live.List(ctx, list, client.MatchingFields{declared.ByRepository: r.Repository.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the previews of repository %s: %w", r.Repository.Name, err)
	}
	for i := range list.Items {
		if branch := list.Items[i].Annotations[v1alpha1.BranchAnnotation]; branch != "" {
			r.running[list.Items[i].Name], r.branches[branch] = true, true
		}
	}
	return nil
}
