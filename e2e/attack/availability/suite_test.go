//go:build e2e

// Package availability lets tenants attack a running platform with everything they may push, while another tenant works. That
// tenant's pushes must arrive as usual. The operator must not restart or grow. The attackers' other apps must be updated. Removed
// attacks must be gone soon. docs/attacks.md lists the results.
package availability

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// The attacked operator: installed by its chart, with this memory limit and evaluation processes that fit into it.
const (
	memoryLimit = 512 << 20
	boxes       = 2
	boxMemory   = 128
)

// full runs every attack in its own window, by each of the three attackers, with the sizes of the findings.
var full = os.Getenv("ATTACK") == "full"

var (
	platform *stage.Stage
	// root is the platform repository. Its clone is changed and pushed under the lock.
	root     *stage.Repository
	rootLock sync.Mutex
	operator *meter
	beta     *prober
	hostile  *servers
	// attackers are three tenants. First one attacks alone, then all attack.
	attackers []*tenant
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // The client's.
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		code = 1
	}
	os.Exit(code)
}

// runAll starts a platform with its tenants, runs the attacks and removes the platform.
func runAll(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "attack-")
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
		return 1, fmt.Errorf("%w\nthe operator's log ends:\n%s", err, platform.OperatorLog(ctx))
	}
	return m.Run(), nil
}

func prepare(ctx context.Context) error {
	host, err := url.Parse(platform.Cluster.Git.Pods)
	if err != nil {
		return err
	}
	if hostile, err = serveHostile(ctx, host.Hostname()); err != nil {
		return err
	}
	cpu := "3s" // Less than the default, so that a window is short.
	if full {
		cpu = "10s"
	}
	if err := platform.Install(ctx, "evaluate.cpu="+cpu, "resources.limits.memory="+fmt.Sprint(memoryLimit), fmt.Sprintf("evaluate.processes=%d", boxes),
		fmt.Sprintf("evaluate.memoryMiB=%d", boxMemory), "plainRegistries={"+hostile.address+"}"); err != nil {
		return err
	}
	if _, err := platform.PushHello(ctx, "v1"); err != nil {
		return err
	}
	if root, err = newRepository(ctx, v1alpha1.PlatformRepository); err != nil {
		return err
	}
	if err := root.Write("kubeop.yaml", []byte("layout: v1\n")); err != nil {
		return err
	}
	if err := root.Push(ctx, "Begin"); err != nil {
		return err
	}
	for _, name := range []string{"alpha", "gamma", "delta"} {
		attacker, err := newTenant(ctx, name)
		if err != nil {
			return err
		}
		attackers = append(attackers, attacker)
	}
	if beta, err = newProber(ctx, "beta"); err != nil {
		return err
	}
	operator, err = newMeter(ctx)
	return err
}

// stepTimeout is how long a step that is not measured may take.
const stepTimeout = 60 * time.Second
