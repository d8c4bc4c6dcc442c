// Package source finds the sources of Apps: their own folder, a Git repository, an artifact, a chart, or an image chosen by a policy. It also verifies who
// signed charts, artifacts and images. It never blocks on a server: an App is woken when its source has answered.
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
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/release/charts"
)

// Fetcher fetches the sources of Apps.
type Fetcher struct {
	Client client.Reader
	Inputs *inputs.Reader
	Queue  *wake.Queue
	// Folder returns the App's folder in the repository that declares it.
	Folder func(ctx context.Context, app *v1alpha1.App) (*folder.Folder, error)
	Git    *git.Store
	Charts *chart.Store
	// Artifacts stores the artifacts of OCI registries and of Flux sources.
	Artifacts *artifact.Store
	// Tags lists the tags of image repositories for image policies.
	Tags *image.Store
	// Images writes the images that policies choose to Git; nil to write none.
	Images *ImageWriter
	Signatures
	// Answers are the last answers of sources.
	Answers *Answers

	users   references.Index
	pushes  pushes
	queries subject.Memory[lastQuery]
	seen
}

// seen is what Reconciles have found out.
type seen struct {
	// reads has for each Git App, and each chart in Git, which files of a commit the last build read. It has no entry while a new build is
	// in progress.
	reads sync.Map
}

// lastQuery is the last query for an App's source. It is kept in memory between Reconciles.
type lastQuery struct {
	// question is the last question. source is the key of the answers that the App shares with others. cause is the reason for the query,
	// see causeOf.
	question cache.Question
	source   string
	cause    string
	image    imageMemory
}

// Found is the source of an App, as a Reconcile found it.
type Found struct {
	// Folder is the App's own folder, if the spec refers to files in it.
	Folder *folder.Folder
	// Files are the files of a Git App or, for a chart in Git, its commit.
	Files Files
	// Chart is the chart of a Helm App.
	Chart charts.Chart
	// Revision names the source for people; "" while it is not known whether a commit changes files that the App uses.
	Revision string
	// Image is the image that the policy chose; nil without a policy. Reference is the image that is delivered then: that one or, with
	// policy.write, the one that the App's file names.
	Image     *v1alpha1.ImageStatus
	Reference string
	// Kept: the source is not available, so the Reconcile only checks the health of what runs.
	Kept bool
	// InLine: the source waits for its turn to be fetched.
	InLine bool

	// reads are the files of a commit that the last build of a Git App read, or that a chart in Git uses; nil if that is not known.
	reads folder.Reads
	imageFacts
	stale  stale
	freeze freezing
	// Broken are the rules of policies that the source breaks, whatever their action.
	Broken []policy.Notice
	// Encryption says which files are encrypted for an earlier key of the tenant.
	Encryption Encryption
}

// Files are the files of a Git App: of a commit, of an artifact of a registry, or of a Flux artifact.
type Files struct {
	// FS has all files, except those that the App ignores.
	FS fs.FS
	// Revision names the files for people. Digest is the digest of the files that the App uses, including ignored ones. For a commit, Digest
	// is "" until it is known which files the App uses.
	Revision, Digest string
	// Author is the name of the commit's author; "" for an artifact.
	Author string
	// reading records which files of a commit are read; nil for an artifact, of which all files count.
	reading *folder.Reading
}

// pass is one call of Fetch.
type pass struct {
	*subject.Subject
	found *Found
	last  *lastQuery
	// pin is the revision at which a freeze keeps the App; "" without one.
	pin string
}

// Fetch finds the App's source, and returns the outcome of the step SourceReady.
func (f *Fetcher) Fetch(ctx context.Context, s *subject.Subject, found *Found) error {
	p := &pass{Subject: s, found: found, last: f.queries.Get(s.App)}
	p.hold()
	found.image = &p.last.image
	if !sharesSource(&s.App.Spec) {
		p.last.source = ""
	}
	f.refer(p)
	last, known := f.reads.LoadAndDelete(s.Key()) // A new build stores its reads again.
	if known {
		found.reads = last.(folder.Reads)
	}
	err := p.allowDeclared()
	if err == nil {
		err = f.bring(ctx, p)
	}
	if err == nil {
		p.keep()
	}
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

// sharesSource reports whether other Apps may share the App's source; see shared.
func sharesSource(spec *v1alpha1.AppSpec) bool {
	return (spec.Git != nil && spec.Git.SourceRef == nil) || (spec.Helm != nil && spec.Helm.Git != nil)
}

// Record writes the source into the status. If no image could be chosen, the last one stays.
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

// Users returns the Apps that use a ConfigMap, Secret or Flux source.
func (f *Fetcher) Users(namespace, kind, name string) []types.NamespacedName {
	return f.users.Users(references.Object{Namespace: namespace, Kind: kind, Name: name})
}

// Forget drops the state of an App.
func (f *Fetcher) Forget(app *v1alpha1.App) {
	key := client.ObjectKeyFromObject(app)
	f.drop(f.users.Set(key, nil))
	f.Answers.forget(app.UID)
	if f.Images != nil {
		f.Images.Forget(app)
	}
	if f.Signed != nil {
		f.Signed.Forget(app)
	}
	f.waiting.Forget(app)
	f.queries.Forget(app)
	f.reads.Delete(key)
}
