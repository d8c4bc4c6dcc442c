package testenv

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Snapshot copies the cluster's database as it is, as a backup of the machine's disk does, and returns where the copy is.
func (e *Env) Snapshot(t testing.TB) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "etcd")
	e.signal(t, "etcd", syscall.SIGSTOP)
	err := os.CopyFS(to, os.DirFS(e.etcdDir()))
	e.signal(t, "etcd", syscall.SIGCONT)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// Restore puts a snapshot in the place of the cluster's database and has the API server and Kubernetes' controllers start anew with it.
// It returns when they work. The supervisor starts what ends within a second: no sooner than the database is in its place.
func (e *Env) Restore(t testing.TB, snapshot string) {
	t.Helper()
	fresh, old := e.etcdDir()+".restored", e.etcdDir()+".before"
	if err := os.CopyFS(fresh, os.DirFS(snapshot)); err != nil {
		t.Fatal(err)
	}
	if err := privateDirs(fresh); err != nil {
		t.Fatal(err)
	}
	e.signal(t, "etcd", syscall.SIGKILL)
	if err := os.Rename(e.etcdDir(), old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, e.etcdDir()); err != nil {
		t.Fatal(err)
	}
	e.signal(t, "kube-apiserver", syscall.SIGKILL)
	e.signal(t, "kube-controller-manager", syscall.SIGKILL)
	if err := os.RemoveAll(old); err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(e.Config)
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		if err == nil {
			return
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("the restored cluster does not come up: %v", err)
		}
	}
}

// privateDirs gives directories the mode that etcd insists on.
func privateDirs(root string) error {
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	})
}

func (e *Env) etcdDir() string { return filepath.Join(e.clusterDir(), "etcd") }

// signal sends a signal to a component of the control plane.
func (e *Env) signal(t testing.TB, component string, s syscall.Signal) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(e.clusterDir(), "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Components map[string]struct {
			PID int `json:"pid"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	pid := state.Components[component].PID
	if pid == 0 {
		t.Fatal(fmt.Errorf("no process is known as %s", component))
	}
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("sending %s to %s: %v", s, component, err)
	}
}
