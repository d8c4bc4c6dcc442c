package delivered

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
)

const (
	// maxNamed is how many apps an event names of those that delivered a commit, and again of those that did not.
	maxNamed = 8
	// maxDetail is how many characters of a version, an image or a name of an author the event quotes.
	maxDetail = 60
)

// commit is what the apps of a project have delivered of one commit and not reported yet.
type commit struct {
	// key is the hash of the commit, or the revision if no commit declared the apps.
	key, author string
	// began is when the first of the apps began, and ended when the last of those that succeeded was healthy.
	began, ended time.Time
	delivered    []delivery
	// missing are the apps that the commit changed and that have not delivered it: why, after the name.
	missing []string
}

// delivery is a successful one of an app.
type delivery struct {
	app    *v1alpha1.App
	record *v1alpha1.DeliveryRecord
}

// keyOf returns what deliveries of one event have in common.
func keyOf(d *v1alpha1.DeliveryRecord) string { return cmp.Or(d.Commit, d.Revision) }

func commitOf(commits map[string]*commit, d *v1alpha1.DeliveryRecord) *commit {
	if commits[keyOf(d)] == nil {
		commits[keyOf(d)] = &commit{key: keyOf(d), began: d.StartedAt.Time}
	}
	return commits[keyOf(d)]
}

func oldestFirst(a, b *commit) int {
	return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.key, b.key))
}

// add adds a delivery. Of an app that delivered the commit twice, such as with two images, only the later one is named.
func (c *commit) add(app *v1alpha1.App, d *v1alpha1.DeliveryRecord) {
	c.author = cmp.Or(c.author, d.Author)
	if d.StartedAt.Time.Before(c.began) {
		c.began = d.StartedAt.Time
	}
	if d.FinishedAt != nil && d.FinishedAt.After(c.ended) {
		c.ended = d.FinishedAt.Time
	}
	c.delivered = append(c.delivered, delivery{app: app, record: d})
}

// awaits returns for how long an app still keeps back the event of the commit; zero if it does not.
func (c *commit) awaits(app *v1alpha1.App, now time.Time) time.Duration {
	newest := &v1alpha1.DeliveryRecord{}
	if len(app.Status.Deliveries) > 0 {
		newest = &app.Status.Deliveries[0]
	}
	began, ready := keyOf(newest) == c.key, conditions.Get(app, v1alpha1.ReadyCondition)
	why, wait := v1alpha1.ProgressingReason, patience
	switch {
	case began && newest.Result == v1alpha1.DeliverySucceeded, !began && declaredBy(app) != c.key:
		return 0
	case began && newest.Result == v1alpha1.DeliveryFailed:
		why, wait = newest.Reason, 0
	case began:
	case app.GetSchedule().Suspend || conditions.IsTrue(app, v1alpha1.SuspendedCondition):
		why, wait = "suspended", 0
	case ready != nil && app.Status.ObservedGeneration == app.Generation && conditions.IsFalse(app, v1alpha1.ReadyCondition):
		why, wait = ready.Reason, 0
	case newest.Generation == app.Generation && newest.Result == v1alpha1.DeliverySucceeded:
		if wait = unmoved; now.Sub(c.ended) >= wait {
			return 0 // The commit changed nothing that it delivers.
		}
	}
	c.missing = append(c.missing, app.Name+" ("+why+")")
	return max(0, wait-now.Sub(c.ended))
}

// declaredBy returns the hash of the commit that an app was declared by; "" if it has none.
func declaredBy(app *v1alpha1.App) string {
	return v1alpha1.CommitOf(app.Annotations[v1alpha1.RevisionAnnotation])
}

// note returns the event.
func (c *commit) note() step.Note {
	names := map[string]string{}
	for _, d := range slices.Backward(c.delivered) { // The newest delivery of an app comes first in its status.
		names[d.app.Name] = d.app.Name + c.details(d.record)
	}
	all := len(names) + len(c.missing)
	count := fmt.Sprintf("%d of %s", len(names), few.Count(all, "app"))
	if len(c.missing) == 0 {
		count = few.Count(all, "app")
	}
	text := "Delivered " + brief(short(c.key))
	if c.author != "" {
		text += " by " + brief(c.author)
	}
	if took := c.ended.Sub(c.began); took > 0 {
		text += " within " + took.String()
	}
	text += ": " + count + ": " + list(names)
	if len(c.missing) > 0 {
		slices.Sort(c.missing)
		text += "; not delivered: " + strings.Join(few.Of(c.missing, maxNamed), ", ")
	}
	return step.Note{Reason: v1alpha1.DeliveredReason, Event: corev1.EventTypeNormal, Message: text}
}

// details says what an app delivered besides the commit, such as " (1.2.3, release 4)": the version of its chart and its release.
func (c *commit) details(d *v1alpha1.DeliveryRecord) string {
	var all []string
	if d.Image != "" {
		all = append(all, "image "+brief(few.ShortRevision(d.Image)))
	} else if !strings.Contains(d.Revision, c.key) {
		all = append(all, brief(few.ShortRevision(d.Revision)))
	}
	if d.Release > 0 {
		all = append(all, fmt.Sprintf("release %d", d.Release))
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// short shortens a whole hash to eight digits, as few.ShortRevision does.
func short(key string) string {
	return strings.TrimPrefix(few.ShortRevision("sha1:"+key), "sha1:")
}

func brief(text string) string { return few.Cut(text, maxDetail) }

func list(names map[string]string) string {
	var all []string
	for _, name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(few.Of(all, maxNamed), ", ")
}
