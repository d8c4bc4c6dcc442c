package app

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
)

// fetch brings the source at hand: the app's own folder where the spec refers to it, a commit, a chart. It does not wait for one that
// has to be asked: the app is woken when that has answered.
func (r *Reconciler) fetch(ctx context.Context, s *scope) error {
	if !followsSource(&s.app.Spec) {
		s.memory.follows = ""
	}
	r.refer(s)
	key := client.ObjectKeyFromObject(s.app)
	last, known := r.reads.LoadAndDelete(key) // Only a build brings it back.
	if known {
		s.reads = last.(folder.Reads)
	}
	err := r.bring(ctx, s)
	if known && (err != nil || s.kept) {
		r.reads.Store(key, last)
	}
	return r.fetched(s, err)
}

func (r *Reconciler) bring(ctx context.Context, s *scope) error {
	if usesFolder(&s.app.Spec) {
		folder, err := r.Folder(ctx, s.app)
		if err != nil {
			return err
		}
		s.folder = folder
	}
	return r.fetchSource(ctx, s)
}

// followsSource reports whether the app is made from a source that it shares with others; see shared.
func followsSource(spec *v1alpha1.AppSpec) bool {
	return (spec.Git != nil && spec.Git.SourceRef == nil) || (spec.Helm != nil && spec.Helm.Git != nil)
}

// usesFolder reports whether the spec names files beside app.yaml.
func usesFolder(spec *v1alpha1.AppSpec) bool {
	return (spec.Image != nil && len(spec.Image.ConfigFiles) > 0) || (spec.Raw != nil && spec.Raw.Path != "") || (spec.Helm != nil && (spec.Helm.Path != "" || len(spec.Helm.ValuesFiles) > 0))
}

func (r *Reconciler) fetchSource(ctx context.Context, s *scope) error {
	switch {
	case s.app.Spec.Image != nil:
		s.revision = declaredRevision(s.app)
		return r.chooseImage(ctx, s)
	case s.app.Spec.Git != nil:
		return r.fetchFiles(ctx, s)
	case s.app.Spec.Helm != nil:
		return r.fetchChart(ctx, s)
	}
	s.revision = declaredRevision(s.app)
	return nil
}

// question is what makes the source be asked again: also another version of the Secrets with its credentials.
func (r *Reconciler) question(ctx context.Context, s *scope) (cache.Question, error) {
	q := cache.QuestionOf(s.app)
	versions, err := r.secretVersions(ctx, s)
	q.Request += " " + r.pushes.of(s.owner.Tenant, gitURL(&s.app.Spec)) + versions
	return q, err
}

// declaredRevision is the commit that declared the app, or for an app that was not declared in Git its generation.
func declaredRevision(app *v1alpha1.App) string {
	if revision := app.Annotations[v1alpha1.RevisionAnnotation]; revision != "" {
		return revision
	}
	return fmt.Sprintf("generation %d", app.Generation)
}

// secretVersions are those of the Secrets with the credentials of an app's source.
func (r *Reconciler) secretVersions(ctx context.Context, s *scope) (versions string, err error) {
	for _, secret := range secretRefsOf(&s.app.Spec) {
		version, err := r.Version(ctx, s.app.Namespace, "Secret", secret.Name)
		if err != nil {
			return "", err
		}
		versions += " " + version
	}
	return versions, nil
}
