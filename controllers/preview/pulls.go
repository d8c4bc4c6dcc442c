package preview

import (
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/host"
	"github.com/kubeop/kubeop/gitops/preview"
)

var (
	errFetching = failure.New(failure.ErrNotFound, "its branch is being fetched")
	errGone     = failure.New(failure.ErrNotFound, "its branch is not in the repository: push it, or close the pull request")
)

// pulls are the pull requests of one Read.
type pulls struct {
	// open are those into the branch that the Repository follows. known: the Git host has listed them.
	open  []host.PullRequest
	known bool
	// failed is why they could not be listed last.
	failed error
}

// branches returns the branches of the repository itself that have a pull request.
func (p *pulls) branches() (names []string) {
	for _, o := range p.open {
		if !o.Fork {
			names = append(names, o.From)
		}
	}
	return names
}

// errNoBranch is also an answer: there are no pull requests.
var errNoBranch = failure.New(failure.ErrInvalid, "the repository follows no branch, so no pull request is into it: set ref.branch of the repository in Git, or use branches in place of pullRequests")

// pullRequests lists the open pull requests. A listing that fails changes nothing.
func (p *Previews) pullRequests(q Request) (found pulls) {
	into := q.follows()
	if into == "" {
		return pulls{known: true, failed: errNoBranch}
	}
	query := q.Query
	query.Key = pullsKey(q.Repository)
	query.Host = host.Of(q.Repository).Host()
	query.Request += "/" + q.Commit.Hash
	last, asked, known := p.Pulls.Last(query.Key)
	if !known || asked.Generation != q.Repository.Generation {
		last, known = nil, false
	}
	all, err := p.Pulls.Get(query, func() (cache.Fetcher[[]host.PullRequest], error) { return q.PullRequests, nil })
	found.known = known || err == nil
	if err != nil {
		all = last
		_, found.failed = p.Pulls.Failure(query.Key)
	}
	found.open = slices.DeleteFunc(slices.Clone(all), func(o host.PullRequest) bool { return o.Into != into })
	return found
}

func pullsKey(repository *v1alpha1.Repository) string { return "pulls/" + string(repository.UID) }

// candidates returns the branches of the open pull requests.
func (p *pulls) candidates(heads map[string]head, fetched bool) (found []preview.Branch) {
	for _, o := range p.open {
		h, there := heads[o.From]
		switch {
		case o.Fork:
			h = head{Branch: o.From}
		case !there && fetched:
			h = head{Branch: o.From, Err: errGone}
			heads[o.From] = h
		case !there:
			h = head{Branch: o.From, Err: errFetching}
			heads[o.From] = h
		}
		branch := h.candidate()
		branch.PullRequest, branch.Fork = int64(o.Number), o.Fork
		found = append(found, branch)
	}
	return found
}

// candidate is the branch as gitops/preview decides about it.
func (h head) candidate() preview.Branch {
	branch := preview.Branch{Name: h.Branch, Hash: h.Hash, Time: h.Commit.Time}
	if h.Err != nil {
		branch.Failed = few.Printable(h.Err.Error())
	}
	return branch
}

// follows is the branch that the Repository follows.
func (q *Request) follows() string { return preview.Followed(q.Repository, q.Commit.Revision) }
