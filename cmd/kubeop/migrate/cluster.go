package migrate

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fluxKinds are the kinds of Flux that are imported.
var fluxKinds = []schema.GroupVersionKind{
	{Group: sourceGroup, Version: "v1", Kind: "GitRepository"}, {Group: sourceGroup, Version: "v1", Kind: "HelmRepository"},
	{Group: sourceGroup, Version: "v1", Kind: "OCIRepository"}, {Group: sourceGroup, Version: "v1", Kind: "HelmChart"},
	{Group: sourceGroup, Version: "v1", Kind: "Bucket"},
	{Group: kustomizeGroup, Version: "v1", Kind: "Kustomization"}, {Group: helmGroup, Version: "v2", Kind: "HelmRelease"},
}

// readCluster lists the objects of kinds in a namespace, or in all of them, with the rights of the caller.
func (m *migration) readCluster(ctx context.Context, c client.Reader, namespace string, kinds []schema.GroupVersionKind) error {
	served := false
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := c.List(ctx, list, client.InNamespace(namespace))
		switch {
		case meta.IsNoMatchError(err):
			continue
		case apierrors.IsForbidden(err) && namespace == "":
			return fmt.Errorf("you may not list the %s objects of all namespaces: name a namespace with -n", kind.Kind)
		case err != nil:
			return fmt.Errorf("listing the %s objects: %w", kind.Kind, err)
		}
		served = true
		for i := range list.Items {
			m.objects = append(m.objects, &object{Unstructured: &list.Items[i]})
		}
	}
	if !served {
		return fmt.Errorf("the cluster serves no kind of %s: name a folder instead of --cluster", kinds[0].Group)
	}
	return nil
}

// relate finds what the Kustomizations of a cluster apply, by their inventories.
func (m *migration) relate() {
	for _, o := range m.objects {
		if o.GetKind() != "Kustomization" {
			continue
		}
		entries, found, err := unstructured.NestedSlice(o.Object, "status", "inventory", "entries")
		o.opened = found && err == nil
		for _, item := range entries {
			if entry, ok := item.(values); ok {
				m.applied(o, fmt.Sprint(entry["id"]), fmt.Sprint(entry["v"]))
			}
		}
	}
}

// applied adds an entry of an inventory, "<namespace>_<name>_<group>_<kind>", to its Kustomization.
func (m *migration) applied(by *object, id, version string) {
	parts := strings.Split(id, "_")
	if len(parts) < 4 {
		return
	}
	last := len(parts)
	namespace, group, kind := parts[0], parts[last-2], parts[last-1]
	name := strings.ReplaceAll(strings.Join(parts[1:last-2], "_"), "__", ":")
	if strings.HasSuffix(group, fluxDomain) {
		if child := m.find(kind, namespace, name); child != nil && child != by {
			child.parent = by
		}
		by.children = append(by.children, &object{Unstructured: named(group, version, kind, namespace, name)})
		return
	}
	by.held = append(by.held, named(group, version, kind, namespace, name))
}

func named(group, version, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// fromSecrets reports whether a Kustomization puts variables of Secrets into an object, so that the object in the cluster may hold them.
func fromSecrets(o *object) bool {
	for depth := 0; o.parent != nil && len(o.written) == 0 && depth < maxDepth; depth++ {
		for _, reference := range fieldsOf(o.parent, &Report{}).maps("postBuild.substituteFrom") {
			if reference["kind"] == "Secret" {
				return true
			}
		}
		o = o.parent
	}
	return false
}
