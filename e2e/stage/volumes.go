package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// provisioner is the name of the stage's provisioner, in its StorageClass and on its volumes. With the annotation Kubernetes leaves the deletion
// of released volumes to the provisioner.
const (
	provisioner           = "stage.kubeop.io/folder"
	provisionedAnnotation = "pv.kubernetes.io/provisioned-by"
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
)

// volumesOnNode is the folder of the volumes on a real node. VolumeDir returns folders in it, as the host sees them.
const volumesOnNode = "/var/lib/volumes"

// VolumeDir returns the folder of a volume of ServeVolumes, on the host.
func (s *Stage) VolumeDir(volume string) string {
	return filepath.Join(s.clusterDir(), "node", "var-lib", "volumes", volume)
}

// ServeVolumes creates a default StorageClass. Until the context ends, it creates a volume in a folder of the node for each claim of the class,
// and deletes released volumes with their folders, so that wrongly deleted data is really lost. It needs a real node.
func (s *Stage) ServeVolumes(ctx context.Context) error {
	policy, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "folder", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: provisioner, ReclaimPolicy: &policy, VolumeBindingMode: &binding,
	}
	if err := s.Client.Create(ctx, class); err != nil {
		return fmt.Errorf("making the StorageClass: %w", err)
	}
	go func() {
		reported := ""
		for ctx.Err() == nil {
			// Continue after an error, because tests stop the API server on purpose. Report each error once.
			err := errors.Join(s.provision(ctx), s.reclaim(ctx))
			if err != nil && ctx.Err() == nil && err.Error() != reported {
				reported = err.Error()
				_, _ = fmt.Fprintln(s.out, "serving volumes:", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return nil
}

// provision creates a volume for each claim of the class that Kubernetes has assigned to this provisioner.
func (s *Stage) provision(ctx context.Context) error {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := s.Client.List(ctx, claims); err != nil {
		return err
	}
	var failed error
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.Spec.VolumeName == "" && c.DeletionTimestamp == nil && c.Annotations[provisionerAnnotation] == provisioner {
			failed = errors.Join(failed, s.makeVolume(ctx, c))
		}
	}
	return failed
}

func (s *Stage) makeVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := "folder-" + string(claim.UID)
	dir := s.VolumeDir(name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	// Every user of a pod may write, because fsGroup does not apply to hostPath volumes.
	if err := os.Chmod(dir, 0o777); err != nil {
		return err
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedAnnotation: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: "folder",
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(volumesOnNode, name)}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		},
	}
	return client.IgnoreAlreadyExists(s.Client.Create(ctx, volume))
}

// reclaim deletes the released volumes with the policy Delete.
func (s *Stage) reclaim(ctx context.Context) error {
	volumes := &corev1.PersistentVolumeList{}
	if err := s.Client.List(ctx, volumes); err != nil {
		return err
	}
	var failed error
	for i := range volumes.Items {
		v := &volumes.Items[i]
		if v.Annotations[provisionedAnnotation] != provisioner || v.Status.Phase != corev1.VolumeReleased ||
			v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			continue
		}
		err := s.Client.Delete(ctx, v, client.Preconditions{UID: &[]types.UID{v.UID}[0], ResourceVersion: &v.ResourceVersion})
		if err == nil {
			err = os.RemoveAll(s.VolumeDir(v.Name))
		}
		failed = errors.Join(failed, client.IgnoreNotFound(err))
	}
	return failed
}
