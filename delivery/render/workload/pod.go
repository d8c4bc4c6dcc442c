package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/reference"
)

// Pod returns a pod that runs one image until it ends, as restricted as the pods of an app of type Image. Its one container has the given
// name. It names the Secret of the image's registry, if there is one among secrets.
func Pod(name string, source *v1alpha1.ImageSource, secrets []v1alpha1.PullSecret) corev1.PodSpec {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AppSpec{Image: source}}
	pod := (&image{app: app, ImageSource: source, settings: Settings{PullSecrets: secrets}}).podSpec()
	pod.RestartPolicy = corev1.RestartPolicyNever
	return pod
}

// podSpec returns a pod that Pod Security "restricted" admits
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/): not as root, the runtime's seccomp profile,
// no capabilities, no way to more privileges. It gets no credentials for the API server unless the app asks for them.
func (i *image) podSpec() corev1.PodSpec {
	yes := true
	volumes, mounts := i.storage()
	pod := corev1.PodSpec{
		// The API server copies either field to the other. If the copy had no field manager, it would stay when the app drops the account.
		ServiceAccountName:           i.ServiceAccountName,
		DeprecatedServiceAccount:     i.ServiceAccountName,
		AutomountServiceAccountToken: &i.AutomountServiceAccountToken,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   &yes,
			RunAsUser:      i.Security.RunAsUser,
			RunAsGroup:     i.Security.RunAsGroup,
			FSGroup:        i.Security.FSGroup,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		InitContainers:                i.initContainers(),
		Containers:                    []corev1.Container{i.container(mounts)},
		Volumes:                       volumes,
		TerminationGracePeriodSeconds: i.TerminationGracePeriodSeconds,
		NodeSelector:                  i.NodeSelector,
		Tolerations:                   i.Tolerations,
		Affinity:                      i.Affinity,
		TopologySpreadConstraints:     i.spread(),
	}
	if pod.SecurityContext.FSGroup == nil {
		pod.SecurityContext.FSGroup = i.Security.RunAsGroup
	}
	i.namePullSecrets(&pod)
	return pod
}

// fewest and most are the bounds of the number of replicas.
func (i *image) fewest() int32 {
	switch {
	case i.Autoscale != nil && i.Autoscale.Min != nil:
		return *i.Autoscale.Min
	case i.Autoscale == nil && i.Replicas != nil:
		return *i.Replicas
	}
	return 1
}

func (i *image) most() int32 {
	if i.Autoscale != nil {
		return i.Autoscale.Max
	}
	return i.fewest()
}

// spread returns the app's own constraints. Without any it distributes the replicas of one revision over nodes and zones if there are
// several.
func (i *image) spread() []corev1.TopologySpreadConstraint {
	var constraints []corev1.TopologySpreadConstraint
	for _, c := range i.TopologySpreadConstraints {
		if c.LabelSelector == nil { // For Kubernetes this selects no pods, so the constraint would have no effect.
			c.LabelSelector = &metav1.LabelSelector{MatchLabels: labelsOf(i.app)}
		}
		constraints = append(constraints, c)
	}
	if len(constraints) > 0 || i.Schedule != "" || i.Job != nil || i.most() <= 1 {
		return constraints
	}
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		constraints = append(constraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:  &metav1.LabelSelector{MatchLabels: labelsOf(i.app)},
			MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		})
	}
	return constraints
}

// namePullSecrets names the Secrets that the app names, and those of the registries of the pod's images. Admission adds the ones of the service
// account only to a pod that names none.
func (i *image) namePullSecrets(pod *corev1.PodSpec) {
	var images, names []string
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		images = append(images, c.Image)
	}
	for _, s := range i.PullSecrets {
		names = append(names, s.Name)
	}
	for _, name := range reference.PullSecrets(i.settings.PullSecrets, images...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
}
