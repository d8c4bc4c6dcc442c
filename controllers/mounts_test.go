package controllers

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const claimNamed = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: '', %s}}"

// TestVolumesStayInsideTheirProject: the API server judges what people and accounts of a tenant write without kubeop by the rules for apps. Of the cases
// of each actor the last passes, and differs from the others in one field.
func TestVolumesStayInsideTheirProject(t *testing.T) {
	n, bot := limited(t, "mounted")
	deployer := n.as("system:serviceaccount:" + n.namespace() + ":kubeop-deployer")
	try := func(by client.Client, object string) func() error {
		return func() error { return by.Create(t.Context(), n.object(n.namespace(), object), client.DryRunAll) }
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.PodSecurity = "baseline" }) // The level restricted refuses more.
	const other = "dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: %s}"
	volume := func(of string) string { return "volumes: [{name: first, emptyDir: {}}, {name: v, " + of + "}]" }
	for _, by := range []client.Client{bot, deployer} {
		for _, kind := range []string{"Pod", "Job", "CronJob"} {
			for of, want := range map[string]string{
				"nfs: {server: 10.0.0.1, path: /}": "VolumeType: " + kind + "/x has the volume v of a type that is mounted past claims",
				"csi: {driver: nfs.csi.k8s.io}":    "VolumeType: " + kind + "/x has the volume v of the CSI driver nfs.csi.k8s.io",
				"ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: old}}}": "ForeignVolume: " + kind + "/x has volumeName old",
			} {
				n.denied(try(by, placed(kind, volume(of))), want)
			}
			for _, of := range []string{
				"persistentVolumeClaim: {claimName: a}", "image: {reference: web}", "projected: {sources: [{configMap: {name: a}}]}",
				"ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}",
			} {
				n.passes(try(by, placed(kind, volume(of))))
			}
		}
		for field, want := range map[string]string{
			"volumeName: old":                          "ForeignVolume: PersistentVolumeClaim/x has volumeName old",
			"selector: {matchLabels: {tenant: other}}": "ForeignVolume: PersistentVolumeClaim/x selects a volume by its labels",
		} {
			n.denied(try(by, fmt.Sprintf(claimNamed, "x", field)), want)
		}
		n.passes(try(by, fmt.Sprintf(claimNamed, "x", "volumeMode: Filesystem")))
		n.passes(try(by, fmt.Sprintf(claimNamed, "x", fmt.Sprintf(other, n.namespace()))))
	}
	n.denied(try(n.as("system:serviceaccount:kube-system:statefulset-controller"), fmt.Sprintf(claimNamed, "x", "volumeName: old")), "ForeignVolume")
	n.passes(try(n.admin, fmt.Sprintf(claimNamed, "x", "volumeName: old")))

	const csi = "csi: {driver: secrets-store.csi.k8s.io}"
	n.denied(try(bot, placed("Pod", volume(csi))), "the CSI driver secrets-store.csi.k8s.io", "spec.csiDrivers of the Tenant")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.CSIDrivers = []string{"cache.csi.k8s.io", "secrets-store.csi.k8s.io"} })
	n.passes(try(bot, placed("Pod", volume(csi))))
	n.denied(try(bot, placed("Pod", volume("csi: {driver: store.csi.k8s.io}"))), "the CSI driver store.csi.k8s.io")
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

// TestDisruptionBudgetsLetNodesBeDrained: the same for disruption budgets. One that is there already may be changed in other fields.
func TestDisruptionBudgetsLetNodesBeDrained(t *testing.T) {
	n, bot := limited(t, "drained")
	budget := func(field string) string {
		return "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}, spec: {selector: {matchLabels: {a: b}}, " + field + "}}"
	}
	try := func(field string) func() error {
		return func() error { return bot.Create(t.Context(), n.object(n.namespace(), budget(field)), client.DryRunAll) }
	}
	n.denied(try("maxUnavailable: 0"), "BlockedDrain: PodDisruptionBudget/x has maxUnavailable 0, so that no node")
	n.denied(try("maxUnavailable: 0%"), "BlockedDrain: PodDisruptionBudget/x has maxUnavailable 0%")
	n.denied(try("minAvailable: 100%"), "BlockedDrain: PodDisruptionBudget/x has minAvailable 100%")
	for _, field := range []string{"maxUnavailable: 1", "maxUnavailable: 10", "maxUnavailable: 50%", "minAvailable: 0", "minAvailable: 99%", "minAvailable: 100"} {
		n.passes(try(field))
	}
	old := n.object(n.namespace(), budget("maxUnavailable: 0"))
	if err := n.masterful(operatorAccount).Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	patch := func(text string) func() error {
		return func() error {
			return bot.Patch(t.Context(), old.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	n.passes(patch(`{"metadata":{"labels":{"a":"b"}}}`))
	n.denied(patch(`{"spec":{"maxUnavailable":"0%"}}`), "maxUnavailable 0%")
}
