package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubeop/kubeop/controllers"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/release/evaluate"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// patient is how much longer the reading of a pack may take than its processor time.
const patient = 3

// functions are those of the processes, by name.
var functions = map[string]sandbox.Function{evaluate.Function: evaluate.Chart, build.Function: build.Evaluate, pack.Function: pack.Evaluate, image.Function: image.Evaluate}

// setUpEvaluation has charts, the folders and manifests of apps, Git packs, and patterns for tags evaluated in processes of their own.
func setUpEvaluation(mgr manager.Manager, c *config.Operator, settings *controllers.Options) error {
	limits := sandbox.Limits{Memory: c.EvaluateMemoryMiB << 20, CPU: c.EvaluateCPU, Wall: c.EvaluateTimeout}
	pool := sandbox.New(sandbox.Options{Processes: c.EvaluateProcesses, Limits: limits, Log: ctrl.Log.WithName("sandbox")})
	settings.EvaluateProcesses = c.EvaluateProcesses
	settings.Evaluate = func(ctx context.Context, call apart.Call) ([]byte, error) {
		usage := &sandbox.Usage{}
		fair.Uses(ctx, usage.CPU)
		own := sandbox.Limits{Questions: call.Questions}
		if call.CPU > c.EvaluateCPU {
			own.CPU, own.Wall = call.CPU, max(c.EvaluateTimeout, patient*call.CPU)
		}
		return pool.Call(ctx, sandbox.Call{Function: call.Name, Input: call.Input, Asks: call.Asks, Limits: own, Usage: usage})
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
