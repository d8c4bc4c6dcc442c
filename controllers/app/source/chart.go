package source

import (
	"context"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/release/charts"
)

// fetchChart brings a Helm app's chart at hand: from a repository, from the app's own folder, or from one of another Git
// repository.
func (f *Fetcher) fetchChart(ctx context.Context, p *pass) error {
	switch spec := p.App.Spec.Helm; {
	case spec.Path != "":
		p.found.Revision = p.DeclaredRevision()
		// What the chart depends on in other folders is the app's own, too: only that is in the digest of its input.
		return f.chartFolder(ctx, p, chart.Folder{Root: p.found.Folder, Path: spec.Path, Tenant: p.Owner.Tenant})
	case spec.Git != nil:
		return f.chartFromGit(ctx, p, spec.Git)
	}
	return f.chartArchive(ctx, p)
}

// chartFromGit takes a folder of a commit as the chart, and notes what it is made from there; what it takes from repositories is
// no commit's business.
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
	fetched := func() (chart.Archive, error) {
		return lastOf(p, f.Answers.Archives, query, func() (cache.Fetcher[chart.Archive], error) {
			auth, err := transport.ReadAuth(ctx, f.Inputs.Secrets(p.Subject), p.App.Namespace, spec.SecretRef)
			wanted := chart.Source{
				Repository: spec.Repository, Name: spec.Chart, Version: spec.Version, Digest: spec.Digest, Insecure: spec.Insecure,
				Auth: auth, Tenant: p.Owner.Tenant,
			}
			return func(ctx context.Context) (chart.Archive, error) { return f.Charts.Fetch(ctx, wanted) }, err
		})
	}
	archive, err := fetched()
	if err == nil && !f.Charts.Has(archive) {
		f.Answers.Archives.Forget(string(p.App.UID))
		archive, err = fetched()
	}
	p.found.Chart, p.found.Revision = charts.Chart{Archive: archive.Path, Digest: archive.Digest}, archive.Version
	return err
}

// chartFolder takes a folder as the chart, with the dependencies that are not vendored in it.
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

// dependencies fetches what a chart's folder lacks; a chart that has everything costs nothing here.
func (f *Fetcher) dependencies(ctx context.Context, p *pass, from chart.Folder) ([]chart.Dependency, error) {
	missing, err := from.Missing()
	if err != nil || missing == "" {
		return nil, err
	}
	query, err := f.query(ctx, p, "") // They may be at any host.
	if err != nil {
		return nil, err
	}
	query.Request += " " + missing
	query.Version += " " + missing
	fetched := func() ([]chart.Dependency, error) {
		// What an earlier chart lacked is of no use for this one.
		return f.Answers.Dependencies.Get(query, func() (cache.Fetcher[[]chart.Dependency], error) {
			from.Auth, err = f.chartAuth(ctx, p)
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
