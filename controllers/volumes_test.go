package controllers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func (n *team) pv(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: n.name + "-" + name}}
}

// saysOfVolumes waits until the annotation about volumes of the shop's namespace is want, "" for none.
func (n *team) saysOfVolumes(want string) {
	n.t.Helper()
	ns := namespace(n.namespace())
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
			return err
		}
		if got := ns.Annotations[v1alpha1.VolumesRetainedAnnotation]; got != want {
			return fmt.Errorf("the annotation is %q, want %q", got, want)
		}
		return nil
	})
}

// TestVolumesOutliveANamespaceThatMayBeDeleted allows the deletion of a project's namespace, and deletes the namespace.
func TestVolumesOutliveANamespaceThatMayBeDeleted(t *testing.T) {
	n := newTeam(t, "outlives")
	n.applied("web", n.push(n.data()))
	n.boundClaim("data")
	n.create(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: n.name + "-theirs"}, Spec: pvOf("elsewhere", "theirs")})
	n.byHand("thief", n.name+"-theirs")

	change(n, namespace(n.namespace()), func(ns *corev1.Namespace) { ns.Annotations[v1alpha1.AllowDeletionAnnotation] = "another" })
	change(n, namespace(n.namespace()), func(ns *corev1.Namespace) { ns.Annotations[v1alpha1.AllowDeletionAnnotation] = ns.Name })
	n.saysOfVolumes("1 volume: outlives-data")
	volume, theirs := n.pv("data"), n.pv("theirs")
	n.there(volume, theirs)
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || theirs.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		t.Errorf("the reclaim policy is %s, want Retain; that of a foreign volume is %s, want it unchanged", volume.Spec.PersistentVolumeReclaimPolicy, theirs.Spec.PersistentVolumeReclaimPolicy)
	}
	change(n, namespace(n.namespace()), func(ns *corev1.Namespace) { delete(ns.Annotations, v1alpha1.AllowDeletionAnnotation) })
	n.saysOfVolumes("")
	change(n, namespace(n.namespace()), func(ns *corev1.Namespace) { ns.Annotations[v1alpha1.AllowDeletionAnnotation] = ns.Name })
	n.saysOfVolumes("1 volume: outlives-data")

	was := n.uid(namespace(n.namespace()))
	if err := n.admin.Delete(t.Context(), namespace(n.namespace())); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(volume), volume); err != nil {
			return err
		}
		if volume.Status.Phase != corev1.VolumeReleased {
			return fmt.Errorf("the phase of the volume is %s, want %s", volume.Status.Phase, corev1.VolumeReleased)
		}
		return nil
	})
	// As docs/data.md describes: the volume is assigned to the claim that the app recreates.
	change(n, volume, func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: n.namespace(), Name: "data"}
	})
	n.ready(n.project("shop"), n.app("shop", "web"))
	n.boundClaim("data")
	if n.uid(namespace(n.namespace())) == was {
		t.Error("the namespace was not deleted")
	}
}

func pvOf(namespace, claim string) corev1.PersistentVolumeSpec {
	spec := corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: oneMi}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
	}
	spec.StorageClassName = "for-nobody"
	if claim != "" {
		spec.StorageClassName = ""
		spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim}
	}
	return spec
}

// TestTheOperatorChangesOnlyTheReclaimPolicyOfAVolume tries what a stolen token of the operator could be used for.
func TestTheOperatorChangesOnlyTheReclaimPolicyOfAVolume(t *testing.T) {
	n := newTeam(t, "volumerules")
	operator := n.as(operatorAccount)
	for name, c := range map[string]struct {
		namespace string
		edit      func(*corev1.PersistentVolume)
		allowed   bool
	}{
		"Retain":                {"kubeop-acme-shop", func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Retain" }, true},
		"Recycle":               {"kubeop-acme-shop", func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Recycle" }, false},
		"without a claim":       {"", func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Retain" }, false},
		"of a system namespace": {"kube-system", func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Retain" }, false},
		"of the operator's own": {"kubeop-system", func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Retain" }, false},
		"its claim": {"kubeop-acme-shop", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy, v.Spec.ClaimRef.Namespace = "Retain", "kubeop-evil-shop"
		}, false},
		"its class": {"kubeop-acme-shop", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy, v.Spec.StorageClassName = "Retain", "x"
		}, false},
		"its labels": {"kubeop-acme-shop", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy, v.Labels = "Retain", map[string]string{"a": "b"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := "data"
			if c.namespace == "" {
				claim = ""
			}
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{GenerateName: "volumerules-"}, Spec: pvOf(c.namespace, claim)}
			n.create(volume)
			try := func() error {
				if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(volume), volume); err != nil {
					return err
				}
				before := volume.DeepCopy()
				c.edit(volume)
				// A change that is admitted before the policies are in force would make the next try change nothing.
				return operator.Patch(t.Context(), volume, client.MergeFrom(before), client.DryRunAll)
			}
			if c.allowed {
				n.eventually(try)
				return
			}
			n.denied(try, "TenantsOnly: PersistentVolume/volumerules-")
		})
	}
}
