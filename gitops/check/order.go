package check

import (
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/expr"
	"github.com/kubeop/kubeop/gitops/code"
)

// checkOrder checks what the schema cannot check: expressions, dependencies, and that hooks have an image.
func (d *Result) checkOrder(app *v1alpha1.App) {
	for i := range app.Spec.DependsOn {
		on, at := &app.Spec.DependsOn[i], fmt.Sprintf("spec.dependsOn[%d]", i)
		if expr.IsSecret(on.GroupVersionKind().GroupKind()) {
			d.AddAt(code.SecretDependency, at+".kind", "%s.kind: no app may depend on a Secret", at)
		}
		if on.ReadyExpr == "" {
			continue
		}
		if _, err := expr.Compile(on.ReadyExpr, expr.Dependency...); err != nil {
			d.AddAt(code.InvalidExpression, at+".readyExpr", "%s.readyExpr: %s: write CEL that is true once the dependency dep is ready, such as dep.status.succeeded >= 1", at, err)
		}
	}
	for i := range app.Spec.HealthCheckExprs {
		if _, err := expr.NewCheck(&app.Spec.HealthCheckExprs[i]); err != nil {
			at := fmt.Sprintf("spec.healthCheckExprs[%d]", i)
			d.AddAt(code.InvalidExpression, at, "%s.%s", at, err)
		}
	}
	d.checkHooks("spec.hooks.pre", app, app.Spec.Hooks.Pre)
	d.checkHooks("spec.hooks.post", app, app.Spec.Hooks.Post)
}

func (d *Result) checkHooks(at string, app *v1alpha1.App, hooks []v1alpha1.Hook) {
	for i, hook := range hooks {
		if hook.Image == "" && app.Spec.Image == nil {
			d.AddAt(code.RequiredField, fmt.Sprintf("%s[%d]", at, i), "%s[%d].image is required unless the app is of type Image", at, i)
		}
	}
}
