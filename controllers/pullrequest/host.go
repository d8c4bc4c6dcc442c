package pullrequest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/host"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

// message returns a message about a pull request, or with 0 about all, without what it sends.
func (p *Planner) message(repository *v1alpha1.Repository, number int) gitreport.Message {
	return gitreport.Message{
		Key: keyOf(repository.UID, number), Kind: gitreport.PullRequest, Host: host.Of(repository).Host(), Tenant: budget.OfRepository(repository.Name),
	}
}

// host opens the Git host of a Repository.
func (p *Planner) host(ctx context.Context, repository *v1alpha1.Repository) (*host.Repository, error) {
	auth, err := p.Repositories.APIAuth(ctx, repository)
	if err != nil {
		return nil, err
	}
	git, err := host.Open(p.Network, host.Of(repository), auth, p.Clock.Now)
	if err != nil {
		return nil, fmt.Errorf("%w; the type and the address of the Git host are those of spec.commitStatus", err)
	}
	return git, nil
}

func (p *Planner) list(ctx context.Context, repository *v1alpha1.Repository) ([]host.PullRequest, error) {
	git, err := p.host(ctx, repository)
	if err != nil {
		return nil, err
	}
	defer git.Close()
	return git.PullRequests(ctx)
}

// into returns the pull requests into a branch, at most maxPlans, the oldest first. Those from a fork displace no other.
func into(found []host.PullRequest, branch string) []host.PullRequest {
	open := slices.DeleteFunc(found, func(open host.PullRequest) bool { return open.Into != branch || open.Number <= 0 || open.Commit == "" })
	slices.SortStableFunc(open, func(a, b host.PullRequest) int {
		return cmp.Compare(map[bool]int{a.Fork: 1}[true], map[bool]int{b.Fork: 1}[true])
	})
	open = open[:min(len(open), maxPlans)]
	slices.SortFunc(open, func(a, b host.PullRequest) int { return a.Number - b.Number })
	return open
}
