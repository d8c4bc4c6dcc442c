// Package preview lists and fetches branches and pull requests of a tenant's repository, and decides which have previews. The caller reads their files.
//
// It deletes nothing. If a pull request is closed or merged, or a branch is deleted, Read does not return its preview. The tree of the commit then
// does not declare the Project and the Apps of the preview, so controllers/repository deletes them as it deletes what left a commit (collect in
// collect.go). Result.Keep prevents that while it is not known whether the branch is gone.
package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declaredby"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/gitops/host"
	"github.com/kubeop/kubeop/gitops/preview"
)

// maxReported bounds the list in the status.
const maxReported = 50

// Previews fetches branches and has their previews read.
type Previews struct {
	// Branches caches the branches of each Repository, and Pulls its open pull requests.
	Branches *cache.Answers[Answer]
	Pulls    *cache.Answers[[]host.PullRequest]
	clock    clock.PassiveClock
}

// New returns Previews that fetch through the pool.
func New(p *pool.Pool, c clock.PassiveClock) *Previews {
	return &Previews{Branches: cache.NewRecent[Answer](p, c), Pulls: cache.NewRecent[[]host.PullRequest](p, c), clock: c}
}

// WakeBy sets the function that wakes a Repository when its Git host has answered.
func (p *Previews) WakeBy(wake func(types.NamespacedName)) {
	p.Branches.Wake, p.Pulls.Wake = wake, wake
}

// Forget drops what is cached of a deleted Repository.
func (p *Previews) Forget(repository *v1alpha1.Repository) {
	p.Branches.Forget(branchesKey(repository))
	p.Pulls.Forget(pullsKey(repository))
}

// Request is a commit of a tenant's repository, to which previews are added.
type Request struct {
	Repository *v1alpha1.Repository
	Commit     git.Commit
	// Parents are the projects that the commit has, by name; nil for one whose project.yaml is not valid.
	Parents map[string]*v1alpha1.Project
	// Frozen: no preview is made, changed or deleted, because administrators froze the tenant.
	Frozen bool
	// Read reads the preview of a project in a commit of its branch, and returns what is wrong with it. After an error, the preview stays as it was; with
	// fs.ErrNotExist, the branch does not have the project.
	Read func(parent *v1alpha1.Project, of preview.Preview, commit git.Commit) (problems []string, err error)
	// Live reads Projects from the cache, and Query is that of the Repository.
	Live  client.Reader
	Query cache.Query
	// Source returns how to fetch, with the keys that sign commits. It may take time, and runs with the fetch.
	Source func(context.Context) (git.Source, error)
	Store  *git.Store
	// PullRequests lists the open pull requests at the Git host.
	PullRequests func(context.Context) ([]host.PullRequest, error)
}

// Result are the previews of a commit.
type Result struct {
	Status []v1alpha1.PreviewStatus
	// undecided are previews of which it is not known whether they go, and undecidedOf the projects all of whose previews are undecided.
	undecided, undecidedOf map[string]bool
}

// Keep reports whether an object belongs to a preview that must stay, because it is not known whether its branch is gone.
func (r *Result) Keep(o client.Object) bool {
	of := o.GetAnnotations()[v1alpha1.PreviewOfAnnotation]
	return of != "" && r.Stays(of, o.GetLabels()[v1alpha1.ProjectLabel])
}

// Stays reports whether the preview of a project must stay as it was, because its branch could not be read or is not known.
func (r *Result) Stays(of, name string) bool { return r.undecidedOf[of] || r.undecided[name] }

// Read decides about the previews of a commit. If the branches cannot be listed, existing previews stay.
func (p *Previews) Read(ctx context.Context, q Request) (*Result, error) {
	r := &reading{Request: q, now: p.clock.Now(), Result: Result{undecided: map[string]bool{}, undecidedOf: map[string]bool{}}}
	if q.Frozen {
		for _, name := range slices.Sorted(maps.Keys(r.Parents)) {
			r.keepAll(name, nil)
		}
		return &r.Result, nil
	}
	patterns, ofPulls := r.patterns()
	if len(patterns) > 0 || ofPulls {
		if err := r.findRunning(ctx); err != nil {
			return nil, err
		}
	}
	if ofPulls {
		r.pulls = p.pullRequests(q)
		patterns = append(patterns, r.pulls.branches()...)
	}
	slices.Sort(patterns)
	var answer Answer
	if len(patterns) > 0 {
		answer = p.answer(r, slices.Compact(patterns))
	}
	r.decideAll(answer)
	r.Status = r.Status[:min(len(r.Status), maxReported)]
	return &r.Result, nil
}

// decideAll decides about the previews of each project that has or had some.
func (r *reading) decideAll(answer Answer) {
	for _, name := range slices.Sorted(maps.Keys(r.Parents)) {
		parent := r.Parents[name]
		switch {
		case parent == nil: // What project.yaml says about previews is not known.
			r.keepAll(name, r.failed)
		case parent.Spec.Previews == nil:
		case parent.Spec.Previews.PullRequests && !r.pulls.known:
			r.keepAll(name, r.pulls.failed)
		case parent.Spec.Previews.PullRequests && len(r.pulls.branches()) > 0 && answer.Patterns == nil:
			r.keepAll(name, r.failed)
		case !parent.Spec.Previews.PullRequests && !slices.Contains(answer.Patterns, parent.Spec.Previews.Branches):
			r.keepAll(name, r.failed)
		default:
			r.decide(parent, answer.Heads)
		}
	}
}

// patterns returns the patterns of branches that have previews, and whether pull requests have previews.
func (r *reading) patterns() (patterns []string, ofPulls bool) {
	for _, parent := range r.Parents {
		switch {
		case parent == nil || parent.Spec.Previews == nil:
		case parent.Spec.Previews.PullRequests:
			ofPulls = true
		default:
			patterns = append(patterns, parent.Spec.Previews.Branches)
		}
	}
	return patterns, ofPulls
}

// answer returns the newest known answer. A listing that fails changes nothing.
func (p *Previews) answer(r *reading, patterns []string) Answer {
	query := r.Query
	signed := query.Version
	query.Key = branchesKey(r.Repository)
	query.Version += " " + strings.Join(patterns, " ")
	query.Request += "/" + r.Commit.Hash + "/" + strings.Join(patterns, " ")
	last, asked, known := p.Branches.Last(query.Key)
	if !known || asked.Generation != r.Repository.Generation {
		last = Answer{}
	}
	answer, err := p.Branches.Get(query, func() (cache.Fetcher[Answer], error) {
		before := last
		if before.Version != signed { // Another key may have to sign commits now.
			before = Answer{Version: signed}
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
		r.fetched = true
		return answer
	}
	if _, failed := p.Branches.Failure(query.Key); failed != nil {
		r.failed = failed
	}
	return last
}

func branchesKey(repository *v1alpha1.Repository) string { return "branches/" + string(repository.UID) }

// findRunning finds the previews that run.
func (r *reading) findRunning(ctx context.Context) error {
	r.running, r.branches = map[string]bool{}, map[string]bool{}
	list := &v1alpha1.ProjectList{}
	if err := r.Live.List(ctx, list, client.MatchingFields{declaredby.Index: r.Repository.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the previews of repository %s: %w", r.Repository.Name, err)
	}
	for i := range list.Items {
		if branch := list.Items[i].Annotations[v1alpha1.BranchAnnotation]; branch != "" {
			r.running[list.Items[i].Name], r.branches[branch] = true, true
		}
	}
	return nil
}
