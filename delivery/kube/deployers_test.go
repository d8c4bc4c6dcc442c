package kube

import (
	"errors"
	"testing"
)

func TestAppsAreDeliveredByTheirProjectsAccount(t *testing.T) {
	const platforms = "system:serviceaccount:kubeop-system:kubeop-platform-deployer"
	tests := map[string]struct{ platformApps, namespace, want string }{
		"a tenant's project":                    {"ClusterAdmin", "kubeop-acme-shop", "system:serviceaccount:kubeop-acme-shop:kubeop-deployer"},
		"a project of the platform":             {"Namespaced", "cert-manager", platforms},
		"the platform, with all rights":         {"ClusterAdmin", "kube-system", platforms},
		"the platform, turned off":              {"Off", "cert-manager", "system:serviceaccount:cert-manager:kubeop-deployer"},
		"not set":                               {"", "cert-manager", "system:serviceaccount:cert-manager:kubeop-deployer"},
		"a namespace that looks like a project": {"ClusterAdmin", "kubeop-platform-x", "system:serviceaccount:kubeop-platform-x:kubeop-deployer"},
		"the operator's own":                    {"ClusterAdmin", "kubeop-system", "system:serviceaccount:kubeop-system:kubeop-deployer"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (Deployers{PlatformApps: tc.platformApps, Operator: "kubeop-system"}).Of(tc.namespace); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNobodyActsInTheNamespacesOfThePlatformWhileItsAppsAreOff(t *testing.T) {
	for _, platformApps := range []string{"", PlatformAppsOff} {
		clients := NewClients(nil, nil, nil, Deployers{PlatformApps: platformApps, Operator: "kubeop-system"})
		if c, err := clients.As("cert-manager"); c != nil || !errors.Is(err, ErrPlatformOff) {
			t.Errorf("platformApps %q: got the client %v and %v", platformApps, c, err)
		}
	}
}
