// Package policy decides which objects an app may have. Every object passes this check between rendering and applying, including the
// objects that Helm renders. The check is pure. Kubernetes' own admission (Pod Security, quotas, RBAC of the project's deployer) enforces
// the rest.
package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

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

// Bounds are the namespaces and kinds in which an app may have objects.
type Bounds struct {
	// Namespace is the app's own namespace.
	Namespace string
	// ClusterKinds are the cluster-scoped kinds that an app of a tenant may have, as its Tenant names them.
	ClusterKinds []string
	// Taints are the keys of taints that the pods of a tenant's app may tolerate, besides those of lost nodes. IngressAnnotations are
	// annotations that its Ingresses may have although they reach beyond the app. CSIDrivers are the drivers of which its pods may have
	// inline volumes.
	Taints, IngressAnnotations, CSIDrivers []string
	// PriorityClasses are those that its pods may name: those of its Tenant, and the cluster's default class if that is known. GracePeriod is the longest
	// that its pods may have; 0 for any.
	PriorityClasses []string
	GracePeriod     time.Duration
	// ExternalNames are domains of external names that its Services may have, and ExternalIPs ranges of external IPs: those that some Policy lists.
	ExternalNames, ExternalIPs []string
	// NetworkPolicies: an app of a tenant may have NetworkPolicies. Judge says what they may open.
	NetworkPolicies bool
	// Platform are the bounds of an app of the platform itself; nil for an app of a tenant.
	Platform *Platform
}

// rules returns the rules for the objects of an app.
func (b Bounds) rules() []rule {
	if b.Platform == nil {
		return append([]rule{
			{Toleration, b.toleration}, {IngressAnnotation, b.ingressAnnotation}, {VolumeType, b.volumeType}, {PriorityClass, b.priorityClass}, {GracePeriod, b.gracePeriod},
			{"Guardrail", b.guardrail}, {"ExternalService", b.externalService},
		}, tenantsApps...)
	}
	return append([]rule{{"ForeignNamespace", b.Platform.foreignNamespace}}, everyApp...)
}

// Check returns every violation among the objects of an app, joined and in the order of their text, each a *Violation on a line of its own;
// nil when there is none. It checks the items of Lists, at any depth. An error that is not a Violation comes from scope: it is not known yet
// whether the objects are allowed.
func Check(objects []*unstructured.Unstructured, bounds Bounds, scope Scope) error {
	var found []*Violation
	for _, object := range objects {
		members, err := objectset.Expand(object)
		if err != nil {
			found = append(found, &Violation{Object: NameOf(object), Rule: Malformed, Why: "is malformed: " + oneLine(err.Error())})
			continue
		}
		for _, member := range members {
			broken, err := check(member, bounds, scope)
			if err != nil {
				return err
			}
			found = append(found, broken...)
		}
	}
	return join(found)
}

// OnlyUnknownKinds reports whether an error of Check is only about unknown kinds: the same objects are allowed once the API server serves
// those kinds, so it makes sense to refresh discovery and check again.
func OnlyUnknownKinds(err error) bool {
	return err != nil && Without(err, UnknownKind) == nil
}

// installed is the remedy for kinds that the API server does not serve.
var installed = Remedy{"kinds that the cluster does not know", "check both, or ask an administrator of the cluster to install the CustomResourceDefinition"}

func check(object *unstructured.Unstructured, bounds Bounds, scope Scope) ([]*Violation, error) {
	name := NameOf(object)
	kind := object.GroupVersionKind()
	namespaced, err := scope(kind)
	var found []*Violation
	var misspelled *kube.MisspelledKindError
	var unkept *kube.UnkeptKindError
	switch {
	case errors.As(err, &unkept):
		return []*Violation{{Object: name, Rule: UnkeptKind, Why: fmt.Sprintf("is nothing that an app can hold, so take it out: %v", unkept)}}, nil
	case errors.As(err, &misspelled):
		why := fmt.Sprintf("is of a kind the cluster does not know: %s %s; did you mean %s?", oneLine(kind.GroupVersion().String()), oneLine(kind.Kind), misspelled.Meant)
		return []*Violation{{Object: name, Rule: MisspelledKind, Why: why}}, nil
	case meta.IsNoMatchError(err):
		why := fmt.Sprintf("is of a kind the cluster does not know: %s %s", oneLine(kind.GroupVersion().String()), oneLine(kind.Kind))
		found = append(found, &Violation{Object: name, Rule: UnknownKind, Why: why, Remedies: []Remedy{installed}})
	case err != nil:
		return nil, fmt.Errorf("finding the scope of %s: %w", name, err)
	case !namespaced:
		if why := bounds.clusterScoped(object); why != "" {
			why, remedy, ok := strings.Cut(why, "; ")
			v := &Violation{Object: name, Rule: ClusterScoped, Why: why}
			if ok {
				v.Remedies = []Remedy{{"cluster-scoped objects", remedy}}
			}
			return []*Violation{v}, nil
		}
	}
	for _, rule := range bounds.rules() {
		if why := rule.broken(object, bounds.Namespace); why != "" {
			found = append(found, &Violation{Object: name, Rule: rule.name, Why: why})
		}
	}
	return found, nil
}
