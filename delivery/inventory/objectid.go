// Package inventory names the objects that an owner applied: their IDs, the entries recorded of them in statuses, the stages in which
// they are applied and deleted, and what protects them from deletion. It makes no requests.
package inventory

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ObjectID identifies an object in a cluster, independent of the version with which it is read.
type ObjectID struct {
	// Namespace is empty for cluster-scoped objects, Group for the core group.
	Namespace, Name, Group, Kind string
}

// IDOf returns the ID of an object whose kind is set.
func IDOf(object client.Object) ObjectID {
	gvk := object.GetObjectKind().GroupVersionKind()
	return ObjectID{Namespace: object.GetNamespace(), Name: object.GetName(), Group: gvk.Group, Kind: gvk.Kind}
}

// GroupKind returns the kind of the object.
func (o ObjectID) GroupKind() schema.GroupKind { return schema.GroupKind{Group: o.Group, Kind: o.Kind} }

// Versioned returns the kind of the object in a version.
func (o ObjectID) Versioned(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: o.Group, Version: version, Kind: o.Kind}
}

// IsSecret reports whether the object is a Secret, of which no cache holds more than its metadata.
func (o ObjectID) IsSecret() bool { return o.Group == "" && o.Kind == "Secret" }

// String returns "<namespace>_<name>_<group>_<kind>", the format of inventories of Flux and cli-utils. Colons, which names of RBAC objects
// may contain, become "__", so that the ID is a valid key of a ConfigMap.
//
// A name that contains "__" itself is parsed with a colon. Only RBAC allows such names. Code that records IDs of foreign objects first
// compares ParseObjectID(id.String()) with id.
func (o ObjectID) String() string {
	return strings.Join([]string{o.Namespace, strings.ReplaceAll(o.Name, ":", "__"), o.Group, o.Kind}, "_")
}

// ParseObjectID parses the format of String. Namespace, group and kind cannot contain an underscore, so the rest is the name.
func ParseObjectID(s string) (ObjectID, error) {
	namespace, rest, ok1 := strings.Cut(s, "_")
	rest, kind, ok2 := cutLast(rest)
	name, group, ok3 := cutLast(rest)
	switch {
	case !ok1 || !ok2 || !ok3:
		return ObjectID{}, fmt.Errorf("parsing the inventory ID %q: want <namespace>_<name>_<group>_<kind>", s)
	case name == "" || kind == "":
		return ObjectID{}, fmt.Errorf("parsing the inventory ID %q: name and kind must not be empty", s)
	}
	return ObjectID{Namespace: namespace, Name: strings.ReplaceAll(name, "__", ":"), Group: group, Kind: kind}, nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '_')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
