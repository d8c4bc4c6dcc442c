package pki

import (
	"fmt"
	"os"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// Request has the names and addresses for which certificates are needed.
type Request struct {
	// Server is the URL of the API server for clients on the host, and NodeServer for clients on the node. Without a real node they are the
	// same.
	Server, NodeServer string
	// Hosts are additional names and addresses of the API server.
	Hosts []string
	// NodeName and NodeAddress are the node's, or "" if no node needs a certificate.
	NodeName, NodeAddress string
}

// Make writes the authorities, the components' certificates and their kubeconfigs below the cluster directory.
func Make(dir layout.Dir, request Request) error {
	ca, err := NewAuthority("cluster-ca", dir.PKI("ca"))
	if err != nil {
		return err
	}
	hosts := append([]string{
		"localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
	}, request.Hosts...)
	if err := ca.issueTo(dir.PKI("apiserver"), Subject{Name: "kube-apiserver", Hosts: hosts}); err != nil {
		return err
	}
	// The API server calls kubelets as a member of system:masters, so that it may read logs and run exec.
	kubeletClient := Subject{Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}}
	if err := ca.issueTo(dir.PKI("kubelet-client"), kubeletClient); err != nil {
		return err
	}
	// Service account tokens are signed with a separate key.
	if _, err := NewAuthority("service-accounts", dir.PKI("service-accounts")); err != nil {
		return err
	}
	if err := ca.controlPlaneKubeconfigs(dir, request.Server); err != nil {
		return err
	}
	if request.NodeName == "" {
		return nil
	}
	return ca.node(dir, request)
}

func (a *Authority) controlPlaneKubeconfigs(dir layout.Dir, server string) error {
	clients := map[string]Subject{
		dir.Kubeconfig(): {Name: "admin", Groups: []string{"system:masters"}},
		dir.Config("kube-controller-manager.kubeconfig"): {Name: "system:kube-controller-manager"},
		dir.Config("kube-scheduler.kubeconfig"):          {Name: "system:kube-scheduler"},
	}
	for path, subject := range clients {
		if err := a.kubeconfig(path, server, subject); err != nil {
			return err
		}
	}
	return nil
}

func (a *Authority) node(dir layout.Dir, request Request) error {
	serving := Subject{Name: "system:node:" + request.NodeName, Groups: []string{"system:nodes"},
		Hosts: []string{request.NodeName, request.NodeAddress}}
	if err := a.issueTo(dir.PKI("kubelet"), serving); err != nil {
		return err
	}
	kubelet := Subject{Name: "system:node:" + request.NodeName, Groups: []string{"system:nodes"}}
	if err := a.kubeconfig(dir.Config("kubelet.kubeconfig"), request.NodeServer, kubelet); err != nil {
		return err
	}
	proxy := Subject{Name: "system:kube-proxy"}
	return a.kubeconfig(dir.Config("kube-proxy.kubeconfig"), request.NodeServer, proxy)
}

func (a *Authority) issueTo(path string, subject Subject) error {
	pair, err := a.Issue(subject)
	if err != nil {
		return err
	}
	return pair.Write(path)
}

// kubeconfig writes a kubeconfig that refers to no other files, so that it can be copied.
func (a *Authority) kubeconfig(path, server string, subject Subject) error {
	pair, err := a.Issue(subject)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: cluster
clusters:
- name: cluster
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
- name: cluster
  context: {cluster: cluster, user: %s}
users:
- name: %[3]s
  user:
    client-certificate-data: %s
    client-key-data: %s
`, server, base64PEM(a.PEM), subject.Name, base64PEM(pair.Cert), base64PEM(pair.Key))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
