package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/notice"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

const (
	// hold is how long an app has to be not ready before a message is sent: most short failures end by themselves.
	hold = 10 * time.Second
	// maxMessage is how many characters of a message are sent.
	maxMessage = 500
)

// Reconcile gives the queue what the receivers of a Tenant do not know yet. It reads caches only.
func (n *Notifier) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	tenant := &v1alpha1.Tenant{}
	err := n.Reader.Get(ctx, req.NamespacedName, tenant)
	switch {
	case apierrors.IsNotFound(err), err == nil && (len(tenant.Spec.Notifications) == 0 || !tenant.DeletionTimestamp.IsZero()):
		n.forget(req.Name)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading tenant %s: %w", req.Name, err)
	}
	now := n.Clock.Now()
	var again time.Duration
	states, err := n.states(ctx, tenant.Name, now, &again)
	if err != nil {
		return ctrl.Result{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.observe(tenant, states)
	for name, r := range a.receivers {
		news := r.sent.News(states, r.filter(), now)
		again = backoff.Sooner(again, news.Again)
		if len(news.Notices) > 0 && !n.ask(tenant.Name, a, name) {
			again = backoff.Sooner(again, fullPause)
		}
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// ask gives the queue a message to a receiver. Its content is what is new when it is sent.
func (n *Notifier) ask(tenant string, a *tenantRecord, name string) bool {
	return n.Queue.Put(gitreport.Message{
		Key: receiverKey(a.uid, name), Kind: gitreport.Notification, Host: "the receiver " + name, Tenant: tenant,
		Send: func(ctx context.Context) error { return n.send(ctx, tenant, name) },
		Done: func(err error) { n.done(tenant, name, err) },
	})
}

// states returns the states of a tenant's apps and of its repository.
func (n *Notifier) states(ctx context.Context, tenant string, now time.Time, again *time.Duration) (notice.States, error) {
	states := notice.States{}
	repository := &v1alpha1.Repository{}
	err := n.Reader.Get(ctx, client.ObjectKey{Name: tenant}, repository)
	switch {
	case err == nil:
		states[""] = stateOf(repository, repository.Status.LastAppliedRevision, now, again)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading repository %s: %w", tenant, err)
	}
	projects := &v1alpha1.ProjectList{}
	if err := n.Reader.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(tenant)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the projects of %s: %w", tenant, err)
	}
	for i := range projects.Items {
		project := projects.Items[i].Name
		apps := &v1alpha1.AppList{}
		if err := n.Reader.List(ctx, apps, client.InNamespace(v1alpha1.ProjectNamespace(tenant, project)), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the apps of %s/%s: %w", tenant, project, err)
		}
		for j := range apps.Items {
			if app := &apps.Items[j]; app.DeletionTimestamp == nil {
				states[project+"/"+app.Name] = stateOfApp(app, now, again)
			}
		}
	}
	return states, nil
}

// stateOf returns the state by the condition Ready.
func stateOf(o step.Object, revision string, now time.Time, again *time.Duration) notice.State {
	ready := conditions.Get(o, v1alpha1.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionUnknown || o.GetSchedule().Suspend || conditions.IsTrue(o, v1alpha1.SuspendedCondition) {
		return notice.State{Unsettled: true}
	}
	s := notice.State{Failed: ready.Status == metav1.ConditionFalse, Since: ready.LastTransitionTime.Time, Revision: few.ShortRevision(revision)}
	if !s.Failed {
		return s
	}
	s.Reason, s.Message = ready.Reason, brief(ready.Message)
	if left := s.Since.Add(hold).Sub(now); left > 0 {
		s.Unsettled = true
		*again = backoff.Sooner(*again, left)
	}
	return s
}

func stateOfApp(app *v1alpha1.App, now time.Time, again *time.Duration) notice.State {
	s := stateOf(app, app.Status.LastAppliedRevision, now, again)
	for i := range app.Status.Deliveries {
		d := &app.Status.Deliveries[i]
		if d.Result != v1alpha1.DeliverySucceeded {
			continue
		}
		s.Delivery = fmt.Sprint(d.StartedAt.Unix(), d.Generation, d.Revision, d.Commit, d.Image, d.Release)
		s.Delivered = few.ShortRevision(d.Revision)
		if d.Image != "" {
			s.Delivered = few.ShortRevision(d.Image)
		}
		if d.Author != "" {
			s.Delivered += " by " + brief(d.Author)
		}
		return s
	}
	return s
}

// brief is the first line of a message, at most maxMessage characters of it. Messages of conditions hold no secrets.
func brief(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return few.Cut(line, maxMessage)
}
