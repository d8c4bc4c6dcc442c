package refusal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// webApp is the App web. It has condition Current if its status has a message of it.
func webApp(message string) *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{
		Namespace: web.Namespace, Name: web.Name, Labels: map[string]string{v1alpha1.RepositoryLabel: "acme"},
	}}
	if message != "" {
		app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.CurrentCondition, Status: metav1.ConditionFalse, Message: message}}
	}
	return app
}

func TestAnObjectReportsItsRefusedVersion(t *testing.T) {
	of := func(revision, at, problem string) *v1alpha1.Refused {
		return &v1alpha1.Refused{Revision: revision, Place: at, Problem: problem}
	}
	one, two := of("main@sha1:1", place, typo), of("main@sha1:2", place, typo)
	const message = "main@sha1:1 is refused: " + place + ": " + typo
	unread, read, refusing, pushed := &Index{}, &Index{}, &Index{}, &Index{}
	read.Set("acme", nil)
	// As after a restart: nobody knows which commit brought the problem.
	refusing.Set("acme", map[Unit]Refusal{web: {Revision: "main@sha1:2", Place: place, Problem: typo}})
	pushed.Set("acme", nil)
	pushed.Put("acme", web, Refusal{Revision: "main@sha1:2", Place: place, Problem: typo})
	outdated := func(refused *v1alpha1.Refused) Report {
		return Report{Refused: refused, Notes: []step.Note{{
			Condition: v1alpha1.CurrentCondition, Status: "False", Reason: "InvalidTree", Event: "Warning",
			Message: refused.Revision + " is refused: " + place + ": " + typo,
		}}}
	}
	const heading = "A newer version is refused at " + place + "; "
	cases := map[string]struct {
		registry *Index
		message  string
		before   *v1alpha1.Refused
		want     Report
		heading  string
	}{
		"not read yet":                           {unread, "", nil, Report{}, ""},
		"not read yet, reported before":          {unread, message, one, Report{Refused: one}, heading},
		"not read yet, from before the field":    {unread, message, nil, Report{}, ""},
		"no registry":                            {nil, message, one, Report{Refused: one}, heading},
		"refused":                                {pushed, "", nil, outdated(two), heading},
		"refused again by a later commit":        {pushed, message, one, outdated(two), heading},
		"found after a restart":                  {refusing, message, one, outdated(one), heading},
		"found after a restart, another problem": {refusing, message, of("main@sha1:1", place, "y"), outdated(two), heading},
		"found after a restart, another place":   {refusing, message, of("main@sha1:1", "app.yaml:1", typo), outdated(two), heading},
		"found, from before the field":           {refusing, message, nil, outdated(two), heading},
		"current":                                {read, message, one, Report{Notes: []step.Note{current()}}, ""},
		"current, from before the field":         {read, message, nil, Report{Notes: []step.Note{current()}}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.registry.Report(v1alpha1.AppKind, webApp(c.message), c.before)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.Heading() != c.heading {
				t.Errorf("the heading is %q, want %q", got.Heading(), c.heading)
			}
		})
	}
}

func TestAnObjectOfNoRepositoryIsCurrent(t *testing.T) {
	app := webApp("any")
	app.Labels = nil
	got := (&Index{}).Report(v1alpha1.AppKind, app, &v1alpha1.Refused{Revision: "main@sha1:1", Place: place, Problem: typo})
	if diff := cmp.Diff(Report{Notes: []step.Note{{Condition: v1alpha1.CurrentCondition}}}, got); diff != "" || got.Heading() != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestALongPathIsShortenedInFront(t *testing.T) {
	report := Report{Refused: &v1alpha1.Refused{Place: strings.Repeat("deep/", 200) + "app.yaml:7", Problem: "wrong"}}
	if got := report.Heading(); len(got) > 150 || got != "A newer version is refused at …deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/deep/app.yaml:7; " {
		t.Errorf("the heading is %q", got)
	}
}

func TestTheStatusHoldsNoSecret(t *testing.T) {
	hide := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	if got := (Report{}).Masked(hide); got != nil {
		t.Errorf("nothing is refused: got %v", got)
	}
	report := Report{Refused: &v1alpha1.Refused{Revision: "main@sha1:1", Place: "hunter2.yaml", Problem: "no hunter2"}}
	want := &v1alpha1.Refused{Revision: "main@sha1:1", Place: "***.yaml", Problem: "no ***"}
	if diff := cmp.Diff(want, report.Masked(hide)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
