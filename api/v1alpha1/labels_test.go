package v1alpha1

import "testing"

func TestANamespaceNamesItsTenant(t *testing.T) {
	for namespace, want := range map[string]string{
		"kubeop-acme-shop": "acme", "kubeop-acme-blog-2": "acme", "kubeop-acme2-shop": "acme2",
		"cert-manager": PlatformTenant, "kube-system": PlatformTenant,
		"kubeop-system": "", "kubeop-acme": "", "kubeop-platform": "", "kubeop-platform-x": "", "kubeop-": "",
	} {
		if got := TenantOf(namespace); got != want {
			t.Errorf("%s is of %q, want %q", namespace, got, want)
		}
	}
}

func TestAProjectOfThePlatformHasTheNameOfItsNamespace(t *testing.T) {
	if got := ProjectNamespace(PlatformTenant, "cert-manager"); got != "cert-manager" {
		t.Errorf("the platform's project is in %s", got)
	}
	if got := ProjectNamespace("acme", "shop"); got != "kubeop-acme-shop" {
		t.Errorf("the tenant's project is in %s", got)
	}
}
