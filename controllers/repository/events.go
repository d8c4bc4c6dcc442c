package repository

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/tree"
)

// tellHeld tells the project, and the app whose file it is, of each problem of a new commit: they keep their last good
// state, and whoever looks at them alone would take the push for delivered.
func (r *Reconciler) tellHeld(ctx context.Context, s *scope, problems []tree.Problem) {
	if s.commit.Revision == s.repository.Status.LastAttemptedRevision {
		return
	}
	for _, p := range problems {
		if p.Tenant == "" || p.Project == "" {
			continue
		}
		project := &v1alpha1.Project{}
		r.held(ctx, s, p, client.ObjectKey{Namespace: v1alpha1.HomeNamespace(p.Tenant), Name: p.Project}, project)
		if name := appOf(p.File); name != "" {
			r.held(ctx, s, p, client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(p.Tenant, p.Project), Name: name}, &v1alpha1.App{})
		}
	}
}

// held emits the event on an object that is there.
func (r *Reconciler) held(ctx context.Context, s *scope, p tree.Problem, key client.ObjectKey, o client.Object) {
	if err := r.Client.Get(ctx, key, o); err != nil {
		return
	}
	r.Steps.Events.Eventf(o, s.repository, corev1.EventTypeWarning, v1alpha1.InvalidTreeReason, "Sync",
		"kept at its last good state, because of %s: %s", s.commit.Revision, p.String())
}

// appOf returns the app in whose folder a file lies, or "".
func appOf(file string) string {
	_, below, ok := strings.Cut("/"+file, "/apps/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return name
}
