package project

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestOnlyTermsOfATenantThatConcernAppsWakeThem: other changes of a Tenant wake no App.
func TestOnlyTermsOfATenantThatConcernAppsWakeThem(t *testing.T) {
	with := func(change func(*v1alpha1.Tenant)) *v1alpha1.Tenant {
		tenant := &v1alpha1.Tenant{}
		tenant.Spec.Sops, tenant.Status.Sops = "Generated", &v1alpha1.SopsStatus{Number: 1, Recipient: "age1first"}
		change(tenant)
		return tenant
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Tenant)
		passes bool
	}{
		"nothing":             {func(*v1alpha1.Tenant) {}, false},
		"a budget":            {func(t *v1alpha1.Tenant) { t.Spec.Weight = 2 }, false},
		"a condition":         {func(t *v1alpha1.Tenant) { t.Status.ObservedGeneration = 2 }, false},
		"frozen":              {func(t *v1alpha1.Tenant) { t.Spec.Frozen = true }, true},
		"stopped":             {func(t *v1alpha1.Tenant) { t.Spec.Stopped = true }, true},
		"no keys any more":    {func(t *v1alpha1.Tenant) { t.Spec.Sops = "" }, true},
		"another key":         {func(t *v1alpha1.Tenant) { t.Status.Sops = &v1alpha1.SopsStatus{Number: 2, Recipient: "age1second"} }, true},
		"its first key":       {func(t *v1alpha1.Tenant) { t.Status.Sops = nil }, true},
		"Pod Security":        {func(t *v1alpha1.Tenant) { t.Spec.PodSecurity = "baseline" }, true},
		"a freeze window":     {func(t *v1alpha1.Tenant) { t.Spec.Freeze = []v1alpha1.FreezeWindow{{Name: "night"}} }, true},
		"objects of an app":   {func(t *v1alpha1.Tenant) { n := int32(7); t.Spec.Limits.AppObjects = &n }, true},
		"what all deliver":    {func(t *v1alpha1.Tenant) { size := resource.MustParse("1Gi"); t.Spec.Limits.RenderedBytes = &size }, true},
		"the size of sources": {func(t *v1alpha1.Tenant) { size := resource.MustParse("1Gi"); t.Spec.Limits.SourceBytes = &size }, true},
		"the size of packs":   {func(t *v1alpha1.Tenant) { size := resource.MustParse("1Gi"); t.Spec.Limits.PackBytes = &size }, true},
		"cluster kinds":       {func(t *v1alpha1.Tenant) { t.Spec.ClusterKinds = []string{"ClusterRole.rbac.authorization.k8s.io"} }, true},
		"taints":              {func(t *v1alpha1.Tenant) { t.Spec.Taints = []string{"gpu"} }, true},
		"Ingress annotations": {func(t *v1alpha1.Tenant) { t.Spec.IngressAnnotations = []string{"example.com/snippet"} }, true},
		"CSI drivers":         {func(t *v1alpha1.Tenant) { t.Spec.CSIDrivers = []string{"csi.example.com"} }, true},
		"PriorityClasses":     {func(t *v1alpha1.Tenant) { t.Spec.PriorityClasses = []string{"high"} }, true},
		"the time of pods":    {func(t *v1alpha1.Tenant) { t.Spec.MaxTerminationGracePeriod = &metav1.Duration{Duration: 40e9} }, true},
		"claims":              {func(t *v1alpha1.Tenant) { t.Spec.ClaimDeletionPolicy = v1alpha1.ClaimDelete }, true},
		"a limit of others":   {func(t *v1alpha1.Tenant) { n := int32(7); t.Spec.Limits.Apps = &n }, false},
		"a wish for the key":  {func(t *v1alpha1.Tenant) { t.Spec.SopsKey = 2 }, false},
	} {
		if got := TermsChanged.Update(event.UpdateEvent{ObjectOld: with(func(*v1alpha1.Tenant) {}), ObjectNew: with(c.change)}); got != c.passes {
			t.Errorf("%s: passes %t", name, got)
		}
	}
}

// TestAProjectThatBecomesReadyWakesItsApps, and one with other pull Secrets or another spec that was carried out.
func TestAProjectThatBecomesReadyWakesItsApps(t *testing.T) {
	with := func(ready metav1.ConditionStatus, secrets ...string) *v1alpha1.Project {
		project := &v1alpha1.Project{}
		conditions.Set(project, &metav1.Condition{Type: v1alpha1.ReadyCondition, Status: ready, Reason: "X"})
		for _, name := range secrets {
			project.Status.PullSecrets = append(project.Status.PullSecrets, v1alpha1.PullSecret{Registry: name})
		}
		return project
	}
	carriedOut := with("True", "hub")
	carriedOut.Status.ObservedGeneration = 2
	for name, c := range map[string]struct {
		is     *v1alpha1.Project
		passes bool
	}{
		"nothing": {with("True", "hub"), false}, "a change of its spec": {carriedOut, true}, "not ready": {with("False", "hub"), true}, "other Secrets": {with("True", "hub", "ghcr"), true},
	} {
		if got := ReadyChanged.Update(event.UpdateEvent{ObjectOld: with("True", "hub"), ObjectNew: c.is}); got != c.passes {
			t.Errorf("%s: passes %t", name, got)
		}
	}
	if TermsChanged.Create(event.CreateEvent{}) || TermsChanged.Delete(event.DeleteEvent{}) {
		t.Error("a Tenant that is created or deleted wakes Apps")
	}
}
