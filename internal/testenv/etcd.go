package testenv

import (
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kubeop/kubeop/e2e/plane"
)

// Snapshot copies the files of the running cluster's database, as a backup of the machine's disk does, and returns the copy's path.
func (e *Env) Snapshot(t testing.TB) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "etcd")
	if err := e.plane().Snapshot(to); err != nil {
		t.Fatal(err)
	}
	return to
}

// Restore replaces the cluster's database by a snapshot, restarts the API server and Kubernetes' controllers, and waits until they work.
func (e *Env) Restore(t testing.TB, snapshot string) {
	t.Helper()
	if err := e.plane().Restore(snapshot, "kube-controller-manager"); err != nil {
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

func (e *Env) plane() plane.Plane { return plane.Plane{Dir: e.clusterDir()} }
