//go:build e2e

// Package availability has tenants attack a running platform with everything that they may push, while another tenant works. That one's
// pushes arrive as ever, the operator neither restarts nor grows, the attackers' own other apps move, and when what attacks is
// removed it is gone soon. docs/attacks.md is its table.
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

// The operator as it is attacked: by its chart, with this limit of memory, and evaluating processes that fit into it.
const (
	memoryLimit = 512 << 20
	boxes       = 2
	boxMemory   = 128
)

// full runs every attack in a window of its own, by each of the three attackers, and the numbers of the findings.
var full = os.Getenv("ATTACK") == "full"

var (
	platform *stage.Stage
	// root is the platform repository. Its clone is changed and pushed under the lock.
	root     *stage.Repository
	rootLock sync.Mutex
	operator *meter
	beta     *prober
	hostile  *servers
	// attackers are three tenants; the first attacks alone, then all.
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

// runAll brings a platform up with its tenants, runs the attacks and takes everything away again.
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

// patience is how long something may take that is not what is measured.
const patience = 60 * time.Second
