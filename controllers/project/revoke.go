package project

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/access"
)

// revoke takes away what administrators no longer allow the tenant. It depends on nothing in the tenant's files, and gives nobody anything: the later
// steps, which may fail for as long as those files make them fail, run also if it fails. Whether access is ready, grant says.
func (r *Reconciler) revoke(ctx context.Context, s *scope) error {
	if s.revoked = errors.Join(r.expel(ctx, s), r.takeAway(ctx, s)); s.revoked != nil {
		return step.GoOn(s.revoked)
	}
	return step.Skip()
}

// takeAway takes away roles from people who are no longer owners, the credentials of registries, and rights to cluster-scoped kinds. Each is tried,
// whatever becomes of the others. Cluster-wide rights that the project had are also extended.
func (r *Reconciler) takeAway(ctx context.Context, s *scope) (err error) {
	roles := r.narrowRoles(ctx, s)
	s.pulls, err = r.Registries.Withdraw(ctx, s.pullsAt())
	if s.hadCluster() {
		err = errors.Join(err, r.grantCluster(ctx, s))
	}
	return errors.Join(roles, err)
}

// retract is revoke for a project that is being deleted: the tenant decides how long its apps stay, because any of their objects may have a finalizer, and
// the apps need the other rights to delete their objects. If the tenant is gone, what it may have is unknown, and all stays but the accounts of people.
func (r *Reconciler) retract(ctx context.Context, s *scope) error {
	if s.ofPlatform() {
		return nil
	}
	expelled := r.expel(ctx, s)
	s.tenant = &v1alpha1.Tenant{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: tenantOf(s.project)}, s.tenant); err != nil {
		if apierrors.IsNotFound(err) {
			return expelled
		}
		return errors.Join(expelled, fmt.Errorf("reading tenant %s: %w", tenantOf(s.project), err))
	}
	return errors.Join(expelled, r.takeAway(ctx, s))
}

// narrowRoles takes the people who are no longer owners out of the bindings of the owners.
func (r *Reconciler) narrowRoles(ctx context.Context, s *scope) error {
	wanted, unwanted := access.Bindings(s.namespace, s.labels(), s.tenant.Spec.Owners)
	failed := []error{s.made.Withdraw(ctx, s.labels(), unwanted...)}
	for _, binding := range wanted {
		if err := r.narrowRole(ctx, s, binding.(*rbac.RoleBindingApplyConfiguration)); err != nil {
			failed = append(failed, fmt.Errorf("taking away access by RoleBinding/%s: %w", *binding.(*rbac.RoleBindingApplyConfiguration).Name, err))
		}
	}
	return errors.Join(failed...)
}

// narrowRole leaves in a binding only those of its subjects that are wanted. A binding that the watch shows as wanted, or not at all, is not read.
func (r *Reconciler) narrowRole(ctx context.Context, s *scope, wanted *rbac.RoleBindingApplyConfiguration) error {
	key := client.ObjectKey{Namespace: s.namespace, Name: *wanted.Name}
	if seen, known, err := r.Applier.Live(ctx, rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), key); known && seen == nil || err != nil {
		return err
	}
	if settled, err := s.made.Settled(ctx, wanted); settled != nil || err != nil {
		return err
	}
	live := &rbacv1.RoleBinding{}
	if err := r.Direct.Get(ctx, key, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	left := *wanted
	left.Subjects = nil
	for _, subject := range wanted.Subjects {
		if slices.Contains(live.Subjects, subjectOf(subject)) {
			left.Subjects = append(left.Subjects, subject)
		}
	}
	unwanted := func(is rbacv1.Subject) bool {
		return !slices.ContainsFunc(left.Subjects, func(subject rbac.SubjectApplyConfiguration) bool { return subjectOf(subject) == is })
	}
	switch {
	case !slices.ContainsFunc(live.Subjects, unwanted):
		return nil
	case len(left.Subjects) == 0: // To apply no list would leave one that somebody else wrote.
		return s.made.Withdraw(ctx, s.labels(), wanted)
	}
	return s.made.Apply(ctx, &left)
}

func subjectOf(applied rbac.SubjectApplyConfiguration) rbacv1.Subject {
	return rbacv1.Subject{Kind: *applied.Kind, Name: *applied.Name, APIGroup: *applied.APIGroup}
}
