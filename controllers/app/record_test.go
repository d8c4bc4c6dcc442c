package app

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/cluster"
)

// TestOnlyObjectsOfItsNamespaceAreRecorded: an app that recorded the objects of another namespace would delete them with itself.
func TestOnlyObjectsOfItsNamespaceAreRecorded(t *testing.T) {
	written := func(namespace, name string) cluster.Applied {
		kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		return cluster.Applied{Ref: cluster.Ref{GroupVersionKind: kind, Namespace: namespace, Name: name}, Live: &metav1.ObjectMeta{UID: "1", ResourceVersion: "7"}}
	}
	app := webApp(helmApp)
	r := &releaser{applier: &apply.Applier{}}
	s := scopeOf(app, r)
	outcome := release.Outcome{
		Release:  release.Info{Name: "web", Revision: 1},
		Deployed: release.Deployed{Revision: 1, Content: "c0ffee", Objects: []cluster.Applied{written(shop, "own"), written("kubeop-acme-blog", "other")}},
	}
	if err := r.recordObjects(t.Context(), s, outcome); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range s.inventory.Entries {
		ids = append(ids, e.ID)
	}
	if got := strings.Join(ids, " "); got != shop+"_own__ConfigMap" {
		t.Errorf("recorded %s", got)
	}
	if got := s.recordedRevision(); got != (deployed{1, "c0ffee"}) || len(s.recordedEntries()) != 1 {
		t.Errorf("the recorded revision is %+v with %d objects", got, len(s.recordedEntries()))
	}
}

// TestTheStatusSaysWhenAFailedReleaseIsTriedAgain, and nothing of it once no attempt is due.
func TestTheStatusSaysWhenAFailedReleaseIsTriedAgain(t *testing.T) {
	app, at := webApp(helmApp), time.Unix(1000, 0)
	s := scopeOf(app, &releaser{})
	for _, retry := range []release.Retry{{Attempts: 2, At: at}, {Attempts: 3}, {}} {
		s.release.outcome = &release.Outcome{Retry: retry}
		s.release.record(app)
		var want *metav1.Time
		if !retry.At.IsZero() {
			want = &metav1.Time{Time: at}
		}
		if !app.Status.NextRetryAt.Equal(want) || app.Status.Failures != int64(retry.Attempts) {
			t.Errorf("%+v: the status says %d failures, again at %s", retry, app.Status.Failures, app.Status.NextRetryAt)
		}
	}
}

// TestTheStatusHasTheChartOfTheNewestRevision: from its record if that was read, otherwise from the history, and not that of another revision.
func TestTheStatusHasTheChartOfTheNewestRevision(t *testing.T) {
	app := webApp(helmApp)
	s := scopeOf(app, &releaser{})
	records := release.Records{
		Statuses:  map[int]string{1: "superseded", 2: "superseded", 3: "deployed"},
		Snapshots: []v1alpha1.ReleaseSnapshot{{Revision: 3, Chart: "web", ChartVersion: "1.2.0", AppVersion: "c"}, {Revision: 2, Chart: "web", ChartVersion: "1.1.0", AppVersion: "b"}, {Revision: 4}},
	}
	for name, tc := range map[string]struct {
		info release.Info
		want []string
	}{
		"of the history": {release.Info{Name: "web", Revision: 2}, []string{"web-1.1.0", "b"}},
		"of its record":  {release.Info{Name: "web", Revision: 3, Chart: "web-1.2.0", AppVersion: "read"}, []string{"web-1.2.0", "read"}},
		"unknown":        {release.Info{Name: "web", Revision: 1}, []string{"", ""}},
	} {
		s.release.outcome = &release.Outcome{Release: tc.info, Records: records}
		s.release.record(app)
		if diff := cmp.Diff(tc.want, []string{app.Status.Release.Chart, app.Status.Release.AppVersion}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		var revisions []int
		for _, h := range app.Status.History {
			revisions = append(revisions, h.Revision)
		}
		if diff := cmp.Diff([]int{3, 2}, revisions); diff != "" { // Revision 4 is not kept by Helm, and nothing is known of revision 1.
			t.Errorf("%s: history (-want +got):\n%s", name, diff)
		}
	}
	s.release.outcome = &release.Outcome{}
	if s.release.record(app); app.Status.Release != nil {
		t.Errorf("an uninstalled release is reported: %+v", app.Status.Release)
	}
}
