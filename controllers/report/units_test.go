package report

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/notice"
	gitreport "github.com/kubeop/kubeop/gitops/report"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

var acme = reconcile.Request{NamespacedName: types.NamespacedName{Name: "acme"}}

// TestNothingIsReportedFromWhatCannotBeRead: an app that cannot be read has neither recovered nor gone.
func TestNothingIsReportedFromWhatCannotBeRead(t *testing.T) {
	h := newHall(t, "slack")
	h.app(metav1.ConditionTrue, "")
	notifier := steptest.EachRequest(t, func(f *steptest.Failing) error {
		h.Reader = f.Client(h.kube.(client.WithWatch))
		_, err := h.Reconcile(t.Context(), acme)
		return err
	})
	b := newFixture(t)
	b.repository(attempted(c1, false))
	reporter := steptest.EachRequest(t, func(f *steptest.Failing) error {
		b.Reader = f.Client(b.kube.(client.WithWatch))
		_, err := b.Reconcile(t.Context(), acme)
		return err
	})
	if notifier < 4 || reporter < 4 {
		t.Errorf("%d and %d requests, want 4 at least", notifier, reporter)
	}
}

// TestATenantIsWokenWhenWhatItSaysOfItsReceiversChanges, and by the first answer after a start, which confirms its status.
func TestATenantIsWokenWhenWhatItSaysOfItsReceiversChanges(t *testing.T) {
	h := newHall(t, "slack")
	woken := 0
	h.Wake = func(name types.NamespacedName) {
		if name.Name != "acme" {
			t.Errorf("woken is %s", name)
		}
		woken++
	}
	if _, err := h.Reconcile(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	refused, down := failure.New(failure.ErrInvalid, "no such webhook"), errors.New("connection refused")
	for i, c := range []struct {
		err  error
		want int
	}{{nil, 1}, {nil, 1}, {refused, 2}, {refused, 2}, {nil, 3}, {down, 3}, {down, 3}, {down, 4}, {nil, 5}, {down, 5}, {down, 5}} {
		if h.done("acme", "slack", c.err); woken != c.want {
			t.Errorf("after answer %d it was woken %d times, want %d", i, woken, c.want)
		}
	}
	h.done("acme", "email", refused)
	h.done("beta", "slack", refused)
	if woken != 5 {
		t.Errorf("an answer to a receiver that is gone wakes a tenant: %d", woken)
	}
}

func TestAReceiverWithoutAUsableSecretIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string][]byte
		err  error
		want string
	}{
		"it cannot be read": {nil, errors.New("no Secret slack"), "no Secret slack"},
		"no address":        {map[string][]byte{"token": []byte("x")}, nil, "the Secret slack has no key address: add the URL of the webhook"},
		"half a login":      {map[string][]byte{"address": []byte("https://127.0.0.1:1"), "ca.crt": []byte("no certificate")}, nil, "the Secret slack: "},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t, "slack")
			h.Secret = func(context.Context, string) (map[string][]byte, error) { return c.data, c.err }
			if _, err := h.Reconcile(t.Context(), acme); err != nil {
				t.Fatal(err)
			}
			if err := h.send(t.Context(), "acme", "slack"); err != nil {
				t.Errorf("there is no news: %v", err)
			}
			h.tenants["acme"].states = notice.States{"shop/web": {Failed: true, Since: h.clock.Now(), Reason: "Unhealthy"}}
			if err := h.send(t.Context(), "acme", "slack"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err := h.send(t.Context(), "beta", "slack"); err != nil {
				t.Errorf("a tenant that is gone: %v", err)
			}
		})
	}
	if len(h404(t).received) != 0 {
		t.Error("something was sent")
	}
}

// h404 has no tenant.
func h404(t *testing.T) *hall {
	h := newHall(t)
	if _, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "none"}}); err != nil {
		t.Error(err)
	}
	return h
}

// TestAReceiverThatLeavesTheSpecIsDropped, and one that changes its type begins anew.
func TestAReceiverThatLeavesTheSpecIsDropped(t *testing.T) {
	h := newHall(t, "slack", "generic")
	tenant := &v1alpha1.Tenant{}
	if err := h.kube.Get(t.Context(), client.ObjectKey{Name: "acme"}, tenant); err != nil {
		t.Fatal(err)
	}
	failed := notice.States{"shop/web": {Failed: true, Since: h.clock.Now(), Reason: "Unhealthy"}}
	kept := h.observe(tenant, failed)
	if _, news := h.newsFor("acme", "slack"); len(news.Notices) != 0 {
		t.Errorf("what was so at the start is news: %v", news.Notices)
	}
	tenant.Spec.Notifications = []v1alpha1.Notification{tenant.Spec.Notifications[0], receiving("matrix")}
	if a := h.observe(tenant, failed); a != kept || len(a.receivers) != 2 || a.receivers["generic"] != nil {
		t.Errorf("the receivers are %v", a.receivers)
	}
	if _, news := h.newsFor("acme", "matrix"); len(news.Notices) != 1 {
		t.Errorf("a new receiver gets %v, want the failure", news.Notices)
	}
	tenant.Spec.Notifications[0].Type = "generic"
	h.observe(tenant, failed)
	if _, news := h.newsFor("acme", "slack"); len(news.Notices) != 1 {
		t.Errorf("a receiver of another type gets %v, want the failure", news.Notices)
	}
	tenant.UID = "u2"
	if a := h.observe(tenant, failed); a == kept || a.uid != "u2" {
		t.Error("another tenant of the name has the record of the earlier one")
	}
}

func TestTheConditionsOfAnAppGiveItsStateForReports(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ready := func(status metav1.ConditionStatus, since time.Duration) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: status, Reason: "R", Message: "m\nmore", LastTransitionTime: metav1.NewTime(now.Add(-since))}}
	}
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		deliveries []v1alpha1.DeliveryRecord
		suspend    bool
		want       notice.State
		again      time.Duration
		delivered  string
	}{
		"unknown":            {conditions: ready(metav1.ConditionUnknown, time.Hour), want: notice.State{Unsettled: true}},
		"no condition":       {want: notice.State{Unsettled: true}},
		"suspended":          {conditions: ready(metav1.ConditionFalse, time.Hour), suspend: true, want: notice.State{Unsettled: true}},
		"ready":              {conditions: ready(metav1.ConditionTrue, time.Hour), want: notice.State{Since: now.Add(-time.Hour)}},
		"failed":             {conditions: ready(metav1.ConditionFalse, time.Hour), want: notice.State{Failed: true, Since: now.Add(-time.Hour), Reason: "R", Message: "m"}},
		"failed at last":     {conditions: ready(metav1.ConditionFalse, hold), want: notice.State{Failed: true, Since: now.Add(-hold), Reason: "R", Message: "m"}},
		"failed just now":    {conditions: ready(metav1.ConditionFalse, hold-time.Second), want: notice.State{Failed: true, Unsettled: true, Since: now.Add(time.Second - hold), Reason: "R", Message: "m"}, again: time.Second},
		"no delivery so far": {conditions: ready(metav1.ConditionTrue, 0), deliveries: []v1alpha1.DeliveryRecord{{Revision: "main@sha1:9", Result: v1alpha1.DeliveryFailed}}, want: notice.State{Since: now}},
		"delivered": {
			conditions: ready(metav1.ConditionTrue, 0), want: notice.State{Since: now}, delivered: "main@sha1:1 by ann",
			deliveries: []v1alpha1.DeliveryRecord{{Revision: "main@sha1:2", Result: v1alpha1.DeliveryFailed}, {Revision: "main@sha1:1", Author: "ann", Result: v1alpha1.DeliverySucceeded}, {Revision: "main@sha1:0", Result: v1alpha1.DeliverySucceeded}},
		},
		"an image was delivered": {
			conditions: ready(metav1.ConditionTrue, 0), want: notice.State{Since: now}, delivered: "r.example/web:v1",
			deliveries: []v1alpha1.DeliveryRecord{{Revision: "main@sha1:1", Image: "r.example/web:v1", Result: v1alpha1.DeliverySucceeded}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{}
			app.Spec.Suspend, app.Status.LastAppliedRevision = c.suspend, "main@sha1:1111111111222222"
			if !c.want.Since.IsZero() {
				c.want.Revision = few.ShortRevision(app.Status.LastAppliedRevision)
			}
			app.Status.Conditions, app.Status.Deliveries = c.conditions, c.deliveries
			var again time.Duration
			got := stateOfApp(app, now, &again)
			if got.Delivered != c.delivered || (got.Delivery != "") != (c.delivered != "") {
				t.Errorf("delivered %q, %q, want %q", got.Delivered, got.Delivery, c.delivered)
			}
			got.Delivery, got.Delivered = "", ""
			if got.Since.Equal(c.want.Since) {
				got.Since = c.want.Since
			}
			if got != c.want || again != c.again {
				t.Errorf("got %+v again after %s, want %+v after %s", got, again, c.want, c.again)
			}
		})
	}
}

// TestObjectsThatAreNotHealthyKeepTheNewestCommitFromSuccess, unless they are being deleted.
func TestObjectsThatAreNotHealthyKeepTheNewestCommitFromSuccess(t *testing.T) {
	b := newFixture(t)
	labels := map[string]string{v1alpha1.RepositoryLabel: "acme"}
	conditions := []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "R", Message: "no quota"}}
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop", Labels: labels}}
	leaving := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "lab", Labels: labels, Finalizers: []string{v1alpha1.Finalizer}}}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", Labels: labels}}
	for _, o := range []client.Object{project, leaving, tenant} {
		switch o := o.(type) {
		case *v1alpha1.Project:
			o.Status.Conditions = conditions
		case *v1alpha1.Tenant:
			o.Status.Conditions = conditions
		}
		if err := b.kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.kube.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	d, err := b.objects(t.Context(), "acme")
	if err != nil || len(d.homes) != 2 {
		t.Errorf("not healthy are %v, %v", d, err)
	}
}

// TestARepositoryThatReportsNothingAnyMoreIsForgotten with what was sent, so that it begins anew.
func TestARepositoryThatReportsNothingAnyMoreIsForgotten(t *testing.T) {
	b := newFixture(t)
	b.repository(attempted(c1, false))
	b.look(0, "11 pending: kubeop applies it")
	if len(b.records["acme"].asked) != 0 || !b.reports("acme") {
		t.Errorf("asked are %v", b.records["acme"].asked)
	}
	b.repository(func(r *v1alpha1.Repository) { r.Spec.CommitStatus = nil })
	if b.look(time.Second); b.reports("acme") {
		t.Error("it still reports")
	}
	b.done("acme", "u1", v1alpha1.ReportedStatus{Commit: c1}, nil)
	if b.woken != 0 {
		t.Error("an answer to a repository that is forgotten wakes it")
	}
}

// TestOnlyWhatIsKnownIsWoken: other tenants and repositories have no receivers, and report nothing.
func TestOnlyWhatIsKnownIsWoken(t *testing.T) {
	for name, want := range map[string]string{"acme": "acme", "beta": "", "": ""} {
		if got := known(name, func(name string) bool { return name != "beta" }); got != want {
			t.Errorf("%q wakes %q, want %q", name, got, want)
		}
	}
}

// TestARestartIsNoNewsAboutAReceiver: the condition stays until a receiver has answered.
func TestARestartIsNoNewsAboutAReceiver(t *testing.T) {
	h := newHall(t, "slack")
	tenant := &v1alpha1.Tenant{}
	if err := h.kube.Get(t.Context(), client.ObjectKey{Name: "acme"}, tenant); err != nil {
		t.Fatal(err)
	}
	want := step.Stays(v1alpha1.NotificationFailedCondition)
	if note := h.Note(tenant); note != want {
		t.Errorf("after a restart, the condition is %+v", note)
	}
	h.mu.Lock()
	h.observe(tenant, notice.States{})
	h.mu.Unlock()
	if note := h.Note(tenant); note != want {
		t.Errorf("before a receiver has answered, the condition is %+v", note)
	}
	if h.done("acme", "slack", nil); h.Note(tenant) != (step.Note{Condition: v1alpha1.NotificationFailedCondition}) {
		t.Errorf("after the answer, the condition is %+v", h.Note(tenant))
	}
}

// TestPreviewsAndObjectsThatGoSayNothingOfACommit of the Repository.
func TestPreviewsAndObjectsThatGoSayNothingOfACommit(t *testing.T) {
	b := newFixture(t)
	unhealthy := func(name string, change func(*v1alpha1.Project)) {
		project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{
			Namespace: "kubeop-acme", Name: name, Labels: map[string]string{v1alpha1.RepositoryLabel: "acme"}, Finalizers: []string{v1alpha1.Finalizer},
		}}
		project.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "R", Message: name}}
		change(project)
		if err := b.kube.Create(t.Context(), project); err != nil {
			t.Fatal(err)
		}
	}
	unhealthy("shop", func(*v1alpha1.Project) {})
	unhealthy("fine", func(p *v1alpha1.Project) { p.Status.Conditions[0].Status = metav1.ConditionTrue })
	unhealthy("preview", func(p *v1alpha1.Project) { p.Annotations = map[string]string{v1alpha1.BranchAnnotation: "feature"} })
	unhealthy("leaving", func(*v1alpha1.Project) {})
	if err := b.kube.Delete(t.Context(), &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "leaving"}}); err != nil {
		t.Fatal(err)
	}
	found, err := b.objects(t.Context(), "acme")
	if err != nil || len(found.homes) != 1 || !strings.Contains(fmt.Sprint(found.homes), "shop") {
		t.Errorf("unhealthy are %+v, want the project shop: %v", found.homes, err)
	}
}

// TestOnlyAppsOfACommitThatStaySayHowItIs: not one that is deleted, nor one of no commit.
func TestOnlyAppsOfACommitThatStaySayHowItIs(t *testing.T) {
	b := newFixture(t)
	for name, commit := range map[string]string{"stays": c1, "leaving": c1, "of-no-commit": "", "preview": c1} {
		app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{
			Namespace: "kubeop-acme-shop", Name: name, Labels: map[string]string{v1alpha1.RepositoryLabel: "acme"}, Finalizers: []string{v1alpha1.Finalizer},
			Annotations: map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:" + commit},
		}}
		if name == "preview" {
			app.Annotations[v1alpha1.BranchAnnotation] = "feature"
		}
		if err := b.kube.Create(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		if name != "leaving" {
			continue
		}
		if err := b.kube.Delete(t.Context(), app); err != nil {
			t.Fatal(err)
		}
	}
	found, err := b.objects(t.Context(), "acme")
	if err != nil || len(found.apps) != 1 || len(found.apps[c1]) != 1 {
		t.Errorf("the apps are %+v: %v", found.apps, err)
	}
}

// TestStatusesForAnEarlierPlaceAreDropped: otherwise the place that the spec names now would get them.
func TestStatusesForAnEarlierPlaceAreDropped(t *testing.T) {
	b := newFixture(t)
	b.repository(attempted(c1, false))
	b.look(0, "11 pending: kubeop applies it")
	b.Queue = gitreport.NewQueue(clocktesting.NewFakeClock(time.Now()), nil)
	for i := 0; b.Queue.Put(gitreport.Message{Key: keyOf(b.records["acme"].uid, strconv.Itoa(i)), Kind: gitreport.CommitStatus, Tenant: budget.OfRepository("acme")}); i++ {
	}
	b.repository(func(r *v1alpha1.Repository) { r.Spec.CommitStatus.Context = "kubeop-staging/acme" })
	if got, err := b.Reconcile(t.Context(), acme); err != nil || got.RequeueAfter == fullPause {
		t.Errorf("the queue has no room: again after %s: %v", got.RequeueAfter, err)
	}
}

// TestStatusesOfCommitsThatNobodyFollowsAreForgotten: a repository may have any number of commits.
func TestStatusesOfCommitsThatNobodyFollowsAreForgotten(t *testing.T) {
	rec := &record{since: map[string]time.Time{}, asked: map[string]v1alpha1.ReportedStatus{}, accepted: []v1alpha1.ReportedStatus{{Commit: c1, State: "success"}, {Commit: c2, State: "success"}}}
	if rec.keep(c2, "", time.Now()); len(rec.accepted) != 1 || rec.accepted[0].Commit != c2 {
		t.Errorf("kept are %v", rec.accepted)
	}
}

func TestOnlyNamesThatMatterAreWoken(t *testing.T) {
	is := func(name string) bool { return name != "other" }
	for name, want := range map[string]string{"acme": "acme", "other": "", "": ""} {
		if got := known(name, is); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// full is a queue that has no room for another message of a tenant, and sends none.
func full(tenant string) *gitreport.Queue {
	queue := gitreport.NewQueue(clocktesting.NewFakeClock(time.Now()), nil)
	for i := 0; queue.Put(gitreport.Message{Key: strconv.Itoa(i), Kind: gitreport.Notification, Tenant: tenant}); i++ {
	}
	return queue
}

// TestAFullQueueGetsItsMessagesLater: nothing else wakes the tenant or the repository again.
func TestAFullQueueGetsItsMessagesLater(t *testing.T) {
	h, b := newHall(t, "slack"), newFixture(t)
	h.app(metav1.ConditionTrue, "")
	h.look(0)
	h.app(metav1.ConditionFalse, "no image")
	h.clock.Step(time.Minute)
	b.repository(attempted(c1, false))
	h.Queue, b.Queue = full("acme"), full(budget.OfRepository("acme"))
	for name, r := range map[string]reconcile.Reconciler{"the receivers of a tenant": h.Notifier, "the commits of a repository": b.Reporter} {
		if got, err := r.Reconcile(t.Context(), acme); err != nil || got.RequeueAfter != fullPause {
			t.Errorf("%s: again after %s, want %s (%v)", name, got.RequeueAfter, fullPause, err)
		}
	}
	if len(b.records["acme"].asked) != 0 {
		t.Errorf("asked are %v", b.records["acme"].asked)
	}
}

// TestTheRepositoryOfATenantHasAState like an app.
func TestTheRepositoryOfATenantHasAState(t *testing.T) {
	h := newHall(t, "slack")
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	repository.Status.LastAppliedRevision = "main@sha1:" + c1
	repository.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "SourceNotFound", Message: "no branch", LastTransitionTime: metav1.NewTime(h.clock.Now())}}
	if err := h.kube.Create(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	var again time.Duration
	states, err := h.states(t.Context(), "acme", h.clock.Now().Add(hold), &again)
	if got := states[""]; err != nil || !got.Failed || got.Unsettled || got.Reason != "SourceNotFound" || got.Message != "no branch" || got.Revision != few.ShortRevision(repository.Status.LastAppliedRevision) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAReceiverGetsWhatItsEntrySelects(t *testing.T) {
	r := &receiver{spec: v1alpha1.Notification{Type: "slack", EventSeverity: "error", Apps: []string{"shop/web"}}}
	if diff := cmp.Diff(notice.Filter{Severity: "error", Apps: []string{"shop/web"}}, r.filter()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.spec.Type = "alertmanager"
	if !r.filter().Alerts {
		t.Error("an Alertmanager gets no alerts")
	}
}

func TestAStatusThatCannotBeSentIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		auth error
		kind string
		want string
	}{
		"the Secret cannot be read": {auth: errors.New("no Secret git"), kind: "gitea", want: "no Secret git"},
		"an unknown kind of host":   {kind: "none", want: "spec.commitStatus: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.Auth = func(context.Context, *v1alpha1.Repository) (transport.Auth, error) { return transport.Auth{}, c.auth }
			repository := b.repository(func(r *v1alpha1.Repository) { r.Spec.CommitStatus.Type = c.kind })
			if err := b.send(t.Context(), repository, v1alpha1.ReportedStatus{Commit: c1, State: "success"}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestAStatusThatFailedIsSentAtOnceWithAnotherSecret: the Secret is what most often made it fail.
func TestAStatusThatFailedIsSentAtOnceWithAnotherSecret(t *testing.T) {
	b := newFixture(t)
	passes := clocktesting.NewFakeClock(time.Now())
	b.Queue = gitreport.NewQueue(passes, nil)
	r := b.repository(attempted(c1, false))
	b.StatusOf(r, "v1")
	b.answer = http.StatusUnauthorized
	if _, err := b.Reconcile(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	sent := func(want int) {
		t.Helper()
		passes.Step(time.Second) // Less than the pause after a failure.
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			b.mu.Lock()
			got := b.woken
			b.mu.Unlock()
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d attempts, want %d", got, want)
			}
		}
	}
	sent(1)
	b.StatusOf(r, "v1")
	if b.StatusOf(r, "v2"); !passes.HasWaiters() {
		t.Error("nothing is scheduled")
	}
	sent(2)
}

// TestAChangedSecretSendsFailedMessagesAtOnce: an administrator has corrected the Secret.
func TestAChangedSecretSendsFailedMessagesAtOnce(t *testing.T) {
	h := newHall(t, "slack")
	passes := clocktesting.NewFakeClock(time.Now())
	h.Queue = gitreport.NewQueue(passes, nil)
	attempts := make(chan struct{}, 10)
	h.Secret = func(context.Context, string) (map[string][]byte, error) {
		attempts <- struct{}{}
		return nil, errors.New("no Secret slack")
	}
	if _, err := h.Reconcile(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	h.app(metav1.ConditionFalse, "broken")
	h.clock.Step(time.Minute)
	if _, err := h.Reconcile(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	attempted := func(what string) {
		t.Helper()
		passes.Step(time.Second) // Less than the pause after a failure.
		select {
		case <-attempts:
		case <-time.After(10 * time.Second):
			t.Fatal(what + ": nothing is sent")
		}
		for deadline := time.Now().Add(10 * time.Second); !passes.HasWaiters(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what + ": no attempt follows the failure")
			}
		}
	}
	attempted("the news")
	h.hurry(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
	passes.Step(time.Second)
	select {
	case <-attempts:
		t.Fatal("the Secret of another receiver hurried it")
	case <-time.After(100 * time.Millisecond):
	}
	h.hurry(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "slack"}})
	attempted("the Secret changed")
}
