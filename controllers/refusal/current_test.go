package refusal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// webApp is the App web with a condition Current that says something, or without one for "".
func webApp(says string) *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{
		Namespace: web.Namespace, Name: web.Name, Labels: map[string]string{v1alpha1.RepositoryLabel: "acme"},
	}}
	if says != "" {
		app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.CurrentCondition, Status: metav1.ConditionFalse, Message: says}}
	}
	return app
}

func TestNotesOfWhatIsRefused(t *testing.T) {
	const (
		one = "main@sha1:1 is refused: " + typo
		two = "main@sha1:2 is refused: " + typo
	)
	unread, read, refusing := &Registry{}, &Registry{}, &Registry{}
	read.Set("acme", nil)
	// As after a restart: nobody knows which commit brought the problem.
	refusing.Set("acme", map[Unit]Refusal{web: {Revision: "main@sha1:2", Problem: typo}})
	pushed := &Registry{}
	pushed.Set("acme", nil)
	pushed.Put("acme", web, Refusal{Revision: "main@sha1:2", Problem: typo})
	outdated := func(message string) []step.Note {
		return []step.Note{{Condition: v1alpha1.CurrentCondition, Status: "False", Reason: "InvalidTree", Message: message, Event: "Warning"}}
	}
	cases := map[string]struct {
		registry *Registry
		told     string
		want     []step.Note
		heading  string
	}{
		"not read yet":                           {unread, "", nil, ""},
		"not read yet, told before":              {unread, one, nil, "A newer version is refused at projects/shop/apps/web/app.yaml:7; "},
		"refused":                                {pushed, "", outdated(two), "A newer version is refused at projects/shop/apps/web/app.yaml:7; "},
		"refused again by a later commit":        {pushed, one, outdated(two), "A newer version is refused at projects/shop/apps/web/app.yaml:7; "},
		"found after a restart":                  {refusing, one, outdated(one), "A newer version is refused at projects/shop/apps/web/app.yaml:7; "},
		"found after a restart, another problem": {refusing, "main@sha1:1 is refused: y", outdated(two), "A newer version is refused at projects/shop/apps/web/app.yaml:7; "},
		"current":                                {read, one, []step.Note{current()}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			app := webApp(c.told)
			notes := c.registry.Notes(v1alpha1.AppKind, app)
			if diff := cmp.Diff(c.want, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if got := Heading(app, notes); got != c.heading {
				t.Errorf("the heading is %q, want %q", got, c.heading)
			}
		})
	}
}

func TestAnObjectOfNoRepositoryIsCurrent(t *testing.T) {
	app := webApp("main@sha1:1 is refused: " + typo)
	app.Labels = nil
	notes := (&Registry{}).Notes(v1alpha1.AppKind, app)
	if diff := cmp.Diff([]step.Note{{Condition: v1alpha1.CurrentCondition}}, notes); diff != "" || Heading(app, notes) != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestALongPathIsShortenedInFront(t *testing.T) {
	app := webApp("main@sha1:1 is refused: " + strings.Repeat("deep/", 200) + "app.yaml:7: wrong")
	if got := Heading(app, nil); len(got) > 150 || !strings.HasSuffix(got, "deep/app.yaml:7; ") {
		t.Errorf("the heading is %q", got)
	}
}
