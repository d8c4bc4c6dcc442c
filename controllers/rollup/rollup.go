// Package rollup counts how many of the apps of a Project or Tenant are ready, and names one that is not. It reads the informer's cache only.
package rollup

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
)

// Pause is how long changes of apps are collected before a Project or Tenant counts its apps again. So a Project is written at most once in
// that time, however many apps change.
const Pause = 2 * time.Second

// maxQuoted is how many characters of an app's message the condition quotes.
const maxQuoted = 200

// Apps are the apps of a Project or Tenant.
type Apps struct {
	All, Ready int
	// worst is the first app that is not ready: one whose Ready is False before one that is only in progress, then by name.
	worst *unready
}

// unready is an app that is not ready.
type unready struct {
	name, reason, message string
	failed                bool
}

// Count adds the apps of a namespace. prefix stands before their names, such as "shop/".
func (a *Apps) Count(ctx context.Context, reader client.Reader, namespace, prefix string) error {
	apps := &v1alpha1.AppList{}
	if err := reader.List(ctx, apps, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the apps of %s: %w", namespace, err)
	}
	for i := range apps.Items {
		a.add(&apps.Items[i], prefix)
	}
	return nil
}

func (a *Apps) add(app *v1alpha1.App, prefix string) {
	a.All++
	found := unreadyOf(app)
	if found == nil {
		a.Ready++
		return
	}
	found.name = prefix + app.Name
	if a.worst == nil || found.worseThan(a.worst) {
		a.worst = found
	}
}

// unreadyOf says why an app is not ready; nil if it is. The message of an app in progress is left out, because it changes often.
func unreadyOf(app *v1alpha1.App) *unready {
	ready := conditions.Get(app, v1alpha1.ReadyCondition)
	switch {
	case ready == nil:
		return &unready{reason: v1alpha1.ProgressingReason}
	case ready.Status == metav1.ConditionTrue:
		return nil
	case ready.Status == metav1.ConditionUnknown:
		return &unready{reason: ready.Reason}
	}
	return &unready{reason: ready.Reason, message: brief(ready.Message), failed: true}
}

func (u *unready) worseThan(other *unready) bool {
	if u.failed != other.failed {
		return u.failed
	}
	return cmp.Less(u.name, other.name)
}

func (u *unready) String() string {
	text := u.name + ": " + u.reason
	if u.message != "" {
		text += ": " + u.message
	}
	return text
}

// brief returns the first line of a message, at most maxQuoted characters of it.
func brief(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return few.Cut(line, maxQuoted)
}

// Record writes the numbers into a status.
func (a *Apps) Record(counts *v1alpha1.AppCounts) {
	*counts = v1alpha1.AppCounts{Apps: a.All, ReadyApps: a.Ready, AppsReady: fmt.Sprintf("%d/%d", a.Ready, a.All)}
}

// Differ reports whether a status has other numbers.
func (a *Apps) Differ(counts v1alpha1.AppCounts) bool {
	was := counts
	a.Record(&counts)
	return counts != was
}

// Note returns the condition AppsReady. Without apps there is no condition, so that `kubectl wait` for a new project waits for its apps.
func (a *Apps) Note() step.Note {
	note := step.Note{Condition: v1alpha1.AppsReadyCondition}
	switch {
	case a.All == 0:
		return note
	case a.worst == nil:
		note.Status, note.Reason = metav1.ConditionTrue, v1alpha1.SucceededReason
		return note
	case a.worst.failed:
		note.Status, note.Reason = metav1.ConditionFalse, v1alpha1.AppsNotReadyReason
	default:
		note.Status, note.Reason = metav1.ConditionUnknown, v1alpha1.ProgressingReason
	}
	note.Message = fmt.Sprintf("%d of %s not ready; %s", a.All-a.Ready, theApps(a.All), a.worst)
	return note
}

func theApps(n int) string {
	if n == 1 {
		return "1 app is"
	}
	return few.Count(n, "app") + " are"
}
