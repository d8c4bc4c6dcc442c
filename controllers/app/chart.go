package app

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/release/charts"
)

// fetchChart brings a Helm app's chart at hand: from a repository, from the app's own folder, or from one of another Git
// repository.
func (r *Reconciler) fetchChart(ctx context.Context, s *scope) error {
	switch spec := s.app.Spec.Helm; {
	case spec.Path != "":
		s.revision = declaredRevision(s.app)
		// What the chart depends on in other folders is the app's own, too: only that is in the digest of its input.
		return r.chartFolder(ctx, s, chart.Folder{Root: s.folder, Path: spec.Path, Tenant: s.owner.Tenant})
	case spec.Git != nil:
		return r.chartFromGit(ctx, s, spec.Git)
	}
	return r.chartArchive(ctx, s)
}

// chartFromGit takes a folder of a commit as the chart, and notes what it is made from there; what it takes from repositories is
// no commit's business.
func (r *Reconciler) chartFromGit(ctx context.Context, s *scope, spec *v1alpha1.ChartGitSource) error {
	source := git.Source{URL: spec.URL, Ref: spec.Ref, Tenant: s.owner.Tenant}
	commit, err := r.commit(ctx, s, source, spec.SecretRef)
	if err != nil {
		return err
	}
	if s.source, err = s.ofCommit(commit); err != nil {
		return err
	}
	s.recognize()
	if err := r.chartFolder(ctx, s, chart.Folder{Root: commit.Root, Path: chartPath(spec), URL: source.URL, Tenant: source.Tenant}); err != nil {
		return err
	}
	if s.source, err = s.ofCommit(commit); err != nil {
		return err
	}
	s.recognize()
	r.reads.Store(client.ObjectKeyFromObject(s.app), s.reads)
	return nil
}

func chartPath(source *v1alpha1.ChartGitSource) string {
	if source.Path == "" {
		return "."
	}
	return source.Path
}

func (r *Reconciler) chartArchive(ctx context.Context, s *scope) error {
	spec := s.app.Spec.Helm
	ask, err := r.ask(ctx, s, transport.HostOf(spec.Repository))
	if err != nil {
		return err
	}
	fetched := func() (chart.Archive, error) {
		return lastOf(r, s, r.Archives, ask, func() (cache.Fetcher[chart.Archive], error) {
			auth, err := transport.ReadAuth(ctx, r.secrets(s), s.app.Namespace, spec.SecretRef)
			src := chart.Source{
				Repository: spec.Repository, Name: spec.Chart, Version: spec.Version, Digest: spec.Digest, Insecure: spec.Insecure,
				Auth: auth, Tenant: s.owner.Tenant,
			}
			return func(ctx context.Context) (chart.Archive, error) { return r.Charts.Fetch(ctx, src) }, err
		})
	}
	archive, err := fetched()
	if err == nil && !r.Charts.Has(archive) {
		r.Archives.Forget(string(s.app.UID))
		archive, err = fetched()
	}
	s.chart, s.revision = charts.Chart{Archive: archive.Path, Digest: archive.Digest}, archive.Version
	return err
}

// chartFolder takes a folder as the chart, with the dependencies that are not vendored in it.
func (r *Reconciler) chartFolder(ctx context.Context, s *scope, from chart.Folder) error {
	needs, err := r.dependencies(ctx, s, from)
	if err != nil {
		return err
	}
	files, err := chart.Overlay(from.Root, from.Path, needs)
	if err != nil {
		return err
	}
	s.chart = charts.Chart{Files: files, Digest: files.Digest()}
	s.reads = chart.Reads(from.Path, needs)
	return nil
}

// dependencies fetches what a chart's folder lacks; a chart that has everything costs nothing here.
func (r *Reconciler) dependencies(ctx context.Context, s *scope, from chart.Folder) ([]chart.Dependency, error) {
	lacks, err := from.Lacks()
	if err != nil || lacks == "" {
		return nil, err
	}
	ask, err := r.ask(ctx, s, "") // They may be at any host.
	if err != nil {
		return nil, err
	}
	ask.Request += " " + lacks
	ask.Version += " " + lacks
	fetched := func() ([]chart.Dependency, error) {
		// What an earlier chart lacked is of no use for this one.
		return r.Dependencies.Get(ask, func() (cache.Fetcher[[]chart.Dependency], error) {
			from.Auth, err = r.chartAuth(ctx, s)
			return func(ctx context.Context) ([]chart.Dependency, error) { return r.Charts.Dependencies(ctx, from) }, err
		})
	}
	needs, err := fetched()
	if err == nil && !r.stillThere(needs) {
		r.Dependencies.Forget(string(s.app.UID))
		needs, err = fetched()
	}
	if until, failure := r.Dependencies.Failure(ask.Key); failure != nil {
		s.stale.retry = until.Sub(r.Clock.Now())
	}
	return needs, err
}

func (r *Reconciler) chartAuth(ctx context.Context, s *scope) (transport.Auth, error) {
	if source := s.app.Spec.Helm.Git; source != nil {
		return transport.ReadAuth(ctx, r.secrets(s), s.app.Namespace, source.SecretRef)
	}
	return transport.Auth{}, nil
}

func (r *Reconciler) stillThere(needs []chart.Dependency) bool {
	for _, d := range needs {
		if (d.Path == "" && !r.Charts.Has(d.Archive)) || !r.stillThere(d.Needs) {
			return false
		}
	}
	return true
}
