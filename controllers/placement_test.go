package controllers

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// placed returns an object of a kind whose pods have a field.
func placed(kind, field string) string {
	pod := "{" + field + ", restartPolicy: Never, " + podSpec + "}"
	switch kind {
	case "CronJob":
		return "{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: " + pod + "}}}}}"
	case "Job":
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: " + pod + "}}}"
	}
	return "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: " + pod + "}"
}

// TestPodsRunWhereTheirTenantMay as soon as administrators allow it.
func TestPodsRunWhereTheirTenantMay(t *testing.T) {
	n, bot := limited(t, "placed")
	try := func(by client.Client, object string) func() error {
		return func() error { return by.Create(t.Context(), n.object(n.namespace(), object), client.DryRunAll) }
	}
	const gpu = "tolerations: [{key: gpu, operator: Exists}]"
	n.denied(try(bot, placed("Pod", gpu)), "tolerates the taint gpu", "spec.taints of the Tenant")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Taints = []string{"arm", "gpu"} })
	n.passes(try(bot, placed("Pod", gpu)))

	// An older object may be changed in other fields, but not get more.
	old := n.object(n.namespace(), placed("CronJob", "tolerations: [{key: old, operator: Exists}]"))
	if err := n.masterful(operatorAccount).Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	patch := func(text string) func() error {
		return func() error {
			return bot.Patch(t.Context(), old.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	n.passes(patch(`{"spec":{"suspend":true}}`))
	n.denied(patch(`{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"tolerations":[{"key":"old","operator":"Exists"},{"key":"new","operator":"Exists"}]}}}}}}`), "tolerates the taint new")
}
