package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Namespace is the operator's namespace, as InstallChart uses it.
const Namespace = "kubeop-system"

// InstallChart installs the kinds and roles of charts/kubeop, without the operator, and returns a configuration for the operator's service
// account. So what its roles do not allow fails in the tests too.
func (e *Env) InstallChart(ctx context.Context, values ...string) (*rest.Config, error) {
	set := strings.Join(append([]string{"replicas=0", "crds.apply=false"}, values...), ",")
	if _, err := e.Helm(ctx, "install", "kubeop", e.Chart(), "--namespace", Namespace, "--create-namespace", "--set", set); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return nil, err
	}
	token, err := client.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, "kubeop", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting the operator's token: %w", err)
	}
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken = token.Status.Token
	config.QPS, config.Burst = -1, -1
	return config, nil
}

// Chart returns the folder charts/kubeop.
func (e *Env) Chart() string { return filepath.Join(e.root, "charts", "kubeop") }

// AdminKubeconfig returns the path of the administrator's kubeconfig, for programs that read one.
func (e *Env) AdminKubeconfig() string { return e.kubeconfig }

// Helm runs the helm command as administrator and returns what it prints.
func (e *Env) Helm(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(filepath.Dir(e.cluster), "helm"), append(args, "--kubeconfig", e.kubeconfig)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", args[0], err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// Kubeconfig writes a configuration with a bearer token as a kubeconfig, for another program.
func Kubeconfig(path string, config *rest.Config) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}
	c.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	c.CurrentContext = "test"
	return clientcmd.WriteToFile(*c, path)
}
