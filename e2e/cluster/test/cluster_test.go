//go:build e2e

// Package test runs the built cluster binary ($KUBEOP_CLUSTER_BIN) and checks that it works and leaves nothing behind.
package test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
)

// cluster is one running cluster.
type cluster struct {
	t   *testing.T
	dir layout.Dir
	layout.State
}

// up starts a cluster, and stops it when the test ends if the test has not done so.
func up(t *testing.T, args ...string) *cluster {
	t.Helper()
	dir, err := layout.Open(filepath.Join(t.TempDir(), "c"))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, dir: dir}
	t.Cleanup(func() { c.cluster("down") })
	began := time.Now()
	t.Logf("%s", c.cluster(append([]string{"up"}, args...)...))
	t.Logf("up took %.1f s", time.Since(began).Seconds())
	c.read()
	return c
}

func (c *cluster) read() {
	c.t.Helper()
	state, err := c.dir.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	c.State = *state
}

// cluster runs a command of the cluster and returns its output.
func (c *cluster) cluster(args ...string) string {
	c.t.Helper()
	return c.run(binary(c.t), append(args, "--dir", string(c.dir))...)
}

func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.run(binary(c.t), append([]string{"kubectl", "--kubeconfig", c.dir.Kubeconfig()}, args...)...)
}

func (c *cluster) run(name string, args ...string) string {
	c.t.Helper()
	command := exec.Command(name, args...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// binary returns the path of the tested cluster binary.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("KUBEOP_CLUSTER_BIN")
	if path == "" {
		path = "../../../.build/bin/cluster"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("build the cluster first or set KUBEOP_CLUSTER_BIN: %v", err)
	}
	return path
}

// get fetches a URL until it answers.
func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	var last error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		response, err := client.Get(url)
		if err != nil {
			last = err
			continue
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(body))
	}
	t.Fatalf("GET %s: %v", url, last)
	return ""
}

// trace are the traces of clusters on this machine.
type trace map[string]string

// traces lists everything that a cluster may leave behind.
func traces(t *testing.T) trace {
	t.Helper()
	found := trace{}
	for name, command := range map[string]string{
		"devices":        "ip -o link show | awk '{print $2}' | sort",
		"routes":         "ip route show table all | grep -v ' table local ' | sort",
		"namespaces":     "ip netns list",
		"mounts":         "awk '{print $5}' /proc/self/mountinfo | sort",
		"control groups": "find /sys/fs/cgroup -maxdepth 2 -name 'kubeop-*' | sort",
		"rules":          "nft list ruleset 2>/dev/null",
		"settings":       "cd /proc/sys; cat vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops net/ipv4/ip_forward",
		"directories":    "ls -d /run/containerd /var/lib/containerd /var/lib/kubelet /var/lib/cni /etc/cni /opt/cni 2>/dev/null | sort",
	} {
		out, _ := exec.Command("sh", "-c", command).Output()
		found[name] = string(out)
	}
	return found
}

// added returns the new lines. It ignores those of other clusters, which may start and stop during a test.
func (c *cluster) added(before, now string) []string {
	var lines []string
	for line := range strings.Lines(now) {
		foreign := (strings.Contains(line, "ko-") && !strings.Contains(line, node.Link(c.Name))) ||
			(strings.Contains(line, "kubeop-") && !strings.Contains(line, c.Name))
		if !foreign && !strings.Contains(before, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// checkNothingLeft compares the traces with those before, and looks for processes with the cluster's directory in their arguments.
func (c *cluster) checkNothingLeft(before trace) {
	c.t.Helper()
	for name, now := range traces(c.t) {
		if left := c.added(before[name], now); len(left) > 0 {
			c.t.Errorf("%s left: %q", name, left)
		}
	}
	if _, err := os.Stat(string(c.dir)); err == nil {
		c.t.Errorf("%s is still there", c.dir)
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, _ := os.ReadFile(file); strings.Contains(string(line), string(c.dir)) {
			c.t.Errorf("still running: %s", strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	for name, process := range c.Components {
		if process.Alive() {
			c.t.Errorf("%s still runs", name)
		}
	}
}

func TestAControlPlaneRunsWithoutNodes(t *testing.T) {
	before := traces(t)
	c := up(t, "--node", "none", "--audit", "--git", "--registry")
	c.kubectl("create", "namespace", "gone")
	c.kubectl("delete", "namespace", "gone", "--timeout=30s")
	audit, err := os.ReadFile(c.AuditLog)
	if err != nil || !strings.Contains(string(audit), `"username":"admin"`) {
		t.Errorf("the audit log names no admin: %v", err)
	}
	if c.Git == nil || c.Registry == nil {
		t.Errorf("Git server %v or registry %v is missing", c.Git, c.Registry)
	}
	c.cluster("down")
	c.checkNothingLeft(before)
}

func TestClusterEndsWithItsParent(t *testing.T) {
	before := traces(t)
	ctx, kill := context.WithCancel(context.Background())
	parent := exec.CommandContext(ctx, "sleep", "300")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	number, _ := json.Marshal(parent.Process.Pid)
	c := up(t, "--node", "none", "--parent-pid", string(number))
	kill()
	for deadline := time.Now().Add(20 * time.Second); c.dir.Owned() && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	_ = parent.Wait()
	time.Sleep(100 * time.Millisecond) // the supervisor removes the directory just before it ends
	c.checkNothingLeft(before)
}

func TestADeploymentIsRolledOutOnASimulatedNode(t *testing.T) {
	before := traces(t)
	c := up(t, "--node", "simulated")
	c.kubectl("create", "deployment", "app", "--image=nothing", "--replicas=3")
	c.kubectl("rollout", "status", "deployment/app", "--timeout=30s")
	c.cluster("down")
	c.checkNothingLeft(before)
}
