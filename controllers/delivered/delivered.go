// Package delivered reports the commits that the apps of a Project delivered: one event of the Project for each commit, however many apps it
// changed. An event of each App would cost a request for each app and commit. It reads the informer's cache only.
package delivered

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/backoff"
)

const (
	// patience is how long an app that is still at work on a commit keeps back the event about the apps that have delivered it.
	patience = 10 * time.Minute
	// unmoved is the patience with an app whose files a commit changed, and which may have nothing to deliver of it.
	unmoved = 10 * time.Second
)

// Reporter knows which deliveries were reported. The zero value knows of none. What apps had delivered when their Project is first looked at
// counts as reported, so a restart repeats no event; it loses those of the moment of the restart.
type Reporter struct {
	mu       sync.Mutex
	projects map[types.UID]reported
}

// reported has the digests of the successful deliveries in the status of each App that were reported.
type reported map[types.UID][]uint64

// digestOf returns a digest that distinguishes the deliveries of an App.
func digestOf(d *v1alpha1.DeliveryRecord) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\n%d\n%q\n%q\n%q\n%d", d.StartedAt.Unix(), d.Generation, d.Revision, d.Commit, d.Image, d.Release)
	return h.Sum64()
}

// Forget drops what is known of a Project.
func (r *Reporter) Forget(project types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.projects, project)
}

// Report is what one Reconcile of a Project reports.
type Report struct {
	// Notes are the events.
	Notes []step.Note
	// Again is how long the apps that are still at work may keep back another event; 0 if none is kept back.
	Again time.Duration

	reporter *Reporter
	project  types.UID
	after    reported
}

// Look finds the commits that the apps of a namespace have delivered since the last Report that was Sent.
func (r *Reporter) Look(ctx context.Context, reader client.Reader, project types.UID, namespace string, now time.Time) (*Report, error) {
	apps := &v1alpha1.AppList{}
	if err := reader.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the apps of %s: %w", namespace, err)
	}
	r.mu.Lock()
	before, known := r.projects[project]
	r.mu.Unlock()
	report := &Report{reporter: r, project: project, after: reported{}}
	commits := map[string]*commit{}
	for i := range apps.Items {
		app := &apps.Items[i]
		for j := range app.Status.Deliveries {
			d := &app.Status.Deliveries[j]
			switch digest := digestOf(d); {
			case d.Result != v1alpha1.DeliverySucceeded:
			case !known || slices.Contains(before[app.UID], digest):
				report.after[app.UID] = append(report.after[app.UID], digest)
			default:
				commitOf(commits, d).add(app, d)
			}
		}
	}
	for _, c := range slices.SortedFunc(maps.Values(commits), oldestFirst) {
		report.add(c, apps.Items, now)
	}
	return report, nil
}

// add adds the event of a commit, unless it is too early for it.
func (r *Report) add(c *commit, apps []v1alpha1.App, now time.Time) {
	var left time.Duration
	for i := range apps {
		left = max(left, c.awaits(&apps[i], now))
	}
	if left > 0 {
		r.Again = backoff.Sooner(r.Again, left)
		return
	}
	r.Notes = append(r.Notes, c.note())
	for _, d := range c.delivered {
		r.after[d.app.UID] = append(r.after[d.app.UID], digestOf(d.record))
	}
}

// Sent notes that the events were sent.
func (r *Report) Sent() {
	r.reporter.mu.Lock()
	defer r.reporter.mu.Unlock()
	if r.reporter.projects == nil {
		r.reporter.projects = map[types.UID]reported{}
	}
	r.reporter.projects[r.project] = r.after
}
