package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/controllers"
	"github.com/kubeop/kubeop/controllers/plan/render"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/release/evaluate"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// wallPerCPU is the maximum ratio of elapsed time to processor time for reading a pack.
const wallPerCPU = 3

// decrypts is the program for apps with keys, in the same folder as this one. It links SOPS' library, see cmd/decrypt.
const decrypts = "decrypt"

// programs are the programs of functions that this program does not have, by function name.
func programs() (map[string]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the operator's own program: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), decrypts)
	if _, err := os.Stat(path); err != nil {
		ctrl.Log.Error(err, "Finding the program that decrypts, without which apps with decryption cannot be built")
	}
	return map[string]string{build.Decrypts: path}, nil
}

// functions are the functions of the evaluation processes, by name.
var functions = map[string]sandbox.Function{evaluate.Function: evaluate.Chart, build.Function: build.Evaluate, pack.Function: pack.Evaluate, image.Function: image.Evaluate}

// evaluation evaluates charts, the folders and manifests of apps, Git packs and tag patterns in separate processes.
func evaluation(c *config.Operator) (controllers.Evaluation, error) {
	other, err := programs()
	if err != nil {
		return controllers.Evaluation{}, err
	}
	limits := sandbox.Limits{Memory: c.EvaluateMemoryMiB << 20, CPU: c.EvaluateCPU, Wall: c.EvaluateTimeout}
	pool := sandbox.New(sandbox.Options{Processes: c.EvaluateProcesses, Limits: limits, Log: ctrl.Log.WithName("sandbox")})
	// Inputs that exceeded a limit are tried again under different limits.
	under := fmt.Sprintf("%dMiB-%s-%s", c.EvaluateMemoryMiB, c.EvaluateCPU, c.EvaluateTimeout)
	return controllers.Evaluation{
		Renderer: render.New, Sandbox: pool, EvaluateProcesses: c.EvaluateProcesses,
		Trials: filepath.Join(c.DataDir, "evaluated", under), BuildTrials: filepath.Join(c.DataDir, "built", under),
		Evaluate: func(ctx context.Context, call apart.Call) ([]byte, error) {
			usage := &sandbox.Usage{}
			fair.Uses(ctx, usage.CPU)
			own := sandbox.Limits{Questions: call.Questions}
			if call.CPU > c.EvaluateCPU {
				own.CPU, own.Wall = call.CPU, max(c.EvaluateTimeout, wallPerCPU*call.CPU)
			}
			return pool.Call(ctx, sandbox.Call{Function: call.Name, Program: other[call.Name], Input: call.Input, NewHandler: call.NewHandler, Limits: own, Usage: usage})
		},
	}, nil
}
