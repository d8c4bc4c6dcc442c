package source

import (
	"cmp"
	"context"
	"math"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/release/charts"
)

// fetchChart finds the chart of a Helm App: in a chart repository, in the App's own folder, or in a Git repository.
func (f *Fetcher) fetchChart(ctx context.Context, p *pass) error {
	switch spec := p.App.Spec.Helm; {
	case spec.Path != "":
		p.found.Revision = p.DeclaredRevision()
		// Dependencies of the chart in other folders must be in the App's folder, too, because only that is part of the App's digest.
		return f.chartFolder(ctx, p, chart.Folder{Root: p.found.Folder, Path: spec.Path, Tenant: p.Owner.Tenant})
	case spec.Git != nil:
		return f.chartFromGit(ctx, p, spec.Git)
	}
	return f.chartArchive(ctx, p)
}

// chartFromGit uses a folder of a commit as the chart, and records which files of the commit the chart uses. Dependencies from chart
// repositories are not part of the commit.
func (f *Fetcher) chartFromGit(ctx context.Context, p *pass, spec *v1alpha1.ChartGitSource) error {
	source := git.Source{URL: spec.URL, Ref: spec.Ref, Tenant: p.Owner.Tenant}
	commit, err := f.commit(ctx, p, source, spec.SecretRef)
	if err != nil {
		return err
	}
	if p.found.Files, err = p.found.ofCommit(commit); err != nil {
		return err
	}
	p.found.recognize(p.App)
	if err := f.chartFolder(ctx, p, chart.Folder{Root: commit.Root, Path: chartPath(spec), URL: source.URL, Tenant: source.Tenant}); err != nil {
		return err
	}
	if p.found.Files, err = p.found.ofCommit(commit); err != nil {
		return err
	}
	p.found.recognize(p.App)
	f.reads.Store(p.Key(), p.found.reads)
	return nil
}

func chartPath(source *v1alpha1.ChartGitSource) string {
	if source.Path == "" {
		return "."
	}
	return source.Path
}

func (f *Fetcher) chartArchive(ctx context.Context, p *pass) error {
	spec := p.App.Spec.Helm
	query, err := f.query(ctx, p, transport.HostOf(spec.Repository))
	if err != nil {
		return err
	}
	if p.pin != "" {
		query.Request += " at " + p.pin
	}
	fetched := func() (chart.Archive, error) {
		return lastOf(p, f.Answers.Archives, query, func() (cache.Fetcher[chart.Archive], error) {
			access, err := f.access(ctx, p, spec.SecretRef, spec.Repository, spec.Insecure)
			wanted := chart.Source{
				Repository: spec.Repository, Name: spec.Chart, Version: cmp.Or(p.pin, spec.Version), Digest: spec.Digest, Insecure: access.Insecure,
				Auth: access.Auth, Mirror: access.Mirror, Tenant: p.Owner.Tenant,
			}
			return func(ctx context.Context) (chart.Archive, error) { return f.Charts.Fetch(ctx, wanted) }, err
		})
	}
	archive, err := fetched()
	if err == nil && !f.Charts.Has(archive) {
		f.Answers.Archives.Forget(string(p.App.UID))
		archive, err = fetched()
	}
	if err == nil {
		err = f.allowSigned(ctx, p, guardrails.ChartSource(spec.Repository, spec.Chart), archive.Manifest, func() (transport.Access, error) {
			return f.access(ctx, p, spec.SecretRef, spec.Repository, spec.Insecure)
		})
	}
	if err != nil {
		return err
	}
	p.found.Chart, p.found.Revision = charts.Chart{Archive: archive.Path, Digest: archive.Digest}, archive.Version
	return nil
}

// chartFolder uses a folder as the chart, and adds the dependencies that are not vendored in it.
func (f *Fetcher) chartFolder(ctx context.Context, p *pass, from chart.Folder) error {
	needs, err := f.dependencies(ctx, p, from)
	if err != nil {
		return err
	}
	files, err := chart.Overlay(from.Root, from.Path, needs)
	if err != nil {
		return err
	}
	p.found.Chart = charts.Chart{Files: files, Digest: files.Digest()}
	p.found.reads = chart.Reads(from.Path, needs)
	return nil
}

// dependencies fetches the dependencies that are not vendored in a chart's folder. If all are vendored, it makes no request.
func (f *Fetcher) dependencies(ctx context.Context, p *pass, from chart.Folder) ([]chart.Dependency, error) {
	from.Allow = p.allowChart
	missing, err := from.Missing()
	from.Allow = nil // All were judged, and the fetch goes on beside the Reconcile.
	if err != nil || missing == "" {
		return nil, err
	}
	query, err := f.query(ctx, p, "") // The dependencies may be at several hosts.
	if err != nil {
		return nil, err
	}
	query.Request += " " + missing
	query.Version += " " + missing
	if p.pin != "" {
		query.MaxAge = math.MaxInt64
	}
	fetched := func() ([]chart.Dependency, error) {
		// Do not use lastOf: the dependencies of an earlier version of the chart do not fit this one.
		return f.Answers.Dependencies.Get(query, func() (cache.Fetcher[[]chart.Dependency], error) {
			if from.Auth, err = f.chartAuth(ctx, p); err == nil {
				from.Registries, err = f.accesses(ctx, p)
			}
			return func(ctx context.Context) ([]chart.Dependency, error) { return f.Charts.Dependencies(ctx, from) }, err
		})
	}
	needs, err := fetched()
	if err == nil && !f.stillThere(needs) {
		f.Answers.Dependencies.Forget(string(p.App.UID))
		needs, err = fetched()
	}
	if until, failure := f.Answers.Dependencies.Failure(query.Key); failure != nil {
		p.found.stale.retry = until.Sub(p.Now())
	}
	return needs, err
}

func (f *Fetcher) chartAuth(ctx context.Context, p *pass) (transport.Auth, error) {
	if source := p.App.Spec.Helm.Git; source != nil {
		return transport.ReadAuth(ctx, f.Inputs.Secrets(p.Subject), p.App.Namespace, source.SecretRef)
	}
	return transport.Auth{}, nil
}

func (f *Fetcher) stillThere(needs []chart.Dependency) bool {
	for _, d := range needs {
		if (d.Path == "" && !f.Charts.Has(d.Archive)) || !f.stillThere(d.Needs) {
			return false
		}
	}
	return true
}
