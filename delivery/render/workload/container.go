package workload

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// container returns the app's own container.
func (i *image) container(mounts []corev1.VolumeMount) corev1.Container {
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
		SecurityContext: restricted(),
	}
	if i.Security.ReadOnlyRootFilesystem {
		c.SecurityContext.ReadOnlyRootFilesystem = &i.Security.ReadOnlyRootFilesystem
	}
	for _, p := range i.Ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Port, Protocol: protocolOf(p)})
	}
	return c
}

// restricted is what Pod Security "restricted" requires of each container.
func restricted() *corev1.SecurityContext {
	no := false
	return &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
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

// checkProbe makes sure that a probe names a port of TCP, which the API server does not check. A port by its number needs not be listed.
func checkProbe(p *v1alpha1.Probe, ports []v1alpha1.ImagePort) error {
	if p == nil || len(p.Command) > 0 {
		return nil
	}
	if p.Port == nil && len(ports) == 0 {
		return errors.New("path and tcp need a port; set port, or spec.image.ports")
	}
	if p.Port != nil && p.Port.Type == intstr.Int {
		return nil
	}
	n := 0
	if p.Port != nil {
		n = slices.IndexFunc(ports, func(port v1alpha1.ImagePort) bool { return port.Name == p.Port.StrVal })
	}
	switch {
	case n < 0:
		return fmt.Errorf("spec.image.ports has no port named %q", p.Port.StrVal)
	case !isTCP(ports[n]):
		return fmt.Errorf("path and tcp connect by TCP, and port %s is %s; set the number of a port at which the program listens by TCP", ports[n].Name, ports[n].Protocol)
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
