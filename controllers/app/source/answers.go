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

// Answers fetches the sources of Apps, and caches the answers.
type Answers struct {
	// Commits and Pulled are answers of Git repositories and OCI registries. Apps of a tenant share them.
	Commits *cache.Answers[git.Commit]
	Pulled  *cache.Answers[artifact.Artifact]
	// These answers belong to a single App: Archives from chart repositories, Dependencies of a chart in a folder that were not vendored,
	// FluxArtifacts of its Flux source, and Choices of its image policy.
	Archives      *cache.Answers[chart.Archive]
	Dependencies  *cache.Answers[[]chart.Dependency]
	FluxArtifacts *cache.Answers[artifact.Artifact]
	Choices       *cache.Answers[image.Chosen]
	// Signatures are about one image and the rules of one policy.
	Signatures *cache.Answers[Verified]
}

// NewAnswers returns Answers that fetch through the pool.
func NewAnswers(p *pool.Pool, c clock.PassiveClock) *Answers {
	return &Answers{
		Commits: cache.NewShared[git.Commit](p, c), Pulled: cache.NewShared[artifact.Artifact](p, c),
		Archives: cache.NewRecent[chart.Archive](p, c), Dependencies: cache.NewRecent[[]chart.Dependency](p, c),
		FluxArtifacts: cache.NewRecent[artifact.Artifact](p, c), Choices: cache.NewRecent[image.Chosen](p, c),
		Signatures: cache.NewShared[Verified](p, c),
	}
}

// wake sets the function that wakes an App when its source has answered.
func (a *Answers) wake(wake func(types.NamespacedName)) {
	a.Commits.Wake, a.Pulled.Wake, a.Archives.Wake = wake, wake, wake
	a.Dependencies.Wake, a.FluxArtifacts.Wake, a.Choices.Wake = wake, wake, wake
	a.Signatures.Wake = wake
}

// forget drops the answers that belong to a single App.
func (a *Answers) forget(uid types.UID) {
	a.Archives.Forget(string(uid))
	a.Dependencies.Forget(string(uid))
	a.FluxArtifacts.Forget(string(uid))
	a.Choices.Forget(string(uid))
}

// query returns an App's query to a source that it does not share, at a host.
func (f *Fetcher) query(ctx context.Context, p *pass, host string) (cache.Query, error) {
	question, err := f.question(ctx, p)
	versions, also := f.secretVersions(ctx, p)
	return cache.Query{
		Question: question, Caller: p.Key(), Key: string(p.App.UID), Version: fmt.Sprint(p.App.Generation, versions),
		Host: host, Tenant: p.Owner.Tenant, Priority: pool.App, Timeout: p.App.Spec.Within(),
	}, errors.Join(err, also)
}

// lastOf returns the answer to a query. While the fetch is in progress or fails, it returns the last answer, if that is from the same
// source (see cache.Answers.Follows), and records the failure in the pass.
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

// justQueried reports whether a fetch is in progress that began within step.Quiet. It is not reported in the status yet.
func (p *pass) justQueried(err error) bool {
	var waits *cache.Unanswered
	return errors.As(err, &waits) && p.Now().Sub(waits.Since) < step.Quiet
}

// question returns the App's question to its source. When the question changes, the source is fetched again. It includes the last push, and
// the versions of the Secrets with the source's credentials.
func (f *Fetcher) question(ctx context.Context, p *pass) (cache.Question, error) {
	q := cache.QuestionOf(p.App)
	versions, err := f.secretVersions(ctx, p)
	q.Request += " " + f.pushes.of(p.Owner.Tenant, sourceURL(&p.App.Spec)) + versions
	return q, err
}

// secretVersions returns the versions of the Secrets with the credentials of an App's source, and how its Registries are reached.
func (f *Fetcher) secretVersions(ctx context.Context, p *pass) (versions string, err error) {
	for _, secret := range secretRefsOf(&p.App.Spec) {
		version, err := f.Inputs.Version(ctx, p.App.Namespace, inputs.Secret, secret.Name)
		if err != nil {
			return "", err
		}
		versions += " " + version
	}
	for _, registry := range p.involved() {
		version, err := f.Inputs.Version(ctx, p.App.Namespace, inputs.Secret, registry.Name())
		if err != nil {
			return "", err
		}
		versions += " " + registry.Host + settings(registry) + " " + version
	}
	return versions, nil
}
