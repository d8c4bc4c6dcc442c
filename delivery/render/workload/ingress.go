package workload

import (
	"cmp"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// ingress returns one Ingress for all hosts, with a rule for each host and a path in it for each of the host's paths.
func (i *image) ingress() []runtime.Object {
	hosts := i.hosts()
	if len(hosts) == 0 || i.settings.Gateway != (Gateway{}) {
		return nil
	}
	made := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: i.meta(""),
	}
	if class := cmp.Or(i.ingressSettings().IngressClassName, i.settings.IngressClass); class != "" {
		made.Spec.IngressClassName = &class
	}
	made.Annotations = i.ingressSettings().Annotations
	for _, h := range hosts {
		rule := ruleOf(&made.Spec, h.Host)
		rule.HTTP.Paths = append(rule.HTTP.Paths, i.ingressPath(h))
		if secret := i.certificate(h.Host); secret != "" {
			addTLS(&made.Spec, secret, h.Host)
		}
	}
	return []runtime.Object{made}
}

// ingressSettings returns spec.ingress, or no settings.
func (i *image) ingressSettings() v1alpha1.AppIngress {
	if i.app.Spec.Ingress == nil {
		return v1alpha1.AppIngress{}
	}
	return *i.app.Spec.Ingress
}

// certificate returns the name of the Secret with the certificate of a host; "" for a host without TLS. Each host has a Secret of its own, so
// that a host whose name does not lead here yet does not delay the certificates of the others.
func (i *image) certificate(host string) string {
	for _, h := range i.hosts() {
		if h.Host == host && h.TLSSecretRef != nil {
			return h.TLSSecretRef.Name
		}
	}
	if !i.app.Spec.Ingress.Issued() {
		return ""
	}
	return i.app.Name + "." + host + "-tls"
}

// checkIngress refuses settings that would have no effect.
func (i *image) checkIngress() error {
	if i.app.Spec.Ingress == nil {
		return nil
	}
	if i.settings.Gateway != (Gateway{}) {
		return fmt.Errorf("spec.ingress is not for this platform, whose Gateway %s serves the hosts: leave it out", i.settings.Gateway)
	}
	for _, issuer := range v1alpha1.CertificateIssuers {
		if name, set := i.ingressSettings().Annotations[issuer]; set && name == "" {
			return fmt.Errorf("spec.ingress.annotations: %s names no issuer", issuer)
		}
	}
	for _, h := range i.hosts() {
		if secret := i.certificate(h.Host); len(secret) > validation.DNS1123SubdomainMaxLength {
			return fmt.Errorf("spec.ingress.annotations: the certificate of %s would be in Secret %s, whose name is too long: name a Secret with tlsSecretRef", h.Host, secret)
		}
	}
	return nil
}

func (i *image) ingressPath(h v1alpha1.AppHost) networkingv1.HTTPIngressPath {
	prefix := networkingv1.PathTypePrefix
	return networkingv1.HTTPIngressPath{Path: h.Path, PathType: &prefix, Backend: networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: i.app.Name, Port: networkingv1.ServiceBackendPort{Name: h.Port}},
	}}
}

// ruleOf returns the rule of a host, and creates it if there is none.
func ruleOf(spec *networkingv1.IngressSpec, host string) *networkingv1.IngressRule {
	n := slices.IndexFunc(spec.Rules, func(r networkingv1.IngressRule) bool { return r.Host == host })
	if n < 0 {
		n = len(spec.Rules)
		spec.Rules = append(spec.Rules, networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{}}})
	}
	return &spec.Rules[n]
}

// addTLS adds a host to the hosts of a certificate.
func addTLS(spec *networkingv1.IngressSpec, secret, host string) {
	n := slices.IndexFunc(spec.TLS, func(t networkingv1.IngressTLS) bool { return t.SecretName == secret })
	if n < 0 {
		spec.TLS = append(spec.TLS, networkingv1.IngressTLS{SecretName: secret, Hosts: []string{host}})
		return
	}
	if !slices.Contains(spec.TLS[n].Hosts, host) {
		spec.TLS[n].Hosts = append(spec.TLS[n].Hosts, host)
	}
}
