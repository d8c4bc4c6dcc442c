package repository

import (
	"context"
	"io/fs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/plan"
)

// turnOf says when in a pass an object is applied.
type turnOf int

const (
	atOnce       turnOf = iota
	afterShrinks        // after the projects whose quotas the commit lowers
	notNow              // in a later pass
)

// turnOf returns when an object is applied. A project whose quota grows comes after those that give something back to the budget of their
// tenant, and does not grow while one of these could not be applied.
func (r *Reconciler) turnOf(ctx context.Context, s *scope, ref identity.Ref, failed failures) (turnOf, error) {
	if ref.Project == "" || ref.App != "" {
		return atOnce, nil
	}
	a, err := r.allotment(ctx, s, ref.Tenant)
	if err != nil || !a.Grows[ref.Project] || len(a.Shrinks) == 0 {
		return atOnce, err
	}
	for project := range a.Shrinks {
		if failed[identity.Ref{Tenant: ref.Tenant, Project: project}] != nil {
			return notNow, nil
		}
	}
	return afterShrinks, nil
}

// allotment decides, once in a pass, which projects of a tenant may have the quota that the commit declares.
func (r *Reconciler) allotment(ctx context.Context, s *scope, name string) (plan.Allotment, error) {
	if a, known := s.allotments[name]; known {
		return a, nil
	}
	p := s.progress
	tenant, declared := p.tree.Declared(identity.Ref{Tenant: name}).(*v1alpha1.Tenant)
	if !declared {
		var err error
		if tenant, err = r.tenant(ctx, name); err != nil {
			return plan.Allotment{}, err
		}
	}
	b, err := r.Usage.Budgets.Of(ctx, tenant)
	if err != nil {
		return plan.Allotment{}, err
	}
	var a plan.Allotment
	if b != nil {
		for _, n := range p.tree.ProjectsOf(name) {
			if n.Declared() && p.refused[n.Ref()].Code != code.WriteRefused {
				b.Declare(p.tree.Object(n, "").(*v1alpha1.Project))
			}
		}
		a = b.Fit()
	}
	s.allotments[name] = a
	return a, nil
}

// tenant returns a Tenant; an empty one if there is none, as for the platform repository.
func (r *Reconciler) tenant(ctx context.Context, name string) (*v1alpha1.Tenant, error) {
	tenant := &v1alpha1.Tenant{}
	if name == "" {
		return tenant, nil
	}
	return tenant, client.IgnoreNotFound(r.Client.Get(ctx, client.ObjectKey{Name: name}, tenant))
}

// fits reports whether a project fits into the budget of its tenant. One that does not is a problem of its file.
func (r *Reconciler) fits(ctx context.Context, s *scope, ref identity.Ref) (bool, error) {
	if ref.App != "" {
		return true, nil
	}
	a, err := r.allotment(ctx, s, ref.Tenant)
	if err != nil {
		return false, err
	}
	over, refused := a.Refused[ref.Project]
	if !refused {
		return true, nil
	}
	p := s.progress
	node, _ := p.tree.Find(ref)
	var at yamlcheck.Position
	if text, err := fs.ReadFile(s.commit.Root, p.tree.File(node)); err == nil && p.tree.OriginOf(ref) == nil { // Of a branch, project.yaml is not read.
		at = document.Parse("", text).Position(over.Field())
	}
	p.refuseAt(at, ref, code.OverBudget, over)
	p.over.Add(ref)
	return false, nil
}
