package record

import (
	"cmp"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// watchLag is how far a watch may be behind what was written.
const watchLag = 10 * time.Second

// Writes are the resourceVersions, by inventory ID, in which this process last wrote an App's objects: what a watch shows in an older one
// says nothing of them.
type Writes struct {
	at time.Time
	// unsettled are the versions until the App is found healthy, and recent those written just now, healthy or not.
	unsettled, recent map[string]string
}

// At is when this process last changed the App's objects. Verdicts about their health from before that time do not count.
func (w *Writes) At() time.Time { return w.at }

// Shown reports whether a watch had the time to show what was written last.
func (w *Writes) Shown(now time.Time) bool { return now.Sub(w.at) > watchLag }

// Unsettled returns the versions that were written since the App was last healthy.
func (w *Writes) Unsettled() map[string]string { return w.unsettled }

// Recent returns the versions that were written within the lag of a watch, and forgets older ones.
func (w *Writes) Recent(now time.Time) map[string]string {
	if w.Shown(now) {
		w.recent = nil
	}
	return w.recent
}

// Add records the versions in which objects were written now. Recent versions still count, because a pass that failed in part is followed
// by one that writes only the rest.
func (w *Writes) Add(entries []v1alpha1.InventoryEntry, written map[string]string, now time.Time) {
	last, all := w.Recent(now), map[string]string{}
	for _, e := range entries {
		if version := cmp.Or(written[e.ID], last[e.ID]); version != "" {
			all[e.ID] = version
		}
	}
	w.unsettled, w.recent, w.at = all, all, now
}

// Released notes the versions in which a Helm action left the objects of a release.
func (w *Writes) Released(versions map[string]string, now time.Time) {
	w.unsettled, w.at = versions, now
}

// Settled forgets what matters only until the App is healthy.
func (w *Writes) Settled() { w.unsettled = nil }
