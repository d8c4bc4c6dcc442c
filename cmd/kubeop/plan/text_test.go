package plan

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/internal/testenv/terminal"
)

// everything has each kind of line once.
func everything() *plan.Plan {
	return &plan.Plan{
		Repository: "acme", Revision: "main@sha1:1", Problems: []string{"a.yaml:1: no kind"},
		Changes: []plan.Change{{Action: plan.Create, Object: "acme/shop/new"}, {Action: plan.Hold, Object: "acme/shop/db", Why: "its deletion waits"}},
		Previews: []plan.Preview{
			{Project: "shop-pr-a", Of: "shop", Apps: []plan.PreviewApp{{Name: "api"}, {Name: "web", Hosts: []string{"a.example.com", "b.example.com"}}}},
			{Project: "blog-pr-a", Of: "blog", Missing: "it is old"},
		},
		Held: []string{"app acme/shop/db with 1 claim"}, Frozen: "until 2026-11-30 08:00 UTC by freeze weekend",
		Apps: []plan.App{
			{App: "acme/shop/same", Source: "main@sha1:1", Note: "compared without the API server"},
			{App: "acme/shop/web", Note: "compared without the API server", Changes: []plan.Change{
				{Action: plan.Update, Object: "Deployment/web", Fields: []plan.Field{{Path: "/spec/replicas", Before: "1", After: "2"}, {Path: "/a", After: "new"}, {Path: "/b", Before: "old"}}},
				{Action: plan.Recreate, Object: "Job/init"}, {Action: plan.Delete, Object: "Service/old"}, {Action: plan.Move, Object: "ConfigMap/c", Why: "app acme/shop/api takes it over"},
				{Action: plan.Run, Object: "Job/hook", Why: "hook pre-upgrade"}, {Action: plan.Keep, Object: "Secret/s"}, {Action: plan.Refuse, Object: "Pod/p", Why: "```privileged```"},
			}},
			{App: "acme/shop/broken", Failed: "fetching: not found"},
			{App: "acme/shop/hidden", Unknown: "secrets is forbidden"},
		},
	}
}

func printed(t *testing.T, print func(*command) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := print(&command{Call: &call.Call{Out: &out}}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAPlanIsPrintedForPeople(t *testing.T) {
	const want = `Problems of files, which keep their last good state
  a.yaml:1: no kind

Previews
  shop-pr-a, a preview of shop, with the apps: api, web at a.example.com and b.example.com
  blog-pr-a, a preview of blog: there is none, because it is old

Repository acme
  + acme/shop/new
  ! acme/shop/db is held: its deletion waits

Held until a person confirms it
  app acme/shop/db with 1 claim

App acme/shop/web
  ~ Deployment/web
      /spec/replicas: 1 -> 2
      /a: new
      /b: old is removed
  ± Job/init is recreated
  - Service/old
  > ConfigMap/c moves: app acme/shop/api takes it over
  * Job/hook runs: hook pre-upgrade
  = Secret/s stays
  x Pod/p is refused: ` + "```privileged```" + `
  compared without the API server

App acme/shop/broken
  x nothing is delivered: fetching: not found

App acme/shop/hidden
  ? not compared, because you may not read the objects it needs: secrets is forbidden

Held until 2026-11-30 08:00 UTC by freeze weekend
  nothing of it is applied before, unless it is confirmed: kubeop confirm repository acme

Plan: 1 to create, 1 to update, 1 to recreate, 1 to delete, 1 to move, 1 to run, 1 to keep, 1 to hold, 2 to refuse, 1 problem in files
`
	if diff := cmp.Diff(want, printed(t, func(p *command) error { return p.text(everything()) })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := printed(t, func(p *command) error {
		return p.text(&plan.Plan{Apps: []plan.App{{App: "a/b/c"}}, Frozen: "until noon"})
	}); got != "Plan: no changes\n" {
		t.Errorf("a plan without changes is printed as %q", got)
	}
}

// TestTheExitCodeSaysWhetherACommitChangesSomething. A script that stores the plan must not take half of it for a plan with changes: an output that
// cannot be written is another error.
func TestTheExitCodeSaysWhetherACommitChangesSomething(t *testing.T) {
	for _, format := range []output.Format{output.Table, markdown, output.JSON, output.YAML} {
		to := func(w io.Writer) *command { return &command{Call: &call.Call{Out: w, Data: w}, format: format} }
		if err := to(io.Discard).print(&plan.Plan{}); err != nil {
			t.Errorf("%s: nothing changes: %v", format, err)
		}
		if err := to(io.Discard).print(everything()); exit.Code(err) != exit.Differences {
			t.Errorf("%s: something changes: %v", format, err)
		}
		from, full := io.Pipe()
		if err := from.CloseWithError(syscall.ENOSPC); err != nil {
			t.Fatal(err)
		}
		for name, made := range map[string]*plan.Plan{"something": everything(), "nothing": {}} {
			if err := to(full).print(made); !errors.Is(err, syscall.ENOSPC) || exit.Code(err) == exit.Differences {
				t.Errorf("%s: %s changes, and there is no space for the plan: %v", format, name, err)
			}
		}
	}
}

// TestSignsHaveTheColourOfTheirAction: a terminal shows what is lost or refused in red.
func TestSignsHaveTheColourOfTheirAction(t *testing.T) {
	on := output.PaintFor(terminal.Open(t))
	for action, want := range map[plan.Action]string{
		plan.Create: on.Green("+"),
		plan.Update: on.Yellow("~"), plan.Recreate: on.Yellow("±"), plan.Move: on.Yellow(">"), plan.Hold: on.Yellow("!"),
		plan.Delete: on.Red("-"), plan.Refuse: on.Red("x"),
		plan.Run: "*", plan.Keep: "=",
	} {
		if got := paint(on, action); got != want || action == plan.Create && got == "+" {
			t.Errorf("%s is painted as %q, want %q", action, got, want)
		}
	}
}
