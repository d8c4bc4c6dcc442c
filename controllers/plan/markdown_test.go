package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everything has each kind of line once.
func everything() *Plan {
	return &Plan{
		Repository: "acme", Revision: "main@sha1:1", Problems: []string{"a.yaml:1: no kind"},
		Changes: []Change{{Action: Create, Object: "acme/shop/new"}, {Action: Hold, Object: "acme/shop/db", Why: "its deletion waits"}},
		Previews: []Preview{
			{Project: "shop-pr-a", Of: "shop", Apps: []PreviewApp{{Name: "api"}, {Name: "web", Hosts: []string{"a.example.com", "b.example.com"}}}},
			{Project: "blog-pr-a", Of: "blog", Missing: "it is old"},
		},
		Held: []string{"app acme/shop/db with 1 claim"}, Frozen: "until 2026-11-30 08:00 UTC by freeze weekend",
		Apps: []App{
			{App: "acme/shop/same", Source: "main@sha1:1", Note: "compared without the API server"},
			{App: "acme/shop/web", Note: "compared without the API server", Changes: []Change{
				{Action: Update, Object: "Deployment/web", Fields: []Field{{Path: "/spec/replicas", Before: "1", After: "2"}, {Path: "/a", After: "new"}, {Path: "/b", Before: "old"}}},
				{Action: Recreate, Object: "Job/init"}, {Action: Delete, Object: "Service/old"}, {Action: Move, Object: "ConfigMap/c", Why: "app acme/shop/api takes it over"},
				{Action: Run, Object: "Job/hook", Why: "hook pre-upgrade"}, {Action: Keep, Object: "Secret/s"}, {Action: Refuse, Object: "Pod/p", Why: "```privileged```"},
			}},
			{App: "acme/shop/broken", Failed: "fetching: not found"},
			{App: "acme/shop/hidden", Unknown: "secrets is forbidden"},
		},
	}
}

func TestNoTextEndsTheCodeBlockOfAPlan(t *testing.T) {
	block := func(title, lines string) string {
		return "\n<details open><summary>" + title + "</summary>\n\n```diff\n" + lines + "\n```\n\n</details>\n"
	}
	want := "### kubeop plan for `acme`: 1 to create, 1 to update, 1 to recreate, 1 to delete, 1 to move, 1 to run, 1 to keep, 1 to hold, 2 to refuse, 1 problem in files\n" +
		"\nHeld until 2026-11-30 08:00 UTC by freeze weekend\n" +
		block("Problems of files", "- a.yaml:1: no kind") +
		block("Previews", "+ shop-pr-a, a preview of shop, with the apps: api, web at a.example.com and b.example.com\n- blog-pr-a, a preview of blog: there is none, because it is old") +
		block("Projects and apps", "+ acme/shop/new\n! acme/shop/db is held: its deletion waits") +
		block("Held until a person confirms it", "! app acme/shop/db with 1 claim") +
		block("App acme/shop/web", "! Deployment/web\n-   /spec/replicas: 1\n+   /spec/replicas: 2\n+   /a: new\n-   /b: old\n! Job/init is recreated\n- Service/old\n"+
			"! ConfigMap/c moves: app acme/shop/api takes it over\n! Job/hook runs: hook pre-upgrade\n! Secret/s stays\n- Pod/p is refused: '''privileged'''\n# compared without the API server") +
		block("App acme/shop/broken", "- nothing is delivered: fetching: not found") +
		block("App acme/shop/hidden", "! not compared, because you may not read the objects it needs: secrets is forbidden")
	if diff := cmp.Diff(want, everything().Markdown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestACommentIsNoLongerThanTheHostTakes: it is cut between two lines, and ends the block of code and the section that it cuts, but no others.
func TestACommentIsNoLongerThanTheHostTakes(t *testing.T) {
	if Mark("acme") != "<!-- kubeop plan of acme -->\n" {
		t.Errorf("the mark is %q, by which the last comment is found", Mark("acme"))
	}
	if everything().Comment() != everything().Markdown() {
		t.Error("a short comment is not the plan")
	}
	const rest, line = "\nThe rest is left out: `kubeop plan` shows it.\n", "App acme/shop/ein-Name-mit-Länge"
	later := []App{{App: "a/b/c", Failed: "no"}}
	fills := func(room int) []string { // The line leaves that much room for the section of the app.
		empty, whole := &Plan{Repository: "acme", Held: []string{""}}, &Plan{Repository: "acme", Held: []string{""}, Apps: later}
		return []string{strings.Repeat("x", maxComment-room-len(whole.heading())-len(empty.Markdown())+len(empty.heading()))}
	}
	for name, made := range map[string]*Plan{
		"within a block of code":            {Repository: "acme", Held: slices.Repeat([]string{line}, 3000)},
		"just before a section":             {Repository: "acme", Held: fills(0), Apps: later},
		"within the title of a section":     {Repository: "acme", Held: fills(20), Apps: later},
		"within the first line of a block":  {Repository: "acme", Held: fills(60), Apps: later},
		"a line that is longer than it all": {Repository: "acme", Held: []string{strings.Repeat("x", maxComment)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := made.Comment()
			whole, ended := strings.CutSuffix(got, rest)
			if len(whole) > maxComment || !ended {
				t.Fatalf("the comment has %d characters, and ends with %q", len(got), got[len(got)-80:])
			}
			if opened, closed := strings.Count(whole, "```diff\n"), strings.Count(whole, "\n```\n\n</details>\n"); opened != closed || strings.Count(whole, "```") != 2*opened || strings.Count(whole, "<details") != opened {
				t.Errorf("%d blocks of code are opened, and %d closed: %q", opened, closed, whole[max(0, len(whole)-200):])
			}
			if last := strings.TrimSuffix(whole, "\n```\n\n</details>\n"); strings.Contains(whole, line) && !strings.HasSuffix(last, "! "+line) {
				t.Errorf("the last line is cut: %q", last[len(last)-80:])
			}
		})
	}
}

// TestAPlanIsEmptyIfNothingHappens: the exit code depends on it.
func TestAPlanIsEmptyIfNothingHappens(t *testing.T) {
	for name, tc := range map[string]struct {
		plan Plan
		want bool
	}{
		"nothing":                     {Plan{}, true},
		"an app without changes":      {Plan{Apps: []App{{App: "a/b/c", Note: "note"}}}, true},
		"problems of files":           {Plan{Problems: []string{"a"}}, false},
		"changes of objects":          {Plan{Changes: []Change{{Action: Create}}}, false},
		"an app that fails":           {Plan{Apps: []App{{}, {Failed: "no"}}}, false},
		"an app that nobody may read": {Plan{Apps: []App{{}, {Unknown: "no"}}}, false},
		"an app that changes":         {Plan{Apps: []App{{}, {Changes: []Change{{Action: Update}}}}}, false},
	} {
		if got := tc.plan.Empty(); got != tc.want {
			t.Errorf("%s: empty is %t", name, got)
		}
	}
}

// TestAMoveNeedsAnAppThatTakesTheObject: otherwise the object stays where it is.
func TestAMoveNeedsAnAppThatTakesTheObject(t *testing.T) {
	move := Change{Action: Move, Object: "ConfigMap/c", Why: "app a/b/to takes it over", to: "a/b/to"}
	for name, tc := range map[string]struct {
		to   App
		want Action
	}{
		"it takes it":             {App{App: "a/b/to", Changes: []Change{{Action: Update, Object: "ConfigMap/c"}}}, Move},
		"it refuses it":           {App{App: "a/b/to", Changes: []Change{{Action: Refuse, Object: "ConfigMap/c"}}}, Keep},
		"it refuses another":      {App{App: "a/b/to", Changes: []Change{{Action: Refuse, Object: "ConfigMap/d"}}}, Move},
		"it delivers nothing":     {App{App: "a/b/to", Failed: "no"}, Keep},
		"another app has refused": {App{App: "a/b/other", Changes: []Change{{Action: Refuse, Object: "ConfigMap/c"}}}, Move},
	} {
		t.Run(name, func(t *testing.T) {
			apps := []App{{App: "a/b/from", Changes: []Change{move}}, tc.to}
			leaveRefused(apps)
			got := apps[0].Changes[0]
			if got.Action != tc.want || (tc.want == Keep) != (got.Why == "app a/b/to declares it and cannot take it over") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAFieldIsDescribedInALine(t *testing.T) {
	for want, f := range map[string]Field{
		"/a: new": {Path: "/a", After: "new"}, "/a: old is removed": {Path: "/a", Before: "old"}, "/a: old -> new": {Path: "/a", Before: "old", After: "new"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
