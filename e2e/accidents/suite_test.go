//go:build e2e

// Package accidents repeats mistakes of users and administrators on a running platform with real pods and volumes. After each
// mistake, the data and the workloads must still exist, and the status must say what happened and what to do. Then the recovery
// must restore everything. docs/accidents.md lists the results.
package accidents

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// stepTimeout is how long one step may take on a busy machine.
const stepTimeout = 90 * time.Second

var (
	platform *stage.Stage
	// root is the platform repository. Its clone is changed and pushed under the lock: many tenants live in it.
	root     *stage.Repository
	rootLock sync.Mutex
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // The client's.
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "accidents:", err)
		code = 1
	}
	os.Exit(code)
}

// runAll starts an empty platform, runs the accidents and removes the platform.
func runAll(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "accidents-")
	if err != nil {
		return 1, err
	}
	platform, err = stage.Up(ctx, stage.Options{Dir: dir, Node: "real", Out: os.Stdout})
	if platform != nil {
		defer func() {
			if closing := platform.Close(); err == nil {
				err = closing
			}
		}()
	}
	if err != nil {
		return 1, err
	}
	if err := prepare(ctx); err != nil {
		return 1, err
	}
	// Parallel tests wait for the operator, not for a CPU.
	if err := flag.Set("test.parallel", strconv.Itoa(2*workers)); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func prepare(ctx context.Context) error {
	if _, err := platform.PushHello(ctx, "v1"); err != nil {
		return err
	}
	if err := platform.ServeVolumes(ctx); err != nil {
		return err
	}
	if err := install(ctx); err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingressclasses"}, Verbs: []string{"*"}},
		{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"*"}},
	}}
	role.Name, role.Labels = "accidents", map[string]string{"paas.kubeop.io/aggregate-to-cluster-kinds": "true"}
	if err := platform.Client.Create(ctx, role); err != nil {
		return err
	}
	var err error
	if root, err = newRepository(ctx, v1alpha1.PlatformRepository); err != nil {
		return err
	}
	if err := root.Write("kubeop.yaml", []byte("layout: v1\n")); err != nil {
		return err
	}
	return root.Push(ctx, "Begin")
}

func install(ctx context.Context) error {
	return platform.Install(ctx, "admissionPolicies.exemptUsers={"+backupTool+"}")
}

// newRepository creates a repository whose pushes call the operator's push hook, and the Secrets "<name>-git" and "<name>-hook".
func newRepository(ctx context.Context, name string) (*stage.Repository, error) {
	key := rand.Text()
	r, err := platform.CreateRepository(ctx, name, key)
	if err != nil {
		return nil, err
	}
	if err := platform.SetSecret(ctx, name+"-git", map[string]string{"username": r.User, "password": r.Password}); err != nil {
		return nil, err
	}
	return r, platform.SetSecret(ctx, name+"-hook", map[string]string{"token": key})
}
