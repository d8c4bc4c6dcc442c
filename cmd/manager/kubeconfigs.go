package main

import (
	"fmt"
	"os"
	"path/filepath"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/kubeconfigs"
)

// openKubeconfigs returns nil if people get no kubeconfigs.
func openKubeconfigs(c *config.Manager, cluster *rest.Config) (*kubeconfigs.Operations, error) {
	if c.KubeconfigServer == "" {
		return nil, nil
	}
	of := &kubeconfigs.Operations{Server: kubeconfigs.Server{URL: c.KubeconfigServer}, Manager: c.PublicURL}
	if c.KubeconfigCAFile != "" {
		var err error
		if of.Server.CA, err = os.ReadFile(filepath.Clean(c.KubeconfigCAFile)); err != nil {
			return nil, fmt.Errorf("KUBECONFIG_CA_FILE: %w", err)
		}
	}
	client, err := corev1client.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("making the client for kubeconfigs: %w", err)
	}
	of.Cluster = client
	return of, nil
}
