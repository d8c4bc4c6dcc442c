package server

import (
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/identity"
)

// present is the generation of every object here, because the API returns none. A condition Ready about an older version of its object gets a
// lower one.
const present = 1

// placeOf returns the tenant and the project of a selection.
func placeOf(of target.Selection) (tenant, project string) {
	if of.Kind.Name != v1alpha1.AppKind {
		return strings.TrimPrefix(of.Namespace, v1alpha1.HomeNamespace("")), ""
	}
	tenant = v1alpha1.TenantOf(of.Namespace)
	return tenant, strings.TrimPrefix(of.Namespace, v1alpha1.ProjectNamespace(tenant, ""))
}

// objectNamed returns the only object of a selection.
func objectNamed(of target.Selection) target.Object {
	tenant, project := placeOf(of)
	ref := identity.Ref{Tenant: tenant, Project: project, App: of.Name}
	switch of.Kind.Name {
	case v1alpha1.TenantKind:
		ref = identity.Ref{Tenant: of.Name}
	case v1alpha1.ProjectKind:
		ref = identity.Ref{Tenant: tenant, Project: of.Name}
	}
	return target.Object{Kind: of.Kind, Ref: ref}
}

func tenantOf(t client.Tenant) kube.Object {
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: t.Name, Generation: present, CreationTimestamp: metav1.NewTime(t.Created)}}
	o.Status.Conditions = conditionsOf(t.Conditions, string(t.Ready))
	o.Status.Projects, o.Status.AppCounts = int(t.Projects), countsOf(o.Status.Conditions, t.Apps, t.ReadyApps)
	if t.Budget != "" {
		o.Status.Budget = &v1alpha1.BudgetStatus{Summary: t.Budget}
	}
	return o
}

func projectOf(p client.Project) kube.Object {
	o := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.HomeNamespace(p.Tenant), Name: p.Name, Generation: present, CreationTimestamp: metav1.NewTime(p.Created),
	}}
	o.Status.Conditions = conditionsOf(p.Conditions, string(p.Ready))
	o.Status.Namespace, o.Status.AppCounts = p.Namespace, countsOf(o.Status.Conditions, p.Apps, p.ReadyApps)
	return o
}

func appOf(a client.App) kube.Object {
	o := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.ProjectNamespace(a.Tenant, a.Project), Name: a.Name, Generation: present, CreationTimestamp: metav1.NewTime(a.Created),
	}}
	o.Spec.Type = v1alpha1.AppType(a.Type)
	o.Status.Conditions = conditionsOf(a.Conditions, string(a.Ready))
	o.Status.LastAppliedRevision, o.Status.LastAttemptedRevision, o.Status.URL = a.Revision, a.Attempted, a.URL
	o.Status.ShortRevision = few.ShortRevision(a.Revision)
	return o
}

// conditionsOf returns the conditions of an object. ready is the state that the manager answers: if the condition Ready has another status, it is about
// an older version of the object.
func conditionsOf(from []client.Condition, ready string) []metav1.Condition {
	var all []metav1.Condition
	for _, c := range from {
		observed := int64(present)
		if c.Type == meta.ReadyCondition && string(c.Status) != ready {
			observed = present - 1
		}
		all = append(all, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: metav1.NewTime(c.Since), ObservedGeneration: observed,
		})
	}
	return all
}

// countsOf returns the counts of an object. One that the operator has not seen yet has none.
func countsOf(seen []metav1.Condition, apps, ready int64) (counts v1alpha1.AppCounts) {
	if len(seen) > 0 {
		(&rollup.Apps{All: int(apps), Ready: int(ready)}).Record(&counts)
	}
	return counts
}
