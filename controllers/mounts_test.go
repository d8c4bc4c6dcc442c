package controllers

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const claimNamed = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: '', %s}}"

// TestClaimsAreJudgedWhoeverMakesThem, except administrators: also those that Kubernetes makes from older templates.
func TestClaimsAreJudgedWhoeverMakesThem(t *testing.T) {
	n, bot := limited(t, "mounted")
	try := func(by client.Client, field string) func() error {
		return func() error {
			return by.Create(t.Context(), n.object(n.namespace(), fmt.Sprintf(claimNamed, "x", field)), client.DryRunAll)
		}
	}
	const named = "volumeName: old"
	n.denied(try(bot, named), "ForeignVolume: PersistentVolumeClaim/x has volumeName old")
	n.denied(try(n.as("system:serviceaccount:kube-system:statefulset-controller"), named), "ForeignVolume")
	n.passes(try(n.admin, named))
	n.passes(try(bot, "volumeMode: Filesystem"))
}

// TestATenantsPodsMountVolumesOfItsDrivers as soon as administrators allow them.
func TestATenantsPodsMountVolumesOfItsDrivers(t *testing.T) {
	n, bot := limited(t, "driven")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.PodSecurity = "baseline" }) // The level restricted refuses them.
	try := func() error {
		return bot.Create(t.Context(), n.object(n.namespace(), placed("Pod", "volumes: [{name: v, csi: {driver: store.csi.k8s.io}}]")), client.DryRunAll)
	}
	n.denied(try, "the CSI driver store.csi.k8s.io", "spec.csiDrivers of the Tenant")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.CSIDrivers = []string{"store.csi.k8s.io"} })
	n.passes(try)
}

// TestClaimsAreNotLedToAVolume: a claim that is there already gets its volume from Kubernetes' controllers, not from its tenant.
func TestClaimsAreNotLedToAVolume(t *testing.T) {
	n, bot := limited(t, "bound")
	claim := n.object(n.namespace(), fmt.Sprintf(claimNamed, "data", "volumeMode: Filesystem"))
	if err := bot.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	patch := func(by client.Client, text string) func() error {
		return func() error {
			return by.Patch(t.Context(), claim.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	const named = `{"spec":{"volumeName":"old"}}`
	n.denied(patch(bot, named), "ForeignVolume: PersistentVolumeClaim/data has volumeName old")
	n.passes(patch(n.masterful("system:serviceaccount:kube-system:persistent-volume-binder"), named))
	if err := n.masterful("system:serviceaccount:kube-system:persistent-volume-binder").Patch(t.Context(), claim, client.RawPatch("application/merge-patch+json", []byte(named))); err != nil {
		t.Fatal(err)
	}
	n.passes(patch(bot, `{"metadata":{"labels":{"a":"b"}}}`))
}

// TestDisruptionBudgetsLetNodesBeDrained: one that is there already may be changed in other fields.
func TestDisruptionBudgetsLetNodesBeDrained(t *testing.T) {
	n, bot := limited(t, "drained")
	for name, c := range map[string]struct{ field, refused, want string }{
		"none":    {"maxUnavailable: 0", `{"spec":{"maxUnavailable":"0%"}}`, "maxUnavailable 0%"},
		"all":     {"minAvailable: 100%", `{"spec":{"minAvailable":"0100%"}}`, "minAvailable 100%"},
		"so-many": {"minAvailable: 11", `{"spec":{"minAvailable":12}}`, "minAvailable 12"},
	} {
		old := n.object(n.namespace(), "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: "+name+"}, spec: {selector: {matchLabels: {a: b}}, "+c.field+"}}")
		if err := n.masterful(operatorAccount).Create(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		patch := func(text string) func() error {
			return func() error {
				return bot.Patch(t.Context(), old.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
			}
		}
		n.passes(patch(`{"metadata":{"labels":{"a":"b"}}}`))
		n.denied(patch(c.refused), "BlockedDrain: PodDisruptionBudget/"+name+" has "+c.want)
	}
}
