// Package policy says what the objects of an app may not be. It is the one gate between what a tenant's source says and
// what is applied: every object passes it after rendering, the ones Helm renders too. It is pure; Kubernetes' own
// admission (Pod Security, quotas, RBAC of the project's deployer) holds the rest.
package policy

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/render/objectset"
)

// Scope reports whether objects of a kind live in namespaces. It returns a meta.NoKindMatchError (or NoResourceMatchError) for a kind that
// the API server does not serve, and a *kube.UnkeptKindError for a kind that is not stored; any other error means that the answer is
// unknown at present.
type Scope func(schema.GroupVersionKind) (namespaced bool, err error)

// Check returns every violation among the objects of an app in namespace, joined and in the order of their text, each a
// *Violation on a line of its own; nil when there is none. Lists are looked into, at any depth. Of cluster-scoped kinds only
// clusterKinds are allowed, as a Tenant names them. An error that is no Violation is scope's own: whether the objects are
// allowed is not known yet.
func Check(objects []*unstructured.Unstructured, namespace string, scope Scope, clusterKinds []string) error {
	var found []*Violation
	for _, object := range objects {
		members, err := objectset.Expand(object)
		if err != nil {
			found = append(found, &Violation{nameOf(object), Malformed, "is malformed: " + oneLine(err.Error())})
			continue
		}
		for _, member := range members {
			broken, err := check(member, namespace, scope, clusterKinds)
			if err != nil {
				return err
			}
			found = append(found, broken...)
		}
	}
	return join(found)
}

// OnlyUnknownKinds reports whether an error of Check holds nothing but unknown kinds: the same objects are allowed once
// the API server serves those, so looking again after a refresh of its discovery makes sense.
func OnlyUnknownKinds(err error) bool {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return false
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool {
		var violation *Violation
		return !errors.As(err, &violation) || violation.Rule != UnknownKind
	})
}

func check(object *unstructured.Unstructured, namespace string, scope Scope, clusterKinds []string) ([]*Violation, error) {
	name := nameOf(object)
	kind := object.GroupVersionKind()
	namespaced, err := scope(kind)
	var found []*Violation
	var misspelled *kube.MisspelledKindError
	var unkept *kube.UnkeptKindError
	switch {
	case errors.As(err, &unkept):
		return []*Violation{{name, UnkeptKind, fmt.Sprintf("is nothing that an app can hold, so take it out: %v", unkept)}}, nil
	case errors.As(err, &misspelled):
		why := fmt.Sprintf("is of a kind the cluster does not know: %s %s; did you mean %s?", oneLine(kind.GroupVersion().String()), oneLine(kind.Kind), misspelled.Meant)
		return []*Violation{{name, MisspelledKind, why}}, nil
	case meta.IsNoMatchError(err):
		why := fmt.Sprintf("is of a kind the cluster does not know: %s %s", oneLine(kind.GroupVersion().String()), oneLine(kind.Kind))
		found = append(found, &Violation{name, UnknownKind, why})
	case err != nil:
		return nil, fmt.Errorf("finding the scope of %s: %w", name, err)
	case !namespaced:
		if why := clusterScoped(object, clusterKinds); why != "" {
			return []*Violation{{name, ClusterScoped, why}}, nil
		}
	}
	for _, rule := range rules {
		if why := rule.broken(object, namespace); why != "" {
			found = append(found, &Violation{name, rule.name, why})
		}
	}
	return found, nil
}
