package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
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

// TestThePlatformRecordsItsSharedObjectsInTheirVersions: the operator watches them, and judges their health.
func TestThePlatformRecordsItsSharedObjectsInTheirVersions(t *testing.T) {
	shared := cluster.Applied{
		Ref:  cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}, Name: "disk"},
		Live: &metav1.ObjectMeta{UID: "1", ResourceVersion: "9"},
	}
	for tenant, want := range map[string]string{"acme": "", v1alpha1.PlatformTenant: "9"} {
		app := webApp(helmApp)
		r := &releaser{applier: &apply.Applier{}}
		s := scopeOf(app, r)
		s.Owner.Tenant = tenant
		s.unhealthySince = &metav1.Time{Time: time.Unix(1, 0)}
		outcome := release.Outcome{Release: release.Info{Name: "web", Revision: 1}, Deployed: release.Deployed{Revision: 1, Content: "c0ffee", Shared: []cluster.Shared{{Applied: shared}}}}
		if err := r.recordObjects(t.Context(), s, outcome); err != nil {
			t.Fatal(err)
		}
		if got := s.writes.Unsettled()["_disk__PersistentVolume"]; got != want || s.unhealthySince != nil {
			t.Errorf("of %s, the written version is %q, want %q; unhealthy since %v", tenant, got, want, s.unhealthySince)
		}
		if len(s.inventory.Entries) != 1 {
			t.Errorf("of %s, recorded are %v", tenant, s.inventory.Entries)
		}
	}
}

// TestSharedObjectsStayRecordedWhenAPersonDeployed, because what such a revision shares is not known.
func TestSharedObjectsStayRecordedWhenAPersonDeployed(t *testing.T) {
	for content, want := range map[string]int{"": 1, "c0ffee": 1} {
		app := webApp(helmApp, func(app *v1alpha1.App) {
			app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{clusterEntry("disk")}
		})
		r := &releaser{applier: &apply.Applier{}}
		s := scopeOf(app, r)
		outcome := release.Outcome{Release: release.Info{Name: "web", Revision: 2}, Deployed: release.Deployed{Revision: 2, Content: content}}
		if err := r.recordObjects(t.Context(), s, outcome); err != nil {
			t.Fatal(err)
		}
		if stale := len(s.inventory.Entries) == 1 && s.inventory.Entries[0].Stale; len(s.inventory.Entries) != want || stale != (content != "") {
			t.Errorf("with the content %q, recorded are %+v", content, s.inventory.Entries)
		}
	}
}

// TestARevisionIsNotRecordedIfItsObjectsCannotBeRead: the next Reconcile records it.
func TestARevisionIsNotRecordedIfItsObjectsCannotBeRead(t *testing.T) {
	away := func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return nil, true, errors.New("away")
	}
	unseen := cluster.Applied{Ref: cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: shop, Name: "own"}}
	e := &engine{outcome: release.Outcome{Release: release.Info{Name: "web", Revision: 1}, Deployed: release.Deployed{Revision: 1, Content: "c0ffee", Objects: []cluster.Applied{unseen}}}}
	b := newHelmFixture(t, e)
	b.releaser.applier.Live = away
	got := b.ended(b.releaser.release(t.Context(), b.s))
	if got != "failed Failed: recording the objects of release web: ConfigMap/own: away" || b.s.recordedRevision() != (deployed{}) || b.s.outcome.applied {
		t.Errorf("got %q; the recorded revision is %+v", got, b.s.recordedRevision())
	}
}

// TestAnObjectWithItsRecordedDigestIsUnchanged since Helm wrote it. An object that cannot be read counts as changed.
func TestAnObjectWithItsRecordedDigestIsUnchanged(t *testing.T) {
	same := &metav1.ObjectMeta{Namespace: shop, Name: "same", UID: "1", ResourceVersion: "7"}
	recorded := entry("ConfigMap", "same")
	recorded.Digest = fingerprint.StateOf(inventory.ObjectID{Namespace: shop, Kind: "ConfigMap", Name: "same"}, same)
	other := entry("ConfigMap", "moved")
	other.Digest = "another"
	b := newHelmFixture(t, &engine{}, func(app *v1alpha1.App) { app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{recorded, other} })
	var away error
	b.releaser.applier.Live = func(_ context.Context, _ schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
		if key.Name == "same" {
			return same, true, away
		}
		return &metav1.ObjectMeta{Namespace: shop, Name: key.Name, UID: "2", ResourceVersion: "8"}, true, away
	}
	for name, want := range map[string]bool{"same": true, "moved": false, "unknown": false} {
		if got := b.releaser.unmoved(t.Context(), b.s)(ofNamespace(objectOf("v1", "ConfigMap", name), shop)); got != want {
			t.Errorf("%s: certainly unchanged %t, want %t", name, got, want)
		}
	}
	away = errors.New("away")
	if b.releaser.unmoved(t.Context(), b.s)(ofNamespace(objectOf("v1", "ConfigMap", "same"), shop)) {
		t.Error("an object that cannot be read is certainly unchanged")
	}
}

// TestClusterScopedObjectsThatLeftTheChartAreDeletedLast, except definitions, which wait for a confirmation.
func TestClusterScopedObjectsThatLeftTheChartAreDeletedLast(t *testing.T) {
	stale := clusterEntry("old")
	stale.Stale = true
	b := newHelmFixture(t, &engine{}, func(app *v1alpha1.App) {
		app.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Deployed: 1}
		app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{stale, clusterEntry("kept"), entry("ConfigMap", "own")}
	})
	b.s.Owner = own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: shop}
	for _, name := range []string{"old", "kept"} {
		if err := b.api.Create(t.Context(), labelled(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}, "web")); err != nil {
			t.Fatal(err)
		}
	}
	b.s.recordEntries(b.s.inventory.Entries)
	if got := b.ended(b.releaser.pruneClusterScoped(t.Context(), b.s)); got != "done" || b.has("PersistentVolume", "old") || !b.has("PersistentVolume", "kept") {
		t.Fatalf("got %q; what left exists: %t, what stayed: %t", got, b.has("PersistentVolume", "old"), b.has("PersistentVolume", "kept"))
	}
	if strings.Contains(b.recorded(), "old") || !strings.Contains(b.recorded(), "kept") || len(b.s.recordedEntries()) != 2 {
		t.Errorf("the inventory is %s; of the revision %v", b.recorded(), b.s.recordedEntries())
	}
}
