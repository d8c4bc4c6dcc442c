package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/delivery/apply"
)

// grant creates the deployer of the project's apps and gives the tenant's owners access. What they have lost, revoke took away.
func (r *Reconciler) grant(ctx context.Context, s *scope) error {
	// Nothing runs as the deployer, so its token is mounted nowhere.
	account := core.ServiceAccount(v1alpha1.Deployer, s.namespace).WithLabels(s.labels()).WithAutomountServiceAccountToken(false)
	wanted, _ := access.Bindings(s.namespace, s.labels(), s.tenant.Spec.Owners)
	var unwanted []any
	if opening := access.NetworkPolicies(s.namespace, s.labels()); s.network.allowed != nil {
		wanted = append(wanted, opening) // Also after spec.network.policies was Own, so that apps can remove theirs.
	} else {
		unwanted = append(unwanted, opening)
	}
	if err := s.made.Withdraw(ctx, s.labels(), unwanted...); err != nil {
		return err
	}
	if err := s.made.Apply(ctx, append(wanted, account, access.Deployer(s.namespace, s.labels()))...); err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
	}
	failed := s.revoked
	if !s.hadCluster() {
		failed = errors.Join(failed, r.grantCluster(ctx, s))
	}
	if failed != nil {
		return failed
	}
	// The apps of a project without room for the accounts of people are delivered all the same.
	uninvited := r.invite(ctx, s)
	if uninvited == nil { // Otherwise Prune would delete those of the accounts that are there.
		if err := s.made.Prune(ctx, s.labels()); err != nil {
			return err
		}
	}
	if err := r.count(ctx, s); err != nil { // Count again: apps of a new project were created meanwhile, and counting them later would cost another write.
		return err
	}
	if uninvited != nil {
		return step.Degrade(step.Refused(v1alpha1.ApplyFailedReason, fmt.Errorf("making the accounts for kubeconfigs: %w", uninvited), apply.ErrForeign))
	}
	return nil
}

// invite makes the accounts as which people act by kubeconfigs, with their bindings. A project has none while a binding of an app gives
// rights to all accounts of the namespace, because people would have these, too. The policy kubeop-foreign-subject refuses new ones, so
// they are looked for only before the accounts are made.
func (r *Reconciler) invite(ctx context.Context, s *scope) error {
	if r.Manager.Name == "" {
		return nil
	}
	all := access.People(s.namespace, s.labels(), r.Manager)
	settled, err := s.made.Settled(ctx, all[len(all)-1])
	if err == nil && settled == nil {
		s.widened, err = r.bindingOfPeople(ctx, s.namespace)
	}
	switch {
	case err != nil:
		return err
	case s.widened != "":
		return s.made.Withdraw(ctx, s.labels(), all...)
	}
	return s.made.Apply(ctx, all...)
}

// expel removes these accounts, with which all their tokens end, once the manager gives none any more, and when the project is being deleted.
func (r *Reconciler) expel(ctx context.Context, s *scope) error {
	if r.Manager.Name != "" && s.project.DeletionTimestamp.IsZero() {
		return nil
	}
	return s.made.Withdraw(ctx, s.labels(), access.People(s.namespace, s.labels(), r.Manager)...)
}

// bindingOfPeople returns the name of a binding of an app to the accounts of people, or to all accounts of the namespace; "" for none.
func (r *Reconciler) bindingOfPeople(ctx context.Context, namespace string) (string, error) {
	bindings := &rbacv1.RoleBindingList{}
	if err := r.Direct.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("looking for bindings to all service accounts of namespace %s: %w", namespace, err)
	}
	for _, binding := range bindings.Items {
		ofPeople := func(s rbacv1.Subject) bool { return access.OfPeople(s.Kind, s.Name, namespace) }
		if !strings.HasPrefix(binding.Name, "kubeop-") && slices.ContainsFunc(binding.Subjects, ofPeople) {
			return binding.Name, nil
		}
	}
	return "", nil
}
