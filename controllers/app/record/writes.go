package record

import (
	"cmp"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// watchLag is the longest delay of a watch that is expected.
const watchLag = 10 * time.Second

// Writes are the resourceVersions, by inventory ID, in which this process last wrote an App's objects. If a watch shows an older version of
// an object, it does not show the object's present state.
type Writes struct {
	at time.Time
	// unsettled are the versions written since the App was last healthy. recent are the versions written within watchLag.
	unsettled, recent map[string]string
}

// At is when this process last wrote the App's objects. Health that was judged before that time does not count.
func (w *Writes) At() time.Time { return w.at }

// Shown reports whether watches have had enough time to show the last write.
func (w *Writes) Shown(now time.Time) bool { return now.Sub(w.at) > watchLag }

// Unsettled returns the versions written since the App was last healthy.
func (w *Writes) Unsettled() map[string]string { return w.unsettled }

// Recent returns the versions written within watchLag, and drops older ones.
func (w *Writes) Recent(now time.Time) map[string]string {
	if w.Shown(now) {
		w.recent = nil
	}
	return w.recent
}

// Add records the versions that were written now. It keeps recent versions, because after a Reconcile that failed in part, the next one
// writes only the rest.
func (w *Writes) Add(entries []v1alpha1.InventoryEntry, written map[string]string, now time.Time) {
	last, all := w.Recent(now), map[string]string{}
	for _, e := range entries {
		if version := cmp.Or(written[e.ID], last[e.ID]); version != "" {
			all[e.ID] = version
		}
	}
	w.unsettled, w.recent, w.at = all, all, now
}

// Released records the versions in which a Helm action left the objects of a release.
func (w *Writes) Released(versions map[string]string, now time.Time) {
	w.unsettled, w.at = versions, now
}

// Settled drops the versions that matter only until the App is healthy.
func (w *Writes) Settled() { w.unsettled = nil }
