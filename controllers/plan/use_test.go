package plan_test

import (
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/controllers/plan/render"
)

func init() { plan.UseRenderer(render.New) }
