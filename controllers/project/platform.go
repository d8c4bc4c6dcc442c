package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/namespace"
	"github.com/kubeop/kubeop/delivery/podsecurity"
)

// The steps of projects of the platform itself. Only administrators can declare such a project. It has no quota, no network policy and no
// owners, and its namespace may have existed before.

// resolvePlatform checks that the project may have a namespace of its name.
func (r *Reconciler) resolvePlatform(ctx context.Context, s *scope) error {
	switch name := s.project.Name; {
	case !r.Clients.Platform():
		return step.Stop(v1alpha1.DependencyNotReadyReason, kube.ErrPlatformOff)
	case strings.HasPrefix(name, v1alpha1.HomeNamespace("")) || name == r.Clients.Operator:
		return step.Stop(v1alpha1.NamespaceTakenReason, fmt.Errorf("namespace %s belongs to a tenant or to kubeop itself: give the project another name in Git", name))
	case strings.HasPrefix(name, "kube-") && r.Clients.PlatformApps != kube.PlatformAppsClusterAdmin:
		return step.Stop(v1alpha1.NamespaceTakenReason, fmt.Errorf(
			"who may write everything in namespace %s controls the cluster, and platformApps is Namespaced: ask an administrator of the cluster to set ClusterAdmin as %s", name,
			command.OfChart("platformApps")))
	}
	return r.count(ctx, s)
}

// namespaceSpec returns the project's settings for its namespace.
func (s *scope) namespaceSpec() v1alpha1.PlatformNamespace {
	if spec := s.project.Spec.Namespace; spec != nil {
		return *spec
	}
	return v1alpha1.PlatformNamespace{}
}

// makePlatformNamespace creates the namespace, or adopts the one that exists.
func (r *Reconciler) makePlatformNamespace(ctx context.Context, s *scope) error {
	spec, owner := s.namespaceSpec(), namespace.Owner{Labels: s.labels()}
	created := namespace.Owner{Labels: s.labels()}
	created.Labels[v1alpha1.AdoptedLabel] = "false"
	known, err := r.Watch.Namespace(ctx, s.namespace)
	if err != nil {
		return err
	}
	adopted := known != nil && known.GetLabels()[v1alpha1.AdoptedLabel] != "false" // A namespace without the label is never deleted.
	if known == nil && spec.Adopt {
		if adopted, err = namespace.Adopt(ctx, r.Direct, s.namespace, owner); err != nil {
			return err
		}
	}
	if adopted {
		err := s.made.Apply(ctx, namespace.Adopted(s.namespace, owner, spec.PodSecurity))
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
	}
	err = r.home(s, created).Make(ctx, s.made, namespace.Terms{PodSecurity: cmp.Or(spec.PodSecurity, podsecurity.Default)})
	if errors.Is(err, namespace.ErrTaken) {
		return step.Add(err, "to have apps delivered into it, set spec.namespace.adopt: true in project.yaml")
	}
	return err
}

// grantPlatform gives the account that delivers the platform's apps its rights in the namespace.
func (r *Reconciler) grantPlatform(ctx context.Context, s *scope) error {
	if err := s.made.Apply(ctx, access.Platform(s.namespace, r.Clients.Operator, s.labels())); err != nil {
		return step.Refused(v1alpha1.ApplyFailedReason, err, apply.ErrForeign)
	}
	var err error
	if _, s.again, err = r.Hosts.Names(ctx, s.hosts(nil)); err != nil {
		return err
	}
	return r.count(ctx, s)
}
