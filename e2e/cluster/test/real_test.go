//go:build e2e

package test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
)

func TestPodsAnswerOnARealNode(t *testing.T) {
	needRealNode(t)
	before := traces(t)
	c := up(t, "--node", "real")
	c.deploy()
	pod := "http://" + c.kubectl("get", "pods", "--selector=app=app", "--output=jsonpath={.items[0].status.podIP}") + ":8080"
	service := "http://" + c.kubectl("get", "service", "app", "--output=jsonpath={.spec.clusterIP}")

	contains := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want it to contain %q", what, got, want)
		}
	}
	contains("a pod from the host", get(t, pod), "hello from app-")
	contains("a Service from the host", get(t, service), "hello from app-")
	contains("the API's name in a pod", get(t, pod+"/resolve?name=kubernetes.default.svc.cluster.local"), "128.1]")
	contains("a Service from a pod", get(t, pod+"/fetch?url=http://app.default.svc.cluster.local"), "hello from app-")
	contains("the registry from a pod", get(t, pod+"/fetch?url=http://"+c.Registry.Pods+"/v2/_catalog"), "app")
	contains("kubectl logs", c.kubectl("logs", "deployment/app"), "listening")
	contains("kubectl exec", c.kubectl("exec", "deployment/app", "--", "/app", "hi"), "printed hi")
	contains("status", c.cluster("status"), "1 of 1 nodes ready")
	c.checkGit(contains, pod)

	began := time.Now()
	c.cluster("down")
	t.Logf("down took %.1f s", time.Since(began).Seconds())
	c.checkNothingLeft(before)
}

// checkGit creates a repository and requests it from the host and from a pod.
func (c *cluster) checkGit(contains func(what, got, want string), pod string) {
	c.t.Helper()
	c.cluster("repo", "create", "demo", "--user", "dev", "--password", "secret", "--public")
	contains("Git from a pod", get(c.t, pod+"/fetch?url="+c.Git.Pods+"/demo.git/info/refs?service=git-upload-pack"),
		"service=git-upload-pack")
	url := strings.Replace(c.Git.Host, "http://", "http://"+c.Git.AdminUser+":"+c.Git.AdminPassword+"@", 1) + "/demo.git"
	work := c.t.TempDir()
	c.run("git", "-C", work, "init", "--quiet", "--initial-branch=main")
	c.run("git", "-C", work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "--message=one")
	c.run("git", "-C", work, "push", "--quiet", url, "main")
	contains("what was pushed", c.run("git", "ls-remote", url), "refs/heads/main")
}

// TestAKilledSupervisorAffectsNoOtherCluster runs two clusters and kills the supervisor of one: its processes end by themselves, `down` removes the
// rest, and the other cluster is not affected.
func TestAKilledSupervisorAffectsNoOtherCluster(t *testing.T) {
	needRealNode(t)
	before := traces(t)
	stays := up(t, "--node", "real")
	between := traces(t)
	killed := up(t, "--node", "real")
	killed.deploy()
	killed.read()
	if err := syscall.Kill(killed.Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed.cluster("down")
	killed.checkNothingLeft(between)
	stays.deploy()
	stays.cluster("down")
	stays.checkNothingLeft(before)
}

// deploy builds the test's image, pushes it and runs it behind a Service.
func (c *cluster) deploy() {
	c.t.Helper()
	app := filepath.Join(c.t.TempDir(), "app")
	c.run("go", "build", "-o", app, "../testdata/app")
	reference := c.cluster("image", "push", "--name", "app:v1", app)
	c.kubectl("create", "deployment", "app", "--image="+reference, "--replicas=2", "--port=8080")
	c.kubectl("expose", "deployment", "app", "--port=80", "--target-port=8080")
	c.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
}

func needRealNode(t *testing.T) {
	t.Helper()
	if err := node.Possible(); err != nil {
		t.Skip(err)
	}
}
