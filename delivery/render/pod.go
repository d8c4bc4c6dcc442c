package render

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// podSpec returns a pod that Pod Security "restricted" admits
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/): not as root, the runtime's seccomp profile,
// no capabilities, no way to more privileges. It gets no credentials for the API server either.
func podSpec(app *v1alpha1.App) corev1.PodSpec {
	yes, no := true, false
	return corev1.PodSpec{
		AutomountServiceAccountToken: &no,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   &yes,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{container(app)},
	}
}

func container(app *v1alpha1.App) corev1.Container {
	image := app.Spec.Image
	no := false
	c := corev1.Container{
		Name:            app.Name,
		Image:           image.Reference,
		ImagePullPolicy: image.ImagePullPolicy,
		Command:         image.Command,
		Args:            image.Args,
		Env:             image.Env,
		EnvFrom:         image.EnvFrom,
		Resources:       image.Resources,
		ReadinessProbe:  readiness(image),
		LivenessProbe:   probe(image.Probes.Liveness, image.Ports),
		StartupProbe:    probe(image.Probes.Startup, image.Ports),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	for _, p := range image.Ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Port, Protocol: protocolOf(p)})
	}
	return c
}

// readiness returns the readiness probe: the app's own, else a TCP connection to the first port, so that no traffic
// reaches a pod that does not listen yet. Without ports, or when the first is not TCP, there is none to make.
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

// checkProbe makes sure that a probe has a port to ask, which the API server does not look at.
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

// protocolOf is written out although TCP is the default: server-side apply tells ports apart by it.
func protocolOf(p v1alpha1.ImagePort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}
