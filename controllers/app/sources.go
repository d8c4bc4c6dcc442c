package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

// Sources have the sources of apps asked, and remember what they answered.
type Sources struct {
	// Commits and Pulled are what Git repositories and OCI registries answered anybody.
	Commits *cache.Answers[git.Commit]
	Pulled  *cache.Answers[artifact.Artifact]
	// Archives are what chart repositories answered an app, Dependencies what the chart in its folder lacked, FluxArtifacts what
	// its Flux source made, Choices what its image policy chose.
	Archives      *cache.Answers[chart.Archive]
	Dependencies  *cache.Answers[[]chart.Dependency]
	FluxArtifacts *cache.Answers[artifact.Artifact]
	Choices       *cache.Answers[image.Chosen]
}

// NewSources returns Sources that ask by the pool.
func NewSources(p *pool.Pool, c clock.PassiveClock) *Sources {
	return &Sources{
		Commits: cache.NewShared[git.Commit](p, c), Pulled: cache.NewShared[artifact.Artifact](p, c),
		Archives: cache.NewRecent[chart.Archive](p, c), Dependencies: cache.NewRecent[[]chart.Dependency](p, c),
		FluxArtifacts: cache.NewRecent[artifact.Artifact](p, c), Choices: cache.NewRecent[image.Chosen](p, c),
	}
}

// wakes has an app woken when its source has answered.
func (s *Sources) wakes(wake func(types.NamespacedName)) {
	s.Commits.Wake, s.Pulled.Wake, s.Archives.Wake = wake, wake, wake
	s.Dependencies.Wake, s.FluxArtifacts.Wake, s.Choices.Wake = wake, wake, wake
}

// forget drops what is remembered of an app.
func (s *Sources) forget(uid types.UID) {
	s.Archives.Forget(string(uid))
	s.Dependencies.Forget(string(uid))
	s.FluxArtifacts.Forget(string(uid))
	s.Choices.Forget(string(uid))
}

// ask is the question of an app to a source of its own, at a host.
func (r *Reconciler) ask(ctx context.Context, s *scope, host string) (cache.Ask, error) {
	question, err := r.question(ctx, s)
	versions, also := r.secretVersions(ctx, s)
	return cache.Ask{
		Question: question, Asker: client.ObjectKeyFromObject(s.app), Key: string(s.app.UID), Version: fmt.Sprint(s.app.Generation, versions),
		Host: host, Tenant: s.owner.Tenant, Priority: pool.App, Timeout: s.app.Spec.Within(),
	}, errors.Join(err, also)
}

// lastOf returns the answer to a question. While the source takes longer than a moment, or fails, it is what the source answered the
// same app or spec last, if anything; the scope takes note of the failure.
func lastOf[T any](r *Reconciler, s *scope, of *cache.Answers[T], ask cache.Ask, prepare func() (cache.Fetcher[T], error)) (T, error) {
	value, err := of.Get(ask, prepare)
	if err == nil || errors.Is(err, failure.ErrDigest) || errors.Is(err, failure.ErrNotReady) || r.moment(err) {
		return value, err
	}
	until, failed := of.Failure(ask.Key)
	s.stale.retry = until.Sub(r.Clock.Now())
	last, question, known := of.Last(ask.Key)
	if !known || !of.Follows(question, ask.Question) {
		return value, err
	}
	s.stale.err, s.stale.waits = failed, errors.As(err, new(*cache.Unanswered)) || errors.Is(err, failure.ErrBusy)
	return last, nil
}

// moment reports whether a source was asked a moment ago and may answer before anybody has to be told.
func (r *Reconciler) moment(err error) bool {
	var waits *cache.Unanswered
	return errors.As(err, &waits) && r.Clock.Now().Sub(waits.Since) < patience
}
