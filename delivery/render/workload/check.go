package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// maxCronJobName is the longest name of a CronJob; its Jobs add eleven characters to it.
const maxCronJobName = 52

// check refuses objects that the API server would accept but that cannot work, and gives better messages for some that the API server would
// refuse.
func (i *image) check() error {
	for _, check := range []func() error{i.checkProbes, i.checkPorts, i.checkHosts, i.checkIngress, i.checkMounts, i.checkVolumes, i.checkJob, i.checkInitContainers} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (i *image) checkProbes() error {
	for _, p := range []struct {
		name  string
		probe *v1alpha1.Probe
	}{{"readiness", i.Probes.Readiness}, {"liveness", i.Probes.Liveness}, {"startup", i.Probes.Startup}} {
		if err := checkProbe(p.probe, i.Ports); err != nil {
			return fmt.Errorf("spec.image.probes.%s: %w", p.name, err)
		}
	}
	return nil
}

// checkPorts requires that each port of the container occurs once: server-side apply identifies ports by number and protocol.
func (i *image) checkPorts() error {
	for n, p := range i.Ports {
		for _, other := range i.Ports[:n] {
			if other.Port == p.Port && protocolOf(other) == protocolOf(p) {
				return fmt.Errorf("spec.image.ports: %s and %s are both port %d/%s of the container: keep one", other.Name, p.Name, p.Port, protocolOf(p))
			}
		}
	}
	return nil
}

func (i *image) checkHosts() error {
	field := "spec.hosts"
	if i.app.Spec.Host != "" {
		field = "spec.host"
	}
	hosts := i.hosts()
	if len(hosts) > 0 && len(i.Ports) == 0 {
		return fmt.Errorf("%s needs spec.image.ports: traffic goes to the first", field)
	}
	for n, h := range hosts {
		at := field
		if field == "spec.hosts" {
			at = fmt.Sprintf("%s[%d]", field, n)
		}
		if err := i.checkHost(h, hosts[:n]); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

func (i *image) checkHost(h v1alpha1.AppHost, before []v1alpha1.AppHost) error {
	n := slices.IndexFunc(i.Ports, func(p v1alpha1.ImagePort) bool { return p.Name == h.Port })
	switch {
	case n < 0:
		return fmt.Errorf("spec.image.ports has no port named %q", h.Port)
	case !isTCP(i.Ports[n]):
		return fmt.Errorf("traffic goes to port %s, which must be TCP; it is %s", h.Port, i.Ports[n].Protocol)
	case h.TLSSecretRef != nil && i.settings.Gateway != (Gateway{}):
		return fmt.Errorf("tlsSecretRef is not for this platform, whose Gateway %s has the certificates: leave it out", i.settings.Gateway)
	}
	for _, other := range before {
		if other.Host != h.Host {
			continue
		}
		if strings.TrimRight(other.Path, "/") == strings.TrimRight(h.Path, "/") {
			return fmt.Errorf("%s%s is there twice", h.Host, h.Path)
		}
		if other.TLSSecretRef != nil && h.TLSSecretRef != nil && *other.TLSSecretRef != *h.TLSSecretRef {
			return fmt.Errorf("%s has two certificates, %s and %s: name one", h.Host, other.TLSSecretRef.Name, h.TLSSecretRef.Name)
		}
	}
	return nil
}

// checkMounts requires that each mount path in the container occurs once.
func (i *image) checkMounts() error {
	type mount struct{ field, path string }
	var mounts []mount
	for n, f := range i.ConfigFiles {
		mounts = append(mounts, mount{fmt.Sprintf("spec.image.configFiles[%d]", n), f.MountPath})
	}
	for n, f := range i.SecretFiles {
		mounts = append(mounts, mount{fmt.Sprintf("spec.image.secretFiles[%d]", n), f.MountPath})
	}
	for _, v := range i.Volumes {
		mounts = append(mounts, mount{fmt.Sprintf("spec.image.volumes[%s]", v.Name), v.MountPath})
	}
	var taken mountPaths
	for _, m := range mounts {
		if err := taken.add(m.field, m.path); err != nil {
			return err
		}
	}
	return nil
}

// checkVolumes refuses pods of which only one could ever start, and claims of the app itself that have the name of another claim.
func (i *image) checkVolumes() error {
	if from := i.app.Spec.MovedFrom; from != nil && from.App == i.app.Name {
		return fmt.Errorf("spec.movedFrom.app: %s is the app itself: name the app that has the claims to take over", from.App)
	}
	v := i.exclusive()
	if v == nil || i.most() <= 1 {
		return nil
	}
	field := "replicas"
	if i.Autoscale != nil {
		field = "autoscale"
	}
	return fmt.Errorf("spec.image.volumes[%s]: with accessMode %s the pods of one node at most can use it, and spec.image.%s allows up to %d: "+
		"set accessMode: ReadWriteMany where a storage class has it, or run one replica; for a volume per replica bring a StatefulSet with an app of type Raw",
		v.Name, accessMode(*v), field, i.most())
}

func (i *image) checkJob() error {
	if i.Schedule != "" && len(i.app.Name) > maxCronJobName {
		return fmt.Errorf("spec.image.schedule: the name of the app has %d characters; one with a schedule may have %d", len(i.app.Name), maxCronJobName)
	}
	if i.Schedule == "" && i.Job != nil && i.Job.ConcurrencyPolicy != "" {
		return errors.New("spec.image.job.concurrencyPolicy is for schedule: a Job runs once")
	}
	return nil
}
