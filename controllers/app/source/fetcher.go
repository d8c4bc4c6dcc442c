// Package source brings at hand what Apps are made from: their own folder, a Git repository, an artifact, a chart, an image chosen by a
// policy. It waits for no server: an App is woken when its source has answered.
package source

import (
	"context"
	"io/fs"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/references"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/app/wake"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/chart"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/release/charts"
)

// Fetcher finds the sources of Apps.
type Fetcher struct {
	Client client.Reader
	Inputs *inputs.Reader
	Queue  *wake.Queue
	// Folder returns the App's folder in the repository that declares it.
	Folder func(ctx context.Context, app *v1alpha1.App) (*folder.Folder, error)
	Git    *git.Store
	Charts *chart.Store
	// Artifacts are those of OCI registries and of Flux's sources.
	Artifacts *artifact.Store
	// Tags lists the tags of image repositories for image policies.
	Tags *image.Store
	// Answers are what sources last answered.
	Answers *Answers

	users   references.Index
	pushes  pushes
	queries subject.Memory[lastQuery]
	// reads are what Git Apps, and charts in Git, are made from in a commit, while no other build is under way.
	reads sync.Map
	// unserved are the Apps with a Flux source of a kind that is not served.
	unserved sync.Map
}

// lastQuery is the last query for an App's source. It outlives a Reconcile.
type lastQuery struct {
	// question is the last one, source the answers that the App shares with others, and cause the reason of the query; see causeOf.
	question cache.Question
	source   string
	cause    string
	image    imageMemory
}

// Found is what a Reconcile found the source of an App to be.
type Found struct {
	// Folder is the App's own, where the spec refers to it.
	Folder *folder.Folder
	// Files are what a Git App is made from, and of a chart in Git its commit.
	Files Files
	// Chart is that of a Helm App.
	Chart charts.Chart
	// Revision names all of it for people; "" while it is not known whether a commit is news for the App.
	Revision string
	// Image is what an image policy chose; nil without a policy.
	Image *v1alpha1.ImageStatus
	// Kept: the source is not available, so the pass only checks the health of what runs.
	Kept bool
	// InLine: the source waits for its turn to be fetched.
	InLine bool

	// reads are what the last build of a Git App read of a commit, and what a chart there is made from; nil if that is not known.
	reads folder.Reads
	// imageStale is why the registry could not be reached; Image is then its last answer.
	imageStale error
	image      *imageMemory
	stale      stale
}

// Files are what a Git App is made from: a commit, an artifact of a registry, or one of Flux.
type Files struct {
	// FS is the whole of it, without what the App ignores.
	FS fs.FS
	// Revision names it for people. Of the same Digest are the same files, before any is ignored, as far as the App is made from them. Of a
	// commit the Digest is "" until that is known.
	Revision, Digest string
	// reading is what is read of the files of a commit; nil for an artifact, all of which counts.
	reading *folder.Reading
}

// pass is one look for the source of an App.
type pass struct {
	*subject.Subject
	found *Found
	last  *lastQuery
}

// Fetch brings the source at hand, and returns how the step of the source ends.
func (f *Fetcher) Fetch(ctx context.Context, s *subject.Subject, found *Found) error {
	p := &pass{s, found, f.queries.Get(s.App)}
	found.image = &p.last.image
	if !sharesSource(&s.App.Spec) {
		p.last.source = ""
	}
	f.refer(p)
	last, known := f.reads.LoadAndDelete(s.Key()) // Only a build brings it back.
	if known {
		found.reads = last.(folder.Reads)
	}
	err := f.bring(ctx, p)
	if known && (err != nil || found.Kept) {
		f.reads.Store(s.Key(), last)
	}
	return f.end(p, err)
}

func (f *Fetcher) bring(ctx context.Context, p *pass) error {
	if usesFolder(&p.App.Spec) {
		own, err := f.Folder(ctx, p.App)
		if err != nil {
			return err
		}
		p.found.Folder = own
	}
	switch spec := &p.App.Spec; {
	case spec.Image != nil:
		p.found.Revision = p.DeclaredRevision()
		return f.chooseImage(ctx, p)
	case spec.Git != nil:
		return f.fetchFiles(ctx, p)
	case spec.Helm != nil:
		return f.fetchChart(ctx, p)
	}
	p.found.Revision = p.DeclaredRevision()
	return nil
}

// sharesSource reports whether the App is made from a source that it shares with others; see shared.
func sharesSource(spec *v1alpha1.AppSpec) bool {
	return (spec.Git != nil && spec.Git.SourceRef == nil) || (spec.Helm != nil && spec.Helm.Git != nil)
}

// Record writes what was found into the status. Where no image could be chosen, the last one stays.
func (f *Found) Record(app *v1alpha1.App) {
	if f.Revision != "" {
		app.Status.LastAttemptedRevision, app.Status.SourceDigest = f.Revision, f.Files.Digest
	}
	switch {
	case app.Spec.Image == nil || app.Spec.Image.Policy == nil:
		app.Status.Image = nil
	case f.Image != nil:
		app.Status.Image = f.Image
	}
}

// Users returns the Apps that are made from a ConfigMap, Secret or Flux source.
func (f *Fetcher) Users(namespace, kind, name string) []types.NamespacedName {
	return f.users.Users(references.Object{Namespace: namespace, Kind: kind, Name: name})
}

// Forget drops what is known of an App.
func (f *Fetcher) Forget(app *v1alpha1.App) {
	key := client.ObjectKeyFromObject(app)
	f.drop(f.users.Set(key, nil))
	f.Answers.forget(app.UID)
	f.queries.Forget(app)
	f.reads.Delete(key)
	f.unserved.Delete(key)
}
