package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubeop/kubeop/controllers"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// What the processes that evaluate call release.Evaluate, build.Evaluate and pack.Evaluate.
const (
	chartFunction = "chart"
	buildFunction = "build"
	packFunction  = "pack"
)

// patient is how much longer the reading of a pack may take than its processor time.
const patient = 3

// functions are those of the processes.
var functions = map[string]sandbox.Function{chartFunction: release.Evaluate, buildFunction: build.Evaluate, packFunction: pack.Evaluate}

// evaluate has charts, the folders and manifests of apps, and Git packs, evaluated in processes of their own.
func evaluate(mgr manager.Manager, c *config.Operator, settings *controllers.Options) error {
	limits := sandbox.Limits{Memory: c.EvaluateMemoryMiB << 20, CPU: c.EvaluateCPU, Wall: c.EvaluateTimeout}
	pool := sandbox.New(sandbox.Options{Processes: c.EvaluateProcesses, Limits: limits, Log: ctrl.Log.WithName("sandbox")})
	settings.EvaluateProcesses = c.EvaluateProcesses
	call := func(ctx context.Context, c sandbox.Call) ([]byte, error) {
		c.Usage = &sandbox.Usage{}
		fair.Uses(ctx, c.Usage.CPU)
		return pool.Call(ctx, c)
	}
	settings.Evaluate = func(ctx context.Context, _ string, input [][]byte, asks func() sandbox.Ask) ([]byte, error) {
		return call(ctx, sandbox.Call{Function: chartFunction, Input: input, Asks: asks})
	}
	settings.Build = func(ctx context.Context, _ string, input []byte, asks func() sandbox.Ask) ([]byte, error) {
		return call(ctx, sandbox.Call{Function: buildFunction, Input: [][]byte{input}, Asks: asks, Limits: sandbox.Limits{Questions: build.Questions}})
	}
	settings.Unpack = func(ctx context.Context, input []byte, cpu time.Duration, asks func() sandbox.Ask) ([]byte, error) {
		cpu = max(c.EvaluateCPU, cpu)
		return call(ctx, sandbox.Call{Function: packFunction, Input: [][]byte{input}, Asks: asks, Limits: sandbox.Limits{
			CPU: cpu, Wall: max(c.EvaluateTimeout, patient*cpu), Questions: pack.Questions,
		}})
	}
	// Under other limits what was over one is tried again.
	under := fmt.Sprintf("%dMiB-%s-%s", c.EvaluateMemoryMiB, c.EvaluateCPU, c.EvaluateTimeout)
	settings.Trials = filepath.Join(c.DataDir, "evaluated", under)
	settings.BuildTrials = filepath.Join(c.DataDir, "built", under)
	var registered error
	for _, collector := range pool.Collectors() {
		registered = errors.Join(registered, ctrlmetrics.Registry.Register(collector))
	}
	return errors.Join(registered, mgr.Add(pool), mgr.AddReadyzCheck("evaluation", pool.Ready))
}
