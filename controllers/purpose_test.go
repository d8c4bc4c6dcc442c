package controllers

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

const (
	retainedMark  = "paas.kubeop.io/volumes-retained"
	confirmedMark = v1alpha1.ConfirmedClaimsAnnotation
)

// deleteOnPurpose deletes an object that the deletion policies guard, with the annotation that allows it.
func (n *team) deleteOnPurpose(o client.Object) {
	n.t.Helper()
	if err := testenv.DeleteOnPurpose(n.t.Context(), n.admin, o, false); err != nil {
		n.t.Fatal(err)
	}
}

// annotated returns a patch that sets an annotation, or removes it if the value is "".
func annotated(key, value string) client.Patch {
	set := `"` + value + `"`
	if value == "" {
		set = "null"
	}
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+key+`":`+set+`}}}`))
}

// masterful returns a client with all rights, under a user's name.
func (n *team) masterful(user string) client.Client {
	n.t.Helper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(config, client.Options{Scheme: n.admin.Scheme(), Mapper: n.admin.RESTMapper()})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

func crd(name string) *unstructured.Unstructured {
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(definitionKind)
	d.SetName(name)
	return d
}

// TestADeletionPastGitNamesTheDeletedObjects deletes, as an administrator, objects that contain other people's data, one by one and all at once.
func TestADeletionPastGitNamesTheDeletedObjects(t *testing.T) {
	n := newTeam(t, "guardian")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-guardian", Name: "shop"}}
	cases := map[string]struct {
		object client.Object
		want   []string
	}{
		"a tenant": {tenant, []string{"DeletionGuard: Tenant/guardian", "all projects", "Git",
			"kubectl annotate tenant guardian paas.kubeop.io/allow-deletion=guardian", "kubectl delete tenant guardian"}},
		"a project": {project, []string{"DeletionGuard: Project/shop", "every app", "remove projects/shop there",
			"kubectl annotate project shop -n kubeop-guardian paas.kubeop.io/allow-deletion=shop", "kubectl delete project shop -n kubeop-guardian"}},
		"a home": {namespace("kubeop-guardian"), []string{"DeletionGuard: Namespace/kubeop-guardian", "the home of tenant guardian",
			"kubectl annotate --overwrite namespace kubeop-guardian paas.kubeop.io/allow-deletion=kubeop-guardian"}},
		"a project's namespace": {namespace("kubeop-guardian-shop"), []string{"Namespace/kubeop-guardian-shop", "project shop of tenant guardian",
			retainedMark, "kubectl delete namespace kubeop-guardian-shop"}},
		"all apps' definition": {crd("apps.paas.kubeop.io"), []string{"DeletionGuard: CustomResourceDefinition/apps.paas.kubeop.io", "every App of this cluster",
			"kubectl annotate crd apps.paas.kubeop.io paas.kubeop.io/allow-deletion=apps.paas.kubeop.io"}},
		"all tenants' definition": {crd("tenants.paas.kubeop.io"), []string{"every Tenant of this cluster"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			remove := func() error {
				return n.admin.Delete(t.Context(), c.object.DeepCopyObject().(client.Object), client.DryRunAll)
			}
			n.denied(remove, c.want...)
			if err := n.admin.Patch(t.Context(), c.object, annotated(v1alpha1.AllowDeletionAnnotation, "all")); err != nil {
				t.Fatal(err)
			}
			n.denied(remove, c.want...)
			// Remove the annotation again: it would allow another deletion.
			if err := n.admin.Patch(t.Context(), c.object, annotated(v1alpha1.AllowDeletionAnnotation, "")); err != nil {
				t.Fatal(err)
			}
		})
	}
	ours := client.MatchingLabels{v1alpha1.TenantLabel: n.name}
	n.denied(func() error { return n.admin.DeleteAllOf(t.Context(), &v1alpha1.Tenant{}, ours) }, "DeletionGuard: Tenant/guardian")
	n.denied(func() error {
		return n.admin.DeleteAllOf(t.Context(), &v1alpha1.Project{}, ours, client.InNamespace("kubeop-guardian"))
	}, "DeletionGuard: Project/shop")
	for _, o := range []client.Object{tenant, project} {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || !o.GetDeletionTimestamp().IsZero() {
			t.Errorf("%s was deleted: %v", o.GetName(), err)
		}
	}
}

// TestADeletionOnPurposePasses names each object in its annotation and then deletes it.
func TestADeletionOnPurposePasses(t *testing.T) {
	n := newTeam(t, "deliberate")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	made := n.object("", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.paas.kubeop.io}, "+
		"spec: {group: paas.kubeop.io, scope: Cluster, names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}, "+
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}")
	n.create(made)
	n.denied(func() error { return n.admin.Delete(t.Context(), crd("gadgets.paas.kubeop.io")) }, "every Gadget")
	n.deleteOnPurpose(crd("gadgets.paas.kubeop.io"))
	n.gone(crd("gadgets.paas.kubeop.io"))

	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-deliberate", Name: "shop"}}
	n.deleteOnPurpose(shop)
	owner := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	n.deleteOnPurpose(owner)
	// A second deletion of the same object is not refused.
	if err := n.admin.Delete(t.Context(), owner); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	n.gone(owner, namespace("kubeop-deliberate-shop"), namespace("kubeop-deliberate"))
}

// TestANamespaceIsDeletedWhenItsVolumesAreSafe also deletes one whose annotation allows the loss of its data.
func TestANamespaceIsDeletedWhenItsVolumesAreSafe(t *testing.T) {
	n := newTeam(t, "volumes")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	const name = "kubeop-volumes-shop"
	remove := func() error { return n.admin.Delete(t.Context(), namespace(name), client.DryRunAll) }
	patch := func(by client.Client, key, value string) {
		t.Helper()
		if err := by.Patch(t.Context(), namespace(name), annotated(key, value)); err != nil {
			t.Fatal(err)
		}
	}
	// This tests the policy, so the operator must not act first.
	n.denied(func() error {
		patch(n.admin, v1alpha1.AllowDeletionAnnotation, name)
		patch(n.admin, retainedMark, "")
		return remove()
	}, "kept until its volumes are safe", retainedMark, name+"/with-data")
	patch(n.masterful(operatorAccount), retainedMark, "0 volumes")
	if err := remove(); err != nil {
		t.Errorf("the volumes are safe, and still the deletion is refused: %v", err)
	}
	patch(n.admin, v1alpha1.AllowDeletionAnnotation, "")
	n.denied(remove, "Namespace/"+name)
	patch(n.admin, retainedMark, "")
	patch(n.admin, v1alpha1.AllowDeletionAnnotation, name+"/with-data")
	if err := remove(); err != nil {
		t.Errorf("the loss of data was allowed, and still the deletion is refused: %v", err)
	}
	patch(n.admin, v1alpha1.AllowDeletionAnnotation, "")
}

// TestOnlyTheOperatorMarksVolumesAsSafe tries to write the annotations that the deletion policy relies on.
func TestOnlyTheOperatorMarksVolumesAsSafe(t *testing.T) {
	n := newTeam(t, "forger")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	for mark, objects := range map[string][]client.Object{
		retainedMark:  {namespace("kubeop-forger-shop"), namespace("kubeop-forger")},
		confirmedMark: {&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-forger", Name: "shop"}}},
	} {
		for _, o := range objects {
			n.denied(func() error { return n.admin.Patch(t.Context(), o, annotated(mark, "x"), client.DryRunAll) }, "DeletionGuard", "/"+o.GetName(), mark)
			if err := n.masterful(operatorAccount).Patch(t.Context(), o, annotated(mark, "x"), client.DryRunAll); err != nil {
				t.Errorf("the operator's %s: %v", mark, err)
			}
		}
	}
	n.denied(func() error {
		return n.admin.Status().Patch(t.Context(), namespace("kubeop-forger-shop"), annotated(retainedMark, "x"), client.DryRunAll)
	}, retainedMark)
	forged := namespace("kubeop-forger-new")
	forged.Annotations = map[string]string{retainedMark: "0 volumes"}
	n.denied(func() error { return n.admin.Create(t.Context(), forged, client.DryRunAll) }, retainedMark)
}

// TestADeletedHomeNamespaceDeletesItsProjects: the namespace controller deletes the Projects in it, which is refused in other namespaces.
func TestADeletedHomeNamespaceDeletesItsProjects(t *testing.T) {
	n := newTeam(t, "purposeful")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-purposeful", Name: "shop"}}
	for _, controller := range []string{"system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager"} {
		n.denied(func() error { return n.masterful(controller).Delete(t.Context(), shop, client.DryRunAll) }, "Project/shop")
	}
	n.ready(shop)
	before := shop.UID
	if err := testenv.DeleteOnPurpose(t.Context(), n.admin, namespace("kubeop-purposeful"), true); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(shop), shop)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && shop.UID == before && shop.DeletionTimestamp.IsZero() {
			return errors.New("the project was not deleted")
		}
		return nil
	})
	// Git declares the project, so it is recreated.
	n.eventually(func() error {
		return n.admin.Get(t.Context(), client.ObjectKeyFromObject(n.app("shop", "web")), n.app("shop", "web"))
	})
	n.ready(n.app("shop", "web"))
}

// TestDisabledPoliciesDenyNothing renders the chart: a release that already has the policies keeps them in an upgrade, with resource policy keep.
func TestDisabledPoliciesDenyNothing(t *testing.T) {
	for enabled, want := range map[string]string{"true": "Deny", "false": "Audit"} {
		rendered, err := env.Helm(t.Context(), "template", "kubeop", env.Chart(), "--set", "admissionPolicies.enabled="+enabled)
		if err != nil {
			t.Fatal(err)
		}
		all, as := 0, 0
		for part := range strings.SplitSeq(rendered, "\n---\n") {
			if !strings.Contains(part, "kind: ValidatingAdmissionPolicyBinding\n") || strings.Contains(part, "-warn\n") || strings.Contains(part, "-audit\n") {
				continue // Rules of Policies that warn or audit deny nothing in any case.
			}
			all++
			as += strings.Count(part+"\n", "validationActions:\n  - "+want+"\n")
		}
		if all < 25 || as != all {
			t.Errorf("enabled=%s: %d of %d bindings are %s", enabled, as, all, want)
		}
	}
}
