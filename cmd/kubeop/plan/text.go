package plan

import (
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/cmd/kubeop/output"
)

// signs are the signs of actions in texts, as diff has them.
var signs = map[Action]string{
	Create: "+", Update: "~", Recreate: "±", Delete: "-", Move: ">", Run: "*", Keep: "=", Hold: "!", Refuse: "x",
}

// order is the order of actions in the summary.
var order = []Action{Create, Update, Recreate, Delete, Move, Run, Keep, Hold, Refuse}

// summary counts the changes, such as "1 to create, 2 to update".
func (p *Plan) summary() string {
	var parts []string
	n := p.counts()
	for _, action := range order {
		if n[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n[action], action))
		}
	}
	if len(p.Problems) > 0 {
		parts = append(parts, fmt.Sprintf("%d problems in files", len(p.Problems)))
	}
	if len(parts) == 0 {
		return "no changes"
	}
	return strings.Join(parts, ", ")
}

// paint colours the sign of an action.
func paint(p output.Paint, action Action) string {
	sign := signs[action]
	switch action {
	case Create:
		return p.Green(sign)
	case Update, Recreate, Move, Hold:
		return p.Yellow(sign)
	case Delete, Refuse:
		return p.Red(sign)
	}
	return sign
}

// text prints the plan for people.
func (p *command) text(made *Plan) error {
	page := p.Page()
	if len(made.Problems) > 0 {
		page.Title("Problems of files, which keep their last good state")
		for _, problem := range made.Problems {
			page.Line(problem)
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
	page.Title("Plan: %s", made.summary())
	return page.End()
}

// app prints what happens to the objects of an App.
func (p *command) app(page *output.Page, a *App) {
	if a.Failed == "" && a.Unknown == "" && len(a.Changes) == 0 {
		return
	}
	page.Title("App %s", a.App)
	if a.Failed != "" {
		page.Line(paint(p.Paint, Refuse) + " nothing is delivered: " + a.Failed)
	}
	if a.Unknown != "" {
		page.Line("? not compared, because you may not read what it takes: " + a.Unknown)
	}
	p.changes(page, a.Changes)
	if a.Note != "" {
		page.Line(p.Paint.Faint(a.Note))
	}
}

// changes prints changes and their fields.
func (p *command) changes(page *output.Page, changes []Change) {
	for _, c := range changes {
		page.Line(paint(p.Paint, c.Action) + " " + c.Object + c.words())
		for _, f := range c.Fields {
			page.Line("    " + f.text())
		}
	}
}

// words say what the sign of an action does not.
func (c *Change) words() string {
	is := map[Action]string{Recreate: " is recreated", Move: " moves", Run: " runs", Keep: " stays", Hold: " is held", Refuse: " is refused"}[c.Action]
	if c.Why == "" {
		return is
	}
	return is + ": " + c.Why
}

// text describes the change of a field.
func (f Field) text() string {
	switch {
	case f.Before == "":
		return f.Path + ": " + f.After
	case f.After == "":
		return f.Path + ": " + f.Before + " is removed"
	}
	return f.Path + ": " + f.Before + " -> " + f.After
}

// markdown prints the plan for a comment on a pull request.
func (p *command) markdown(made *Plan) error {
	_, err := fmt.Fprint(p.Out, markdownOf(made))
	return err
}

func markdownOf(made *Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### kubeop plan for `%s`: %s\n", made.Repository, made.summary())
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n<details open><summary>%s</summary>\n\n```diff\n%s\n```\n\n</details>\n", title, fence(strings.Join(lines, "\n")))
		}
	}
	if made.Frozen != "" && !made.Empty() {
		fmt.Fprintf(&b, "\nHeld %s\n", made.Frozen)
	}
	section("Problems of files", prefixed("- ", made.Problems))
	section("Projects and apps", diffLines(made.Changes))
	section("Held until a person confirms it", prefixed("! ", made.Held))
	for _, a := range made.Apps {
		lines := diffLines(a.Changes)
		if a.Failed != "" {
			lines = append([]string{"- nothing is delivered: " + a.Failed}, lines...)
		}
		if a.Unknown != "" {
			lines = []string{"! not compared, because you may not read what it takes: " + a.Unknown}
		}
		section("App "+a.App, lines)
	}
	return b.String()
}

// fence keeps a text from ending the code block that it is in.
func fence(text string) string { return strings.ReplaceAll(text, "```", "'''") }

func prefixed(sign string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = sign + line
	}
	return out
}

// diffLines are changes in the format diff: what goes or is refused begins with "-", what comes with "+", the rest with "!".
func diffLines(changes []Change) []string {
	var out []string
	for _, c := range changes {
		sign := map[Action]string{Create: "+ ", Delete: "- ", Refuse: "- "}[c.Action]
		if sign == "" {
			sign = "! "
		}
		out = append(out, sign+c.Object+c.words())
		for _, f := range c.Fields {
			if f.Before != "" {
				out = append(out, "-   "+f.Path+": "+f.Before)
			}
			if f.After != "" {
				out = append(out, "+   "+f.Path+": "+f.After)
			}
		}
	}
	return out
}
