package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Namespace is where InstallChart puts the operator.
const Namespace = "kubeop-system"

// InstallChart installs the kinds and the roles of charts/kubeop, without the operator itself, and returns a
// configuration that connects as the operator's service account: what its roles do not allow fails in the tests too.
func (e *Env) InstallChart(ctx context.Context) (*rest.Config, error) {
	chart := filepath.Join(e.bin, "..", "..", "charts", "kubeop")
	install := exec.CommandContext(ctx, e.program("helm"), "install", "kubeop", chart, "--namespace", Namespace, "--create-namespace",
		"--set", "replicas=0", "--kubeconfig", e.kubeconfig)
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("helm install: %w\n%s", err, bytes.TrimSpace(out))
	}
	client, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return nil, err
	}
	token, err := client.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, "kubeop", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for the operator's token: %w", err)
	}
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken = token.Status.Token
	config.QPS, config.Burst = -1, -1
	return config, nil
}
