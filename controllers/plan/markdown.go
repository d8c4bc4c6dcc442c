package plan

import (
	"fmt"
	"sort"
	"strings"

	"github.com/kubeop/kubeop/delivery/few"
)

// order is the order of actions in the summary.
var order = []Action{Create, Update, Recreate, Delete, Move, Run, Keep, Hold, Refuse}

// Summary counts the changes, such as "1 to create, 2 to update".
func (p *Plan) Summary() string {
	var parts []string
	n := p.counts()
	for _, action := range order {
		if n[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n[action], action))
		}
	}
	if len(p.Problems) > 0 {
		parts = append(parts, few.Count(len(p.Problems), "problem")+" in files")
	}
	if len(parts) == 0 {
		return "no changes"
	}
	return strings.Join(parts, ", ")
}

// Words describes a change in addition to its sign.
func (c *Change) Words() string {
	is := map[Action]string{Recreate: " is recreated", Move: " moves", Run: " runs", Keep: " stays", Hold: " is held", Refuse: " is refused"}[c.Action]
	if c.Why == "" {
		return is
	}
	return is + ": " + c.Why
}

// String describes the change of a field.
func (f Field) String() string {
	switch {
	case f.Before == "":
		return f.Path + ": " + f.After
	case f.After == "":
		return f.Path + ": " + f.Before + " is removed"
	}
	return f.Path + ": " + f.Before + " -> " + f.After
}

// maxComment is how long a comment may be: GitHub takes 65,536 characters, and the other hosts more.
const maxComment = 60_000

// Mark is the beginning of comments with the plan of a Repository, by which the next one replaces the last.
func Mark(repository string) string { return "<!-- kubeop plan of " + repository + " -->\n" }

// Comment returns the plan for a comment on a pull request, as long as a Git host takes it.
func (p *Plan) Comment() string {
	body := p.heading()
	for _, s := range p.sections() {
		room := maxComment - len(body)
		if len(s.block()) > room {
			return body + s.cut(room).block() + "\nThe rest is left out: `kubeop plan` shows it.\n"
		}
		body += s.block()
	}
	return body
}

// Markdown returns the whole plan for a comment on a pull request.
func (p *Plan) Markdown() string {
	var b strings.Builder
	b.WriteString(p.heading())
	for _, s := range p.sections() {
		b.WriteString(s.block())
	}
	return b.String()
}

func (p *Plan) heading() string {
	heading := fmt.Sprintf("### kubeop plan for `%s`: %s\n", p.Repository, p.Summary())
	if p.Frozen != "" && !p.Empty() {
		heading += fmt.Sprintf("\nHeld %s\n", p.Frozen)
	}
	return heading
}

// section is a part of a plan in Markdown that people can fold.
type section struct {
	title string
	lines []string
}

func (p *Plan) sections() []section {
	all := []section{
		{"Problems of files", prefixed("- ", p.Problems)},
		{"Previews", previewLines(p.Previews)},
		{"Projects and apps", diffLines(p.Changes)},
		{"Held until a person confirms it", prefixed("! ", p.Held)},
	}
	for _, a := range p.Apps {
		lines := diffLines(a.Changes)
		if a.Failed != "" {
			lines = append([]string{"- nothing is delivered: " + a.Failed}, lines...)
		}
		if a.Unknown != "" {
			lines = []string{"! not compared, because you may not read the objects it needs: " + a.Unknown}
		}
		if a.Note != "" && len(lines) > 0 {
			lines = append(lines, "# "+a.Note) // A comment in the format diff.
		}
		all = append(all, section{"App " + a.App, lines})
	}
	return all
}

// block returns the section in Markdown; "" without lines.
func (s section) block() string {
	if len(s.lines) == 0 {
		return ""
	}
	return fmt.Sprintf("\n<details open><summary>%s</summary>\n\n```diff\n%s\n```\n\n</details>\n", s.title, fence(strings.Join(s.lines, "\n")))
}

// cut returns the section with as many of its first lines as its block may have, by its length in bytes.
func (s section) cut(room int) section {
	n := sort.Search(len(s.lines), func(i int) bool { return len(section{s.title, s.lines[:i+1]}.block()) > room })
	return section{s.title, s.lines[:n]}
}

func previewLines(previews []Preview) []string {
	var lines []string
	for i := range previews {
		sign := "+ "
		if previews[i].Missing != "" {
			sign = "- "
		}
		lines = append(lines, sign+previews[i].String())
	}
	return lines
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
		out = append(out, sign+c.Object+c.Words())
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
