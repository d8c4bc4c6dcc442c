package workload

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Pod returns a pod that runs one image until it ends, as restricted as the pods of an app of type Image. Its one container has the given
// name.
func Pod(name string, source *v1alpha1.ImageSource) corev1.PodSpec {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AppSpec{Image: source}}
	pod := (&image{app: app, ImageSource: source}).podSpec()
	pod.RestartPolicy = corev1.RestartPolicyNever
	return pod
}

// podSpec returns a pod that Pod Security "restricted" admits
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/): not as root, the runtime's seccomp profile,
// no capabilities, no way to more privileges. It gets no credentials for the API server either.
func (i *image) podSpec() corev1.PodSpec {
	yes, no := true, false
	volumes, mounts := i.storage()
	pod := corev1.PodSpec{
		AutomountServiceAccountToken: &no,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   &yes,
			RunAsUser:      i.Security.RunAsUser,
			RunAsGroup:     i.Security.RunAsGroup,
			FSGroup:        i.Security.FSGroup,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers:                    []corev1.Container{i.container(mounts)},
		Volumes:                       volumes,
		TerminationGracePeriodSeconds: i.TerminationGracePeriodSeconds,
	}
	if pod.SecurityContext.FSGroup == nil {
		pod.SecurityContext.FSGroup = i.Security.RunAsGroup
	}
	for _, s := range i.PullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: s.Name})
	}
	if i.Schedule == "" && i.Job == nil && i.most() > 1 {
		pod.TopologySpreadConstraints = i.spread()
	}
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

// spread distributes the replicas of one revision over nodes and zones if there are several.
func (i *image) spread() []corev1.TopologySpreadConstraint {
	var constraints []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		constraints = append(constraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:  &metav1.LabelSelector{MatchLabels: labelsOf(i.app)},
			MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		})
	}
	return constraints
}

func (i *image) container(mounts []corev1.VolumeMount) corev1.Container {
	no := false
	c := corev1.Container{
		Name:            i.app.Name,
		Image:           i.reference(),
		ImagePullPolicy: i.ImagePullPolicy,
		Command:         i.Command,
		Args:            i.Args,
		Env:             i.Env,
		EnvFrom:         i.EnvFrom,
		Resources:       i.Resources,
		ReadinessProbe:  readiness(i.ImageSource),
		LivenessProbe:   probe(i.Probes.Liveness, i.Ports),
		StartupProbe:    probe(i.Probes.Startup, i.Ports),
		VolumeMounts:    mounts,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if i.Security.ReadOnlyRootFilesystem {
		c.SecurityContext.ReadOnlyRootFilesystem = &i.Security.ReadOnlyRootFilesystem
	}
	for _, p := range i.Ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Port, Protocol: protocolOf(p)})
	}
	return c
}

// readiness returns the readiness probe: the app's own, else a TCP connection to the first port, so that a pod gets no traffic before it
// listens. Without ports, or if the first is not TCP, there is none.
func readiness(image *v1alpha1.ImageSource) *corev1.Probe {
	if image.Probes.Readiness != nil {
		return probe(image.Probes.Readiness, image.Ports)
	}
	if len(image.Ports) == 0 || !isTCP(image.Ports[0]) {
		return nil
	}
	return probe(&v1alpha1.Probe{TCP: true}, image.Ports)
}

func probe(p *v1alpha1.Probe, ports []v1alpha1.ImagePort) *corev1.Probe {
	if p == nil {
		return nil
	}
	made := &corev1.Probe{
		PeriodSeconds:       p.PeriodSeconds,
		FailureThreshold:    p.FailureThreshold,
		InitialDelaySeconds: p.InitialDelaySeconds,
		TimeoutSeconds:      p.TimeoutSeconds,
	}
	switch {
	case len(p.Command) > 0:
		made.Exec = &corev1.ExecAction{Command: p.Command}
	case p.Path != "":
		made.HTTPGet = &corev1.HTTPGetAction{Path: p.Path, Port: probePort(p, ports)}
	default:
		made.TCPSocket = &corev1.TCPSocketAction{Port: probePort(p, ports)}
	}
	return made
}

func probePort(p *v1alpha1.Probe, ports []v1alpha1.ImagePort) intstr.IntOrString {
	if p.Port != nil {
		return *p.Port
	}
	return intstr.FromString(ports[0].Name)
}

// checkProbe makes sure that a probe names a port, which the API server does not check.
func checkProbe(p *v1alpha1.Probe, ports []v1alpha1.ImagePort) error {
	if p == nil || len(p.Command) > 0 {
		return nil
	}
	if p.Port == nil && len(ports) == 0 {
		return errors.New("path and tcp need a port; set port, or spec.image.ports")
	}
	if p.Port == nil || p.Port.Type == intstr.Int {
		return nil
	}
	named := func(port v1alpha1.ImagePort) bool { return port.Name == p.Port.StrVal }
	if !slices.ContainsFunc(ports, named) {
		return fmt.Errorf("spec.image.ports has no port named %q", p.Port.StrVal)
	}
	return nil
}

func isTCP(p v1alpha1.ImagePort) bool { return protocolOf(p) == corev1.ProtocolTCP }

// protocolOf sets the protocol although TCP is the default: server-side apply identifies ports by it.
func protocolOf(p v1alpha1.ImagePort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}
