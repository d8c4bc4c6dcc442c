package source

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

// Answers caches what the sources of Apps answered, and fetches them.
type Answers struct {
	// Commits and Pulled are what Git repositories and OCI registries answered any App of a tenant.
	Commits *cache.Answers[git.Commit]
	Pulled  *cache.Answers[artifact.Artifact]
	// Archives are what chart repositories answered an App, Dependencies what the chart in its folder lacked, FluxArtifacts what its Flux
	// source made, Choices what its image policy chose.
	Archives      *cache.Answers[chart.Archive]
	Dependencies  *cache.Answers[[]chart.Dependency]
	FluxArtifacts *cache.Answers[artifact.Artifact]
	Choices       *cache.Answers[image.Chosen]
}

// NewAnswers returns Answers that fetch through the pool.
func NewAnswers(p *pool.Pool, c clock.PassiveClock) *Answers {
	return &Answers{
		Commits: cache.NewShared[git.Commit](p, c), Pulled: cache.NewShared[artifact.Artifact](p, c),
		Archives: cache.NewRecent[chart.Archive](p, c), Dependencies: cache.NewRecent[[]chart.Dependency](p, c),
		FluxArtifacts: cache.NewRecent[artifact.Artifact](p, c), Choices: cache.NewRecent[image.Chosen](p, c),
	}
}

// wake has an App woken when its source has answered.
func (a *Answers) wake(wake func(types.NamespacedName)) {
	a.Commits.Wake, a.Pulled.Wake, a.Archives.Wake = wake, wake, wake
	a.Dependencies.Wake, a.FluxArtifacts.Wake, a.Choices.Wake = wake, wake, wake
}

// forget drops what is remembered of an App.
func (a *Answers) forget(uid types.UID) {
	a.Archives.Forget(string(uid))
	a.Dependencies.Forget(string(uid))
	a.FluxArtifacts.Forget(string(uid))
	a.Choices.Forget(string(uid))
}

// query returns the query of an App to a source of its own, at a host.
func (f *Fetcher) query(ctx context.Context, p *pass, host string) (cache.Query, error) {
	question, err := f.question(ctx, p)
	versions, also := f.secretVersions(ctx, p)
	return cache.Query{
		Question: question, Caller: p.Key(), Key: string(p.App.UID), Version: fmt.Sprint(p.App.Generation, versions),
		Host: host, Tenant: p.Owner.Tenant, Priority: pool.App, Timeout: p.App.Spec.Within(),
	}, errors.Join(err, also)
}

// lastOf returns the answer to a question. While the source takes a while, or fails, it is what the source answered the same App or spec
// last, if anything; the pass takes note of the failure.
func lastOf[T any](p *pass, of *cache.Answers[T], query cache.Query, prepare func() (cache.Fetcher[T], error)) (T, error) {
	value, err := of.Get(query, prepare)
	if err == nil || errors.Is(err, failure.ErrDigest) || errors.Is(err, failure.ErrNotReady) || p.justQueried(err) {
		return value, err
	}
	until, failed := of.Failure(query.Key)
	p.found.stale.retry = until.Sub(p.Now())
	last, question, known := of.Last(query.Key)
	if !known || !of.Follows(question, query.Question) {
		return value, err
	}
	p.found.stale.err, p.found.stale.waits = failed, errors.As(err, new(*cache.Unanswered)) || errors.Is(err, failure.ErrBusy)
	return last, nil
}

// justQueried reports whether the fetch of a source began so recently that it may end before the status reports it.
func (p *pass) justQueried(err error) bool {
	var waits *cache.Unanswered
	return errors.As(err, &waits) && p.Now().Sub(waits.Since) < step.Quiet
}

// question returns the question; a new fetch follows when it changes. It includes the versions of the Secrets with the source's
// credentials.
func (f *Fetcher) question(ctx context.Context, p *pass) (cache.Question, error) {
	q := cache.QuestionOf(p.App)
	versions, err := f.secretVersions(ctx, p)
	q.Request += " " + f.pushes.of(p.Owner.Tenant, gitURL(&p.App.Spec)) + versions
	return q, err
}

// secretVersions are those of the Secrets with the credentials of an App's source.
func (f *Fetcher) secretVersions(ctx context.Context, p *pass) (versions string, err error) {
	for _, secret := range secretRefsOf(&p.App.Spec) {
		version, err := f.Inputs.Version(ctx, p.App.Namespace, inputs.Secret, secret.Name)
		if err != nil {
			return "", err
		}
		versions += " " + version
	}
	return versions, nil
}
