// Package pullrequest writes to the pull requests of Repositories with spec.previews Plan what their commits would change. Everything that takes
// time runs in pools and in the queue of gitops/report, apart from the workers. What was written is in the status of the Repository, so a restart
// writes nothing again.
package pullrequest

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

// Planner plans pull requests. Safe for concurrent use.
type Planner struct {
	Options

	mu      sync.Mutex
	records map[string]*record
}

// Options are what a Planner needs.
type Options struct {
	// Queue calls the APIs of Git hosts, Fetches fetches commits, and Plans plans them; see NewPlans.
	Queue          *gitreport.Queue
	Fetches, Plans *pool.Pool
	Git            *git.Store
	Network        *transport.Network
	Clock          clock.PassiveClock
	// Repositories has the credentials of Repositories.
	Repositories Repositories
	// Plan plans a commit. An error means that there is no plan, and may be temporary.
	Plan func(context.Context, *v1alpha1.Repository, git.Commit) (Comment, error)
	// Mark is the beginning of the comments on a Repository's pull requests, by which the next one replaces the last.
	Mark func(repository string) string
	// Wake reconciles a Repository, whose status reports what was planned.
	Wake func(types.NamespacedName)
}

// Repositories are what is known of the Repositories.
type Repositories interface {
	// SignedSource returns how to fetch, with the keys that sign commits.
	SignedSource(ctx context.Context, repository *v1alpha1.Repository) (git.Source, error)
	// APIAuth returns the credentials for the API of the Git host.
	APIAuth(ctx context.Context, repository *v1alpha1.Repository) (transport.Auth, error)
}

// Comment is a plan for a pull request, and one line about it for the status.
type Comment struct{ Body, Summary string }

const (
	// limit bounds a plan.
	limit = 10 * time.Minute
	// maxPlans bounds the pull requests of a Repository that are planned.
	maxPlans = 50
	// atOnce is how many plans are made at once, of different Repositories.
	atOnce = 2
)

// NewPlans returns the pool for plans.
func NewPlans(c clock.WithDelayedExecution, weight func(tenant string) int) *pool.Pool {
	return pool.New(pool.Options{Name: "plans", Slots: atOnce, Trials: atOnce, PerHost: atOnce, PerTenant: 1, Slow: 2 * limit, Weight: weight}, c)
}
