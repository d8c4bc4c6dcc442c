package workload

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// tmp is a directory that nearly every program writes to.
const tmp = "/tmp"

// claims are the PersistentVolumeClaims of the volumes with a size.
func (i *image) claims() []runtime.Object {
	var claims []runtime.Object
	for _, v := range i.Volumes {
		if v.Size == nil {
			continue
		}
		claims = append(claims, &corev1.PersistentVolumeClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: ClaimOf(i.app, v), Labels: labelsOf(i.app)},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{accessMode(v)},
				StorageClassName: v.StorageClassName,
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *v.Size}},
			},
		})
	}
	return claims
}

// ClaimOf returns the name of the claim that a volume of an Image app mounts, "" for a volume that lasts only as long as its pod. A claim
// cannot be renamed, so an adopted claim keeps the name that it got from the app that created it.
func ClaimOf(app *v1alpha1.App, v v1alpha1.ImageVolume) string {
	switch {
	case v.ClaimName != "":
		return v.ClaimName
	case v.Size == nil:
		return ""
	case app.Spec.MovedFrom != nil:
		return app.Spec.MovedFrom.App + "-" + v.Name
	}
	return app.Name + "-" + v.Name
}

func accessMode(v v1alpha1.ImageVolume) corev1.PersistentVolumeAccessMode {
	if v.AccessMode == "" {
		return corev1.ReadWriteOnce
	}
	return v.AccessMode
}

// exclusive returns the first volume that can be mounted on one node only, nil if there is none.
func (i *image) exclusive() *v1alpha1.ImageVolume {
	n := slices.IndexFunc(i.Volumes, func(v v1alpha1.ImageVolume) bool {
		mode := accessMode(v)
		return ClaimOf(i.app, v) != "" && (mode == corev1.ReadWriteOnce || mode == corev1.ReadWriteOncePod)
	})
	if n < 0 {
		return nil
	}
	return &i.Volumes[n]
}

// storage returns the pod's volumes and mounts: config files, Secrets, volumes, and /tmp if the pod could not write there otherwise.
func (i *image) storage() ([]corev1.Volume, []corev1.VolumeMount) {
	var volumes []corev1.Volume
	mounts := slices.Clone(i.config.mounts)
	add := func(name string, source corev1.VolumeSource, mount corev1.VolumeMount) {
		mount.Name = name
		volumes, mounts = append(volumes, corev1.Volume{Name: name, VolumeSource: source}), append(mounts, mount)
	}
	if len(i.config.items) > 0 {
		source := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: i.app.Name + "-config"}, Items: i.config.items}
		volumes = append(volumes, corev1.Volume{Name: configVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &source}})
	}
	for n, s := range i.SecretFiles {
		source := corev1.SecretVolumeSource{SecretName: s.SecretRef.Name}
		if s.Optional {
			source.Optional = &s.Optional
		}
		add(fmt.Sprintf("secret-%d", n), corev1.VolumeSource{Secret: &source}, corev1.VolumeMount{MountPath: s.MountPath, ReadOnly: true})
	}
	for _, v := range i.Volumes {
		add(volumeName(v.Name), i.source(v), corev1.VolumeMount{MountPath: v.MountPath})
	}
	if i.Security.ReadOnlyRootFilesystem && !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == tmp }) {
		add("tmp", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, corev1.VolumeMount{MountPath: tmp})
	}
	return volumes, mounts
}

// volumeName is the name of one of the app's own volumes in the pod. The prefix keeps it distinct from the names of other volumes.
func volumeName(name string) string { return "volume-" + name }

func (i *image) source(v v1alpha1.ImageVolume) corev1.VolumeSource {
	claim := ClaimOf(i.app, v)
	if claim == "" {
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	}
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
}

// mountPaths are the mount paths of one container, with the fields that name them.
type mountPaths map[string]string

// add refuses a path where something else is mounted, or where nothing can be mounted.
func (p *mountPaths) add(field, name string) error {
	at := path.Clean(name)
	switch other, twice := (*p)[at]; {
	case twice:
		return fmt.Errorf("%s.mountPath: %s is where %s is mounted already", field, at, other)
	case at == "/":
		return fmt.Errorf("%s.mountPath: / is where the image itself is: choose a folder below it", field)
	case strings.Contains(at, ":"):
		return fmt.Errorf("%s.mountPath: %s must not hold a colon", field, at)
	}
	if *p == nil {
		*p = mountPaths{}
	}
	(*p)[at] = field
	return nil
}
