package app

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/release"
)

// Preview is what a Reconcile of an App would deliver.
type Preview struct {
	*subject.Subject
	// Revision names the source.
	Revision string
	// Objects are the objects to apply, checked and labelled. Release is the release of a Helm App, which has no Objects.
	Objects []*unstructured.Unstructured
	Release *release.Request
}

// Preview runs the steps of a Reconcile that write nothing, and repeats one that waits until ctx ends. With an error it still masks secrets.
func (r *Reconciler) Preview(ctx context.Context, app *v1alpha1.App, at project.Place) (*Preview, error) {
	s := r.newScope(app)
	r.projects.Settle(s.Subject, at)
	s.Fill = podsecurity.FillOf(app.Spec.PodSecurity.Fill, s.PodSecurity)
	for _, do := range []func(context.Context, *scope) error{r.fetch, r.renderer.render, r.admitter.admit} { // A Helm App has no objects yet.
		if err := step.Repeat(ctx, 20*time.Millisecond, 20*time.Millisecond, func() error { return do(ctx, s) }); err != nil {
			return &Preview{Subject: s.Subject}, err
		}
	}
	p := &Preview{Subject: s.Subject, Revision: s.found.Revision, Objects: s.objects}
	if released(app) {
		request := r.releaser.request(ctx, s)
		p.Release = &request
	}
	return p, nil
}
