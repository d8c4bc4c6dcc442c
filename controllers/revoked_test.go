package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestInvalidAmountsOfATenantKeepNoRevokedAccess: amounts that the API server refuses keep neither access, nor credentials, nor connections.
func TestInvalidAmountsOfATenantKeepNoRevokedAccess(t *testing.T) {
	n := newTeam(t, "revoked")
	ann, mallory := v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "ann", Role: "admin"}, v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "mallory", Role: "admin"}
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Owners, s.Egress = []v1alpha1.Owner{ann, mallory}, []string{"203.0.113.0/24"}
	})
	const name, host = "revocable", "revocable.example"
	n.source(name, host, "password")
	registry := registryFor(name, host, n.name)
	n.create(registry)
	home := &corev1.Namespace{}
	n.eventually(func() error {
		return n.admin.Get(t.Context(), client.ObjectKey{Name: v1alpha1.HomeNamespace(n.name)}, home)
	})
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: home.Name, Name: "shop"}}
	n.create(project)
	n.copyHas(name, host, "password")
	n.admits("kubeop-admin: ann", "kubeop-admin: mallory")
	n.ready(project)

	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(project), project); err != nil {
			return err
		}
		project.Spec.Quota = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("-1")}
		project.Spec.Limits = v1alpha1.ContainerLimits{
			Default:        corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")},
			DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}
		return n.admin.Update(t.Context(), project)
	})
	n.until(project, v1alpha1.GuardrailsReadyCondition, metav1.ConditionFalse, v1alpha1.ApplyFailedReason)
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Owners, s.Egress, s.Quota = []v1alpha1.Owner{ann}, nil, corev1.ResourceList{"requests.cpu": resource.MustParse("1")}
	})
	n.setRegistry(name, func(spec *v1alpha1.RegistrySpec) { spec.Tenants = nil })
	n.admits("kubeop-admin: ann")
	n.copyHas(name, host, "")
	at := client.ObjectKey{Namespace: n.namespace(), Name: "kubeop"}
	n.eventually(func() error {
		counted, network := &corev1.ResourceQuota{}, &networkingv1.NetworkPolicy{}
		if err := errors.Join(n.admin.Get(t.Context(), at, counted), n.admin.Get(t.Context(), at, network)); err != nil {
			return err
		}
		cpu, pods := counted.Spec.Hard["requests.cpu"], counted.Spec.Hard["pods"]
		if text := fmt.Sprint(network.Spec); cpu.String() != "1" || pods.String() != "0" || strings.Contains(text, "203.0.113.0") {
			return fmt.Errorf("requests.cpu %s, pods %s, network %s", cpu.String(), pods.String(), text)
		}
		return nil
	})

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Owners, s.Policies = nil, []string{"revoked-absent"} })
	n.admits()
	message := n.until(project, v1alpha1.GuardrailsReadyCondition, metav1.ConditionFalse, v1alpha1.PolicyNotFoundReason)
	if !strings.Contains(message, "revoked-absent") {
		t.Errorf("it says %q", message)
	}
}
