package controllers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/rollup"
)

// TestEachDeliveryIsRecordedOnce delivers two commits of an app and asks for a reconcile of each.
func TestEachDeliveryIsRecordedOnce(t *testing.T) {
	n := newTeam(t, "records")
	files := shopFiles("shop", "web")
	web := n.app("shop", "web")
	var revisions []string
	for i, greeting := range []string{"hello", "hello again"} {
		files["projects/shop/apps/web/app.yaml"] = strings.ReplaceAll(files["projects/shop/apps/web/app.yaml"], "hello", greeting)
		revisions = append(revisions, n.push(files))
		n.eventually(func() error { return n.delivered(web, revisions[i], i+1) })
		n.reconcile(web)
		if err := n.delivered(web, revisions[i], i+1); err != nil {
			t.Error(err)
		}
	}
	got := web.Status.Deliveries[0]
	if want := strings.TrimPrefix(revisions[1], "main@sha1:"); got.Commit != want || got.Author != "test" || got.Duration == nil {
		t.Errorf("got %+v, want commit %s by test", got, want)
	}
}

// delivered reads an app, and reports an error if its newest delivery is not the revision, or if there are not so many.
func (n *team) delivered(app *v1alpha1.App, revision string, count int) error {
	n.ready(app)
	all := app.Status.Deliveries
	if len(all) != count || all[0].Revision != revision || all[0].Result != v1alpha1.DeliverySucceeded {
		return fmt.Errorf("deliveries %+v, want %d, the newest of %s", all, count, revision)
	}
	return nil
}

// TestACommitIsOneEventOfItsProject delivers a commit of twelve apps and one of two, of which one fails.
func TestACommitIsOneEventOfItsProject(t *testing.T) {
	n := newTeam(t, "news")
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("web-%02d", i))
	}
	first := n.push(shopFiles("shop", names...))
	n.delivers("Delivered " + hashIn(first) + " by test: 12 apps: web-00, web-01, web-02, web-03, web-04, web-05, web-06, web-07, and 4 more")

	files := shopFiles("shop", "web-03")
	files["projects/shop/apps/web-03/app.yaml"] = strings.ReplaceAll(files["projects/shop/apps/web-03/app.yaml"], "hello", "bye")
	files["projects/shop/apps/web-04/app.yaml"] = fmt.Sprintf(refusedFile, "web-04")
	second := n.push(files)
	n.delivers("Delivered "+hashIn(first)+" by test: 12 apps: web-00, web-01, web-02, web-03, web-04, web-05, web-06, web-07, and 4 more",
		"Delivered "+hashIn(second)+" by test: 1 of 2 apps: web-03; not delivered: web-04 (NotAllowed)")
}

// hashIn returns the first eight digits of the hash in a revision.
func hashIn(revision string) string { return strings.TrimPrefix(revision, "main@sha1:")[:8] }

// delivers waits for the events about what the project shop delivered, leaving out how long it took, and checks that no other follows.
func (n *team) delivers(want ...string) {
	n.t.Helper()
	read := func() error {
		list := &eventsv1.EventList{}
		if err := n.admin.List(n.t.Context(), list, client.InNamespace(v1alpha1.HomeNamespace(n.name))); err != nil {
			return err
		}
		slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		var got []string
		for _, e := range list.Items {
			if e.Reason == v1alpha1.DeliveredReason {
				got = append(got, within.ReplaceAllString(e.Note, ":"))
			}
			if e.Reason == v1alpha1.DeliveredReason && (e.Regarding.Kind != v1alpha1.ProjectKind || e.Regarding.Name != "shop" || e.Type != corev1.EventTypeNormal) {
				n.t.Errorf("the event is %s, of %s %s", e.Type, e.Regarding.Kind, e.Regarding.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("events (-want +got):\n%s", diff)
		}
		return nil
	}
	n.eventually(read)
	time.Sleep(2 * rollup.Pause)
	if err := read(); err != nil {
		n.t.Error(err)
	}
}

var within = regexp.MustCompile(` within [0-9ms]+:`)
