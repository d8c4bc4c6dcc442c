package plan

import (
	"fmt"

	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/controllers/plan"
)

// signs mark actions in the text.
var signs = map[plan.Action]string{
	plan.Create: "+", plan.Update: "~", plan.Recreate: "±", plan.Delete: "-", plan.Move: ">", plan.Run: "*", plan.Keep: "=", plan.Hold: "!", plan.Refuse: "x",
}

// paint colours the sign of an action.
func paint(p output.Paint, action plan.Action) string {
	sign := signs[action]
	switch action {
	case plan.Create:
		return p.Green(sign)
	case plan.Update, plan.Recreate, plan.Move, plan.Hold:
		return p.Yellow(sign)
	case plan.Delete, plan.Refuse:
		return p.Red(sign)
	}
	return sign
}

// text prints the plan for people.
func (p *command) text(made *plan.Plan) error {
	page := p.Page()
	if len(made.Problems) > 0 {
		page.Title("Problems of files, which keep their last good state")
		for _, problem := range made.Problems {
			page.Line(problem)
		}
	}
	if len(made.Previews) > 0 {
		page.Title("Previews")
		for i := range made.Previews {
			page.Line(made.Previews[i].String())
		}
	}
	if len(made.Changes) > 0 {
		page.Title("Repository %s", made.Repository)
		p.changes(page, made.Changes)
	}
	if len(made.Held) > 0 {
		page.Title("Held until a person confirms it")
		for _, line := range made.Held {
			page.Line(line)
		}
	}
	for i := range made.Apps {
		p.app(page, &made.Apps[i])
	}
	if made.Frozen != "" && !made.Empty() {
		page.Title("Held %s", made.Frozen)
		page.Line("nothing of it is applied before, unless it is confirmed: kubeop confirm repository " + made.Repository)
	}
	page.Title("Plan: %s", made.Summary())
	return page.End()
}

// app prints what happens to the objects of an App.
func (p *command) app(page *output.Page, a *plan.App) {
	if a.Failed == "" && a.Unknown == "" && len(a.Changes) == 0 {
		return
	}
	page.Title("App %s", a.App)
	if a.Failed != "" {
		page.Line(paint(p.Paint, plan.Refuse) + " nothing is delivered: " + a.Failed)
	}
	if a.Unknown != "" {
		page.Line("? not compared, because you may not read the objects it needs: " + a.Unknown)
	}
	p.changes(page, a.Changes)
	if a.Note != "" {
		page.Line(p.Paint.Faint(a.Note))
	}
}

// changes prints changes and their fields.
func (p *command) changes(page *output.Page, changes []plan.Change) {
	for _, c := range changes {
		page.Line(paint(p.Paint, c.Action) + " " + c.Object + c.Words())
		for _, f := range c.Fields {
			page.Line("    " + f.String())
		}
	}
}

// markdown prints the plan for a comment on a pull request.
func (p *command) markdown(made *plan.Plan) error {
	_, err := fmt.Fprint(p.Out, made.Markdown())
	return err
}
