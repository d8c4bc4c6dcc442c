package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// initContainers returns the containers that run before the app's own container, and the sidecars, which run beside it
// (https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/). All are as restricted as the app's own container.
func (i *image) initContainers() []corev1.Container {
	var all []corev1.Container
	for n := range i.InitContainers {
		all = append(all, i.initContainer(&i.InitContainers[n]))
	}
	return all
}

func (i *image) initContainer(of *v1alpha1.ImageContainer) corev1.Container {
	c := corev1.Container{
		Name:            of.Name,
		Image:           cmp.Or(of.Image, i.reference()),
		ImagePullPolicy: of.ImagePullPolicy,
		Command:         of.Command,
		Args:            of.Args,
		Env:             of.Env,
		EnvFrom:         of.EnvFrom,
		Resources:       of.Resources,
		ReadinessProbe:  probe(of.Probes.Readiness, nil),
		LivenessProbe:   probe(of.Probes.Liveness, nil),
		StartupProbe:    probe(of.Probes.Startup, nil),
		SecurityContext: restricted(),
	}
	if of.Image == "" && of.ImagePullPolicy == "" {
		c.ImagePullPolicy = i.ImagePullPolicy
	}
	if of.RestartPolicy != "" {
		c.RestartPolicy = &of.RestartPolicy
	}
	c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = of.Security.RunAsUser, of.Security.RunAsGroup
	c.SecurityContext.ReadOnlyRootFilesystem = of.Security.ReadOnlyRootFilesystem
	if i.Security.ReadOnlyRootFilesystem && of.Security.ReadOnlyRootFilesystem == nil {
		c.SecurityContext.ReadOnlyRootFilesystem = &i.Security.ReadOnlyRootFilesystem
	}
	for _, m := range of.VolumeMounts {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeName(m.Name), MountPath: m.MountPath, SubPath: m.SubPath, ReadOnly: m.ReadOnly})
	}
	return c
}

// checkInitContainers requires names that are not the app's own, probes of a port, and mounts of volumes that the app has.
func (i *image) checkInitContainers() error {
	for n := range i.InitContainers {
		if err := i.checkInitContainer(&i.InitContainers[n]); err != nil {
			return fmt.Errorf("spec.image.initContainers[%s]: %w", i.InitContainers[n].Name, err)
		}
	}
	return nil
}

func (i *image) checkInitContainer(c *v1alpha1.ImageContainer) error {
	if c.Name == i.app.Name {
		return fmt.Errorf("the app's own container has the name %s: choose another", c.Name)
	}
	for _, p := range []*v1alpha1.Probe{c.Probes.Readiness, c.Probes.Liveness, c.Probes.Startup} {
		if p != nil && len(p.Command) == 0 && (p.Port == nil || p.Port.StrVal != "") {
			return errors.New("a probe by path or tcp needs the number of a port: spec.image.ports are those of the app's own container")
		}
	}
	var taken mountPaths
	for m, mount := range c.VolumeMounts {
		if err := taken.add(fmt.Sprintf("volumeMounts[%d]", m), mount.MountPath); err != nil {
			return err
		}
		if !slices.ContainsFunc(i.Volumes, func(v v1alpha1.ImageVolume) bool { return v.Name == mount.Name }) {
			return fmt.Errorf("volumeMounts[%d]: spec.image.volumes has no volume named %q", m, mount.Name)
		}
	}
	return nil
}
