//go:build e2e

package stage

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestInstalledByTheChart runs the operator as its chart installs it, with no rights but the chart's, and ships the
// samples through it.
func TestInstalledByTheChart(t *testing.T) {
	dir, err := os.MkdirTemp("", "stage") // t.TempDir is too long for the sockets below it
	if err != nil {
		t.Fatal(err)
	}
	s, err := Up(t.Context(), Options{Dir: dir, Node: os.Getenv("NODE"), Out: t.Output()})
	if s != nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("taking the stage down: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if !s.Cluster.RealPods() {
		t.Skipf("the operator runs as a container only on a real node: %s", s.Cluster.Node.Why)
	}
	if err := s.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	samples, err := s.CreateSamples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := samples.Push(t.Context(), "Ship the shop"); err != nil {
		t.Fatal(err)
	}
	for _, app := range []string{"web", "docs", "api", "tools"} {
		err := Until(t.Context(), 2*time.Minute, "the app "+app+" is ready and answers", func(ctx context.Context) error {
			if err := s.Ready(ctx, &v1alpha1.App{}, "kubeop-acme-shop", app); err != nil {
				return err
			}
			got, err := s.AskService(ctx, "kubeop-acme-shop", app)
			if err == nil && got != "hello from "+app {
				err = fmt.Errorf("it says %q", got)
			}
			return err
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, s.OperatorLog(t.Context()))
		}
	}
	releases, err := s.Helm(t.Context(), "list", "--namespace", "kubeop-acme-shop", "--short")
	if err != nil || releases != "api" {
		t.Errorf("helm list shows %q, %v; want the app api", releases, err)
	}
}
