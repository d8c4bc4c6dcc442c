package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/host"
)

const (
	// settle is how long an applied commit is looked at before it counts as healthy, because the cache may not show all of its objects yet.
	settle = 3 * time.Second
	// outdated is how long a failure from before the commit does not count against it: the object has not got to the commit yet.
	outdated = 15 * time.Second
)

// Commit is what is known of a commit.
type Commit struct {
	// Hash of the commit.
	Hash string
	// Since is when the commit was first seen, and Now the present.
	Since, Now time.Time
	// Apps are the Apps whose folders the commit changed last. Homes are the Tenants and Projects of the repository that are not healthy:
	// which commit changed them is not recorded, so they count for the newest.
	Apps, Homes []Object
}

// Verdict is the status of a commit. Success and Canceled are final: what happens to an app after its delivery does not change the status of its commit. Again
// is when to look again although nothing changes; 0 if that is not needed.
type Verdict struct {
	State       host.State
	Description string
	Again       time.Duration
}

// Newest judges the newest commit of a repository that was accepted. What is wrong with its files comes first.
func Newest(repository *v1alpha1.Repository, c Commit) Verdict {
	status := &repository.Status
	if status.LastAppliedRevision == status.LastAttemptedRevision {
		return c.objects()
	}
	if valid := conditions.Get(repository, v1alpha1.TreeValidCondition); valid != nil && valid.Status == metav1.ConditionFalse {
		return Verdict{State: host.Failure, Description: problem(valid, status.Problems)}
	}
	if synced := conditions.Get(repository, v1alpha1.SyncedCondition); synced != nil && synced.Status == metav1.ConditionFalse {
		return Verdict{State: host.Failure, Description: firstLine(synced.Message)}
	}
	return Verdict{State: host.Pending, Description: "kubeop applies it"}
}

// Held judges a commit that is not accepted.
func Held(repository *v1alpha1.Repository) Verdict {
	v := Verdict{State: host.Failure, Description: "held: nothing of it is applied"}
	accepted := conditions.Get(repository, v1alpha1.AcceptedCondition)
	freezes := accepted != nil && accepted.Reason == v1alpha1.FrozenReason && accepted.Status == metav1.ConditionUnknown
	if freezes || accepted != nil && accepted.Status == metav1.ConditionFalse {
		v.Description = accepted.Reason + ": " + firstLine(accepted.Message)
	}
	if freezes { // It ends by itself.
		v.State = host.Pending
	}
	return v
}

// Older judges a commit that was followed by another while it was in progress. newest is the hash of the newest one.
func Older(c Commit, newest string) Verdict {
	if len(c.Apps) == 0 {
		return Verdict{State: host.Canceled, Description: "replaced by " + newest[:min(8, len(newest))] + " before it was healthy"}
	}
	return c.objects()
}

// objects judges a commit by its objects.
func (c Commit) objects() Verdict {
	var worst *Object
	count := map[health]int{}
	objects := slices.Concat(c.Homes, c.Apps)
	for i := range objects {
		o := &objects[i]
		h := o.health
		if h == failed && o.failedAt.Before(c.Since.Truncate(time.Second)) && // Conditions have whole seconds.
			c.Now.Sub(c.Since) < outdated {
			h = progressing
		}
		count[h]++
		if h != healthy && h != suspended && (worst == nil || h > worst.judged || h == worst.judged && o.Place < worst.Place) {
			o.judged = h
			worst = o
		}
	}
	switch {
	case worst == nil && c.Now.Sub(c.Since) < settle:
		return Verdict{State: host.Pending, Description: "kubeop applies it", Again: settle - c.Now.Sub(c.Since)}
	case worst == nil:
		return Verdict{State: host.Success, Description: "applied" + counted(count)}
	case worst.judged == failed:
		return Verdict{State: host.Failure, Description: worst.Place + ": " + worst.why}
	}
	v := Verdict{State: host.Pending, Description: fmt.Sprintf("waits for %s%s", worst.Place, more(count[progressing]-1))}
	if worst.health == failed {
		v.Again = outdated - c.Now.Sub(c.Since)
	}
	return v
}

// health is how an object is; the larger, the worse.
type health int

const (
	healthy health = iota
	suspended
	progressing
	failed
)

// Object is a Tenant, Project or App.
type Object struct {
	// Place is its file.
	Place string

	health   health
	why      string
	failedAt time.Time
	// judged is its health for the commit that is judged.
	judged health
}

// kind has what the kinds have in common.
type kind interface {
	conditions.Getter
	metav1.Object
	GetSchedule() *v1alpha1.Schedule
}

// Healthy reports whether the object is as declared, or suspended.
func (o Object) Healthy() bool { return o.health <= suspended }

// ObjectOf returns what is known of an object.
func ObjectOf(o kind) Object {
	object := Object{Place: placeOf(o), health: progressing}
	ready := conditions.Get(o, v1alpha1.ReadyCondition)
	app, isApp := o.(*v1alpha1.App)
	switch {
	case o.GetSchedule().Suspend || conditions.IsTrue(o, v1alpha1.SuspendedCondition):
		object.health = suspended
	case ready == nil || ready.ObservedGeneration != o.GetGeneration():
	case ready.Status == metav1.ConditionFalse:
		object.health, object.why, object.failedAt = failed, cmp.Or(ready.Reason, "failed")+": "+firstLine(ready.Message), ready.LastTransitionTime.Time
	case ready.Status != metav1.ConditionTrue || isApp && app.Status.ObservedTree != app.Annotations[v1alpha1.TreeAnnotation]:
	default:
		object.health = healthy
	}
	return object
}

// placeOf returns the file of an object in its repository.
func placeOf(o kind) string {
	file := "tenant.yaml"
	switch o.(type) {
	case *v1alpha1.Project:
		file = "project.yaml"
	case *v1alpha1.App:
		file = "app.yaml"
	}
	return path.Join(o.GetAnnotations()[v1alpha1.FolderAnnotation], file)
}

// problem is the first problem of the commit's files, or what is held.
func problem(valid *metav1.Condition, problems []string) string {
	if valid.Reason != v1alpha1.InvalidTreeReason || len(problems) == 0 {
		return valid.Reason + ": " + firstLine(valid.Message)
	}
	return firstLine(problems[0]) + more(len(problems)-1)
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// counted says how many apps are healthy, and how many suspended.
func counted(count map[health]int) string {
	n, paused := count[healthy], count[suspended]
	text := ""
	switch {
	case n == 1:
		text = ": 1 app is healthy"
	case n > 1:
		text = fmt.Sprintf(": %d apps are healthy", n)
	}
	if paused > 0 {
		text += fmt.Sprintf(", %d suspended", paused)
	}
	return text
}

// firstLine is the first line of a message. Messages of conditions hold no secrets.
func firstLine(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return line
}
