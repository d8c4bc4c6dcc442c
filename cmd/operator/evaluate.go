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
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// chartFunction is what the processes that evaluate call release.Evaluate.
const chartFunction = "chart"

// evaluate has charts evaluated in processes of their own.
func evaluate(mgr manager.Manager, c *config.Operator, settings *controllers.Options) error {
	limits := sandbox.Limits{Memory: c.EvaluateMemoryMiB << 20, CPU: c.EvaluateCPU, Wall: c.EvaluateTimeout}
	pool, err := sandbox.New(sandbox.Options{Processes: c.EvaluateProcesses, Limits: limits, Log: ctrl.Log.WithName("sandbox")})
	if err != nil {
		return err
	}
	settings.Evaluate = func(ctx context.Context, tenant string, input []byte, ask func(context.Context, []byte) ([]byte, error)) ([]byte, error) {
		return pool.Call(ctx, sandbox.Call{Function: chartFunction, Tenant: tenant, Input: input, Ask: ask})
	}
	// Under other limits what was over one is tried again.
	under := fmt.Sprintf("%dMiB-%s-%s", c.EvaluateMemoryMiB, c.EvaluateCPU, c.EvaluateTimeout)
	settings.Trials = filepath.Join(c.DataDir, "evaluated", under)
	var registered error
	for _, collector := range pool.Collectors() {
		registered = errors.Join(registered, ctrlmetrics.Registry.Register(collector))
	}
	return errors.Join(registered, mgr.Add(pool))
}
