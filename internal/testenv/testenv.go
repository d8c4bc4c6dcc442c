// Package testenv gives the tests of a package a real API server, and on demand a Git server and the operator's chart.
// All tests of the package share one control plane. It ends when the test process ends, even if that is killed.
//
// $KUBEOP_CLUSTER_BIN is the path of the cluster binary; the default is .build/bin/cluster below the folder with go.mod. helm is beside it.
package testenv

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Env is a running control plane.
type Env struct {
	// Config connects as administrator.
	Config *rest.Config
	// GitURL is the URL of the Git server, below which its repositories are.
	GitURL string
	// AuditLog is the path of the API server's audit log, "" if it writes none.
	AuditLog string

	// root is the folder with go.mod, cluster is the path of the cluster binary.
	root, cluster   string
	dir, kubeconfig string
}

// Main starts the control plane, runs the package's tests and stops it. A package's TestMain is
//
//	func TestMain(m *testing.M) { testenv.Main(m, &env) }
//
// A fuzzing run gets no control plane: each of its workers is a separate process, and the fuzzed code is pure.
func Main(m *testing.M, env **Env) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run())
	}
	started, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		os.Exit(1)
	}
	*env = started
	code := m.Run()
	if err := started.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "ending the control plane:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func start(flags ...string) (*Env, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	e := &Env{root: root, cluster: os.Getenv("KUBEOP_CLUSTER_BIN")}
	if e.cluster == "" {
		e.cluster = filepath.Join(root, ".build", "bin", "cluster")
	}
	if _, err := os.Stat(e.cluster); err != nil {
		return nil, fmt.Errorf("%w: `make test` builds it, or set KUBEOP_CLUSTER_BIN", err)
	}
	if e.dir, err = os.MkdirTemp("", "kubeop-test-"); err != nil {
		return nil, err
	}
	flags = append([]string{"up", "--dir", e.clusterDir(), "--node", "none", "--git", "--parent-pid", strconv.Itoa(os.Getpid())}, flags...)
	up := exec.Command(e.cluster, flags...)
	if out, err := up.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cluster up: %w\n%s", err, out)
	}
	return e, e.read()
}

// read reads the addresses from the file that the cluster writes.
func (e *Env) read() error {
	data, err := os.ReadFile(filepath.Join(e.clusterDir(), "cluster.json"))
	if err != nil {
		return err
	}
	var info struct {
		Kubeconfig string `json:"kubeconfig"`
		AuditLog   string `json:"auditLog"`
		Git        struct {
			Host string `json:"host"`
		} `json:"git"`
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return fmt.Errorf("reading cluster.json: %w", err)
	}
	e.kubeconfig, e.GitURL, e.AuditLog = info.Kubeconfig, info.Git.Host, info.AuditLog
	e.Config, err = clientcmd.BuildConfigFromFlags("", info.Kubeconfig)
	if err != nil {
		return err
	}
	e.Config.QPS, e.Config.Burst = -1, -1
	return nil
}

// Start starts a control plane for one test that would disturb other tests, or that needs one with further flags of `cluster up`. It ends with the
// test.
func Start(t testing.TB, flags ...string) *Env {
	t.Helper()
	e, err := start(flags...)
	if err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := e.stop(); err != nil {
			t.Errorf("ending the control plane: %v", err)
		}
	})
	return e
}

// OlderThan reports whether the API server has the APIs and features of a Kubernetes before 1.minor: those that $KUBERNETES names, such as 1.34.
func (e *Env) OlderThan(minor int) bool {
	_, version, _ := strings.Cut(os.Getenv("KUBERNETES"), ".")
	is, err := strconv.Atoi(version)
	return err == nil && is < minor
}

func (e *Env) stop() error {
	if out, err := exec.Command(e.cluster, "down", "--dir", e.clusterDir()).CombinedOutput(); err != nil {
		return fmt.Errorf("cluster down: %w\n%s", err, out)
	}
	return os.RemoveAll(e.dir)
}

func (e *Env) clusterDir() string { return filepath.Join(e.dir, "cluster") }

// moduleRoot returns the nearest folder with go.mod, upwards from the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}
