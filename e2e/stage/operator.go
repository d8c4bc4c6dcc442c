package stage

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Operator is the operator as a process on the host. It has the permissions of the chart's service account.
type Operator struct {
	// Log is the path of its log. Health and Metrics are its addresses.
	Log, Health, Metrics string

	process process
}

// allowed are the addresses of the stage's Git server and registry, which the SSRF guard must allow.
const allowed = "127.0.0.0/8"

// StartOperator installs the chart without a pod, for its CRDs and roles, and runs the operator on the host. env is added to its
// environment.
func (s *Stage) StartOperator(ctx context.Context, env ...string) (*Operator, error) {
	if err := s.helmInstall(ctx, "--set", "replicas=0", "--set", "crds.apply=false"); err != nil {
		return nil, err
	}
	kubeconfig, err := s.accountKubeconfig(ctx, release)
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	s.hookHost = addresses[0]
	o := &Operator{Log: s.Path("operator.log"), Health: addresses[1], Metrics: addresses[2]}
	o.process = process{name: "operator", program: s.bin.operator, log: o.Log, health: o.Health}
	o.process.env = append([]string{
		"KUBECONFIG=" + kubeconfig, "HOOK_ADDR=" + addresses[0], "HEALTH_ADDR=" + o.Health, "METRICS_ADDR=" + o.Metrics,
		// Benchmarks read the metrics on loopback.
		"METRICS_SECURE=false", "DATA_DIR=" + s.Path("data"), "OPERATOR_NAMESPACE=" + Namespace, "OPERATOR_DEPLOYMENT=" + release, "LOG_FORMAT=console", "GRACEFUL_TIMEOUT=30s",
		"PLATFORM_URL=" + s.GitURL() + "/platform.git", "PLATFORM_SECRET=" + platformSecret, "PLATFORM_HOOK_SECRET=" + platformHook,
		"PLATFORM_INTERVAL=30s", "FLOW_CONTROL=true", "OWNER_REQUESTS=true", "ALLOWED_ADDRESSES=" + allowed, "PLAIN_REGISTRIES=" + s.Cluster.Registry.Host,
	}, env...)
	s.operator = o
	return o, o.Start(ctx)
}

// Start starts the process, for the first time or after Kill, and waits until it is ready.
func (o *Operator) Start(ctx context.Context) error { return o.process.start(ctx) }

// PID is the PID of the process, or 0 if it does not run.
func (o *Operator) PID() int { return o.process.pid() }

// Kill kills the process, as a crash does.
func (o *Operator) Kill() error { return o.process.end(syscall.SIGKILL, 10*time.Second) }

// Stop sends SIGTERM, as Kubernetes does.
func (o *Operator) Stop() error { return o.process.end(syscall.SIGTERM, time.Minute) }

// accountKubeconfig writes a kubeconfig of a service account of the chart.
func (s *Stage) accountKubeconfig(ctx context.Context, account string) (string, error) {
	token, err := s.Kubectl(ctx, "create", "token", account, "--namespace", Namespace, "--duration", "24h")
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["stage"] = &clientcmdapi.Cluster{Server: s.Cluster.APIServer, CertificateAuthority: s.Cluster.CAFile}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["stage"] = &clientcmdapi.Context{Cluster: "stage", AuthInfo: account, Namespace: Namespace}
	config.CurrentContext = "stage"
	path := s.Path(account + ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", account, err)
	}
	return path, nil
}

// freeAddresses returns loopback addresses without a listener.
func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer listener.Close()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

// httpClient has a short timeout, so that callers that poll can keep their own timeouts.
var httpClient = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
