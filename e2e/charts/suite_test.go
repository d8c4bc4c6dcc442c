//go:build e2e

// Package charts delivers charts in the shape of the well-known ones: as apps of a tenant, and those that need more as apps of the platform.
// Each becomes healthy with its defaults, or is refused with one message that says how to go on. When all are removed, nothing is left.
//
// The charts are in testdata. Each includes the templates of testdata/shared, which the test puts beside its own subcharts.
package charts

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

var (
	platform *stage.Stage
	// root is the platform repository, which declares everything.
	root *stage.Repository
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // The client's.
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		code = 1
	}
	os.Exit(code)
}

// runAll starts an empty platform, runs the tests and removes the platform.
func runAll(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "charts-")
	if err != nil {
		return 1, err
	}
	platform, err = stage.Up(ctx, stage.Options{Dir: dir, Node: "real", Out: os.Stdout})
	if platform != nil {
		defer func() {
			cancel() // Nothing serves volumes and load balancers while the cluster ends.
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
	if err := flag.Set("test.parallel", strconv.Itoa(len(charts))); err != nil {
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
	if err := platform.Install(ctx, "platformApps=ClusterAdmin"); err != nil {
		return err
	}
	key := rand.Text()
	var err error
	if root, err = platform.CreateRepository(ctx, v1alpha1.PlatformRepository, key); err != nil {
		return err
	}
	for secret, data := range map[string]map[string]string{"platform-git": {"username": root.User, "password": root.Password}, "platform-hook": {"token": key}} {
		if err := platform.SetSecret(ctx, secret, data); err != nil {
			return err
		}
	}
	if err := root.Write("kubeop.yaml", []byte("layout: v1\n")); err != nil {
		return err
	}
	if err := root.Push(ctx, "Begin"); err != nil {
		return err
	}
	go serveLoadBalancers(ctx)
	return stage.Until(ctx, time.Minute, "the platform repository is ready", func(ctx context.Context) error {
		return platform.Ready(ctx, &v1alpha1.Repository{}, "", root.Name)
	})
}
