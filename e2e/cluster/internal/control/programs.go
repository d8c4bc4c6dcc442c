// Package control has the command lines and configurations of the control plane's programs.
package control

import (
	"fmt"
	"os"
	"time"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
	"github.com/kubeop/kubeop/e2e/cluster/internal/supervise"
)

// Plane describes one control plane.
type Plane struct {
	Dir layout.Dir
	// Binary is the multi-call binary, which contains all programs.
	Binary string
	// APIPort is a reserved port on loopback.
	APIPort int
	Plan    network.Plan
	// RealNode means that there is a real kubelet, which the API server calls, and that pods call the API server.
	RealNode bool
	// Kubernetes is the minor version whose APIs and features the programs have, such as "1.34"; "" is their own.
	Kubernetes string
	// Audit turns the audit log on.
	Audit bool
}

// grace is how long a control plane program may take to end. It is short because the data is not kept.
const grace = time.Second

// Server returns the URL of the API server on the host.
func (p Plane) Server() string { return fmt.Sprintf("https://127.0.0.1:%d", p.APIPort) }

// NodeServer returns the URL of the API server for the node and its pods.
func (p Plane) NodeServer() string {
	if !p.RealNode {
		return p.Server()
	}
	return fmt.Sprintf("https://%s:%d", p.Plan.Host, p.APIPort)
}

// AuditLog returns the path of the audit log, or "" if there is none.
func (p Plane) AuditLog() string {
	if !p.Audit {
		return ""
	}
	return p.Dir.Log("audit")
}

// The sockets of etcd are in the cluster directory, which only its owner may enter. So they need no certificates, and cost less than TLS. The
// paths are relative to the programs' working directory, because paths of sockets must be short.
const (
	etcdSocket = "unix://etcd.sock"
	peerSocket = "unix://etcd-peer.sock"
)

// Etcd returns the cluster's database. It does not sync to disk, because its data is not kept.
func (p Plane) Etcd() supervise.Program {
	return p.program("etcd",
		"--name=cluster",
		"--data-dir="+p.Dir.Path("etcd"),
		"--listen-client-urls="+etcdSocket, "--advertise-client-urls="+etcdSocket,
		"--listen-peer-urls="+peerSocket, "--initial-advertise-peer-urls="+peerSocket,
		"--initial-cluster=cluster="+peerSocket,
		"--unsafe-no-fsync",
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	)
}

// APIServer returns the Kubernetes API server with its normal authorization and admission.
func (p Plane) APIServer() supervise.Program {
	args := []string{
		"--etcd-servers=" + etcdSocket,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.APIPort), "--permit-port-sharing",
		"--tls-cert-file=" + p.Dir.PKI("apiserver.crt"), "--tls-private-key-file=" + p.Dir.PKI("apiserver.key"),
		"--client-ca-file=" + p.Dir.PKI("ca.crt"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + p.Plan.Services.String(),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.Dir.PKI("service-accounts.crt"),
		"--service-account-signing-key-file=" + p.Dir.PKI("service-accounts.key"),
		"--allow-privileged",
		"--advertise-address=" + p.Plan.Host.String(),
		"--kubelet-certificate-authority=" + p.Dir.PKI("ca.crt"),
		"--kubelet-client-certificate=" + p.Dir.PKI("kubelet-client.crt"),
		"--kubelet-client-key=" + p.Dir.PKI("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
	}
	if !p.RealNode {
		// No pod could reach an endpoint of the kubernetes Service.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	if p.Audit {
		args = append(args, "--audit-policy-file="+p.Dir.Config("audit-policy.yaml"), "--audit-log-path="+p.AuditLog())
	}
	return p.program("kube-apiserver", p.emulated(args)...)
}

// ControllerManager returns the program with Kubernetes' own controllers, but the one that checks the types in admission policies: that decides
// nothing, and for the policies of kubeop it takes half a core for minutes.
func (p Plane) ControllerManager() supervise.Program {
	kubeconfig := p.Dir.Config("kube-controller-manager.kubeconfig")
	return p.program("kube-controller-manager", p.emulated([]string{
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers=*,-validatingadmissionpolicy-status-controller",
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + p.Dir.PKI("service-accounts.key"),
		"--root-ca-file=" + p.Dir.PKI("ca.crt"),
		"--cluster-signing-cert-file=" + p.Dir.PKI("ca.crt"), "--cluster-signing-key-file=" + p.Dir.PKI("ca.key"),
		"--kube-api-qps=200", "--kube-api-burst=400",
	})...)
}

// emulated adds the version whose APIs and features a program has.
func (p Plane) emulated(args []string) []string {
	if p.Kubernetes == "" {
		return args
	}
	return append(args, "--emulated-version="+p.Kubernetes)
}

// Scheduler returns Kubernetes' scheduler.
func (p Plane) Scheduler() supervise.Program {
	return p.program("kube-scheduler",
		"--kubeconfig="+p.Dir.Config("kube-scheduler.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
	)
}

func (p Plane) program(name string, args ...string) supervise.Program {
	return supervise.Program{
		Name: name, Path: p.Binary, Args: append([]string{name}, args...),
		Dir: string(p.Dir), Log: p.Dir.Log(name), Grace: grace, Env: collection,
	}
}

// collection makes the programs collect garbage rarely, because these clusters are small and processors are few. That makes busy tests a sixth
// faster. A program that grows large collects more often, to stay within the limit.
var collection = []string{"GOGC=400", "GOMEMLIMIT=4GiB"}

// auditPolicy records the metadata of each request once, which is enough to count requests by user. It leaves out the requests of the control
// plane and the node, which would be more than half of the log.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler]
- level: None
  userGroups: [system:nodes, system:serviceaccounts:kube-system]
- level: Metadata
`

// WriteConfig writes the configuration files that the programs name.
func (p Plane) WriteConfig() error {
	if err := os.WriteFile(p.Dir.Config("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return nil
}
