package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Operator is the operator as a process on the host. It has the permissions of the chart's service account.
type Operator struct {
	// Log is the path of its log. Health and Metrics are its addresses.
	Log, Health, Metrics string

	stage   *Stage
	env     []string
	process *exec.Cmd
	ended   chan error
}

// allowed are the addresses of the stage's Git server and registry, which the SSRF guard must allow.
const allowed = "127.0.0.0/8"

// StartOperator installs the chart without a pod, for its CRDs and roles, and runs the operator on the host. env is added to its
// environment.
func (s *Stage) StartOperator(ctx context.Context, env ...string) (*Operator, error) {
	if err := s.helmInstall(ctx, "--set", "replicas=0", "--set", "crds.apply=false"); err != nil {
		return nil, err
	}
	kubeconfig, err := s.operatorKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	s.hookHost = addresses[0]
	o := &Operator{stage: s, Log: s.Path("operator.log"), Health: addresses[1], Metrics: addresses[2]}
	o.env = append([]string{
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
func (o *Operator) Start(ctx context.Context) error {
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the operator's log: %w", err)
	}
	defer log.Close()
	o.process = exec.Command(o.stage.bin.operator)
	o.process.Env, o.process.Stdout, o.process.Stderr = append(os.Environ(), o.env...), log, log
	// It has its own process group, so that Ctrl-C does not reach it and it is stopped in order.
	o.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := o.process.Start(); err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	o.ended = make(chan error, 1)
	go func(process *exec.Cmd, ended chan<- error) { ended <- process.Wait() }(o.process, o.ended)
	return Until(ctx, time.Minute, "the operator is ready", o.ready)
}

func (o *Operator) ready(ctx context.Context) error {
	select {
	case err := <-o.ended:
		o.ended <- err
		return Final(fmt.Errorf("it ended (%w); its log is %s", orDone(err), o.Log))
	default:
	}
	_, err := Get(ctx, "http://"+o.Health+"/readyz")
	return err
}

// PID is the PID of the process, or 0 if it does not run.
func (o *Operator) PID() int {
	if o.process == nil || o.process.Process == nil {
		return 0
	}
	return o.process.Process.Pid
}

// Kill kills the process, as a crash does.
func (o *Operator) Kill() error { return o.end(syscall.SIGKILL, 10*time.Second) }

// Stop sends SIGTERM, as Kubernetes does.
func (o *Operator) Stop() error { return o.end(syscall.SIGTERM, time.Minute) }

func (o *Operator) end(signal syscall.Signal, within time.Duration) error {
	if o.process == nil || o.process.Process == nil {
		return nil
	}
	_ = o.process.Process.Signal(signal)
	select {
	case <-o.ended:
		o.process = nil
		return nil
	case <-time.After(within):
	}
	_ = o.process.Process.Kill()
	<-o.ended
	o.process = nil
	return fmt.Errorf("the operator did not stop within %s and was killed", within)
}

// operatorKubeconfig writes a kubeconfig of the chart's service account.
func (s *Stage) operatorKubeconfig(ctx context.Context) (string, error) {
	token, err := s.Kubectl(ctx, "create", "token", release, "--namespace", Namespace, "--duration", "24h")
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["stage"] = &clientcmdapi.Cluster{Server: s.Cluster.APIServer, CertificateAuthority: s.Cluster.CAFile}
	config.AuthInfos["operator"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["stage"] = &clientcmdapi.Context{Cluster: "stage", AuthInfo: "operator", Namespace: Namespace}
	config.CurrentContext = "stage"
	path := s.Path("operator.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing the operator's kubeconfig: %w", err)
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

func orDone(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

// httpClient has a short timeout, so that callers that poll can keep their own timeouts.
var httpClient = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
