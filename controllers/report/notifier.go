package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	"github.com/kubeop/kubeop/gitops/notice"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

// Notifier reports what happens to the apps of each Tenant to the receivers in its spec.notifications.
type Notifier struct {
	// Reader reads the manager's cache.
	Reader  client.Reader
	Queue   *gitreport.Queue
	Network *transport.Network
	Clock   clock.PassiveClock
	// Namespace is the operator's.
	Namespace string
	// Secret reads the data of a Secret in the operator's namespace, and Wake reconciles a Tenant, which reports a receiver that fails.
	Secret func(ctx context.Context, name string) (map[string][]byte, error)
	Wake   func(types.NamespacedName)

	mu      sync.Mutex
	tenants map[string]*tenantRecord
}

// tenantRecord has the receivers of one Tenant, and the states of its apps.
type tenantRecord struct {
	uid       types.UID
	states    notice.States
	receivers map[string]*receiver
	// answered: a receiver took or refused something since the start.
	answered bool
}

// receiver is one entry of spec.notifications.
type receiver struct {
	spec     v1alpha1.Notification
	sent     notice.Sent
	failure  error
	failures int
}

func (r *receiver) filter() notice.Filter {
	return notice.Filter{Severity: notice.Severity(r.spec.EventSeverity), Apps: r.spec.Apps, Alerts: r.spec.Type == string(notice.Alertmanager)}
}

// forget drops a Tenant that has no receivers any more.
func (n *Notifier) forget(tenant string) {
	n.mu.Lock()
	a := n.tenants[tenant]
	delete(n.tenants, tenant)
	n.mu.Unlock()
	if a != nil {
		n.Queue.DropAll(receiverKey(a.uid, ""))
	}
}

// notifies says whether the Tenant of the name is known to have receivers.
func (n *Notifier) notifies(tenant string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tenants[tenant] != nil
}

// observe records the states of a Tenant's apps. What was so when the operator started counts as sent, except to receivers that keep alerts. A
// new receiver gets the present failures. The lock is held.
func (n *Notifier) observe(tenant *v1alpha1.Tenant, states notice.States) *tenantRecord {
	a := n.tenants[tenant.Name]
	first := a == nil || a.uid != tenant.UID
	if first {
		a = &tenantRecord{uid: tenant.UID, receivers: map[string]*receiver{}}
		if n.tenants == nil {
			n.tenants = map[string]*tenantRecord{}
		}
		n.tenants[tenant.Name] = a
	}
	a.states = states
	named := map[string]bool{}
	for _, spec := range tenant.Spec.Notifications {
		named[spec.Name] = true
		r := a.receivers[spec.Name]
		if r == nil || r.spec.Type != spec.Type {
			r = &receiver{}
			r.sent.Begin(states, first && spec.Type != string(notice.Alertmanager))
			a.receivers[spec.Name] = r
		}
		r.spec = *spec.DeepCopy()
	}
	for name := range a.receivers {
		if !named[name] {
			delete(a.receivers, name)
			n.Queue.Drop(receiverKey(a.uid, name))
		}
	}
	return a
}

// hurry sends again at once what failed to the receivers with this Secret: it is what most often makes it fail. No Tenant is reconciled.
func (n *Notifier) hurry(_ context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.tenants {
		for name, r := range a.receivers {
			if r.spec.SecretRef.Name == secret.Name {
				n.Queue.Hurry(receiverKey(a.uid, name))
			}
		}
	}
	return nil
}

// send sends a receiver what it has not received yet.
func (n *Notifier) send(ctx context.Context, tenant, name string) error {
	r, news := n.newsFor(tenant, name)
	if r == nil || len(news.Notices) == 0 {
		return nil
	}
	secret, err := n.Secret(ctx, r.SecretRef.Name)
	if err != nil {
		return err
	}
	auth, err := transport.AuthFromSecret(n.Namespace, r.SecretRef.Name, secret)
	if err != nil {
		return fmt.Errorf("the Secret %s: %w", r.SecretRef.Name, err)
	}
	if len(secret["address"]) == 0 {
		return failure.New(failure.ErrInvalid, "the Secret %s has no key address: add the URL of the webhook; %s", r.SecretRef.Name,
			command.WriteSecret(n.Namespace, r.SecretRef.Name, "address"))
	}
	to := notice.Receiver{Type: notice.Type(r.Type), Address: string(secret["address"]), Token: string(secret["token"]), Auth: auth}
	if err := notice.Send(ctx, n.Network, to, notice.Batch{Tenant: tenant, Notices: news.Notices, Now: n.Clock.Now()}); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.tenants[tenant]; a != nil && a.receivers[name] != nil {
		a.receivers[name].sent.Record(news, n.Clock.Now())
	}
	return nil
}

func (n *Notifier) newsFor(tenant, name string) (*v1alpha1.Notification, notice.News) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.tenants[tenant]
	if a == nil || a.receivers[name] == nil {
		return nil, notice.News{}
	}
	r := a.receivers[name]
	return r.spec.DeepCopy(), r.sent.News(a.states, r.filter(), n.Clock.Now())
}

// done records how a receiver answered, and has the Tenant report a change.
func (n *Notifier) done(tenant, name string, err error) {
	n.mu.Lock()
	a := n.tenants[tenant]
	if a == nil || a.receivers[name] == nil {
		n.mu.Unlock()
		return
	}
	before := a.note()
	r := a.receivers[name]
	r.failure, r.failures = err, r.failures+1
	if err == nil {
		r.failures = 0
	}
	changed := !a.answered || a.note() != before
	a.answered = true
	n.mu.Unlock()
	if changed {
		n.Wake(types.NamespacedName{Name: tenant})
	}
}

// Note returns the condition NotificationFailed of a Tenant.
func (n *Notifier) Note(tenant *v1alpha1.Tenant) step.Note {
	if len(tenant.Spec.Notifications) == 0 {
		return step.Note{Condition: v1alpha1.NotificationFailedCondition}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.tenants[tenant.Name]
	if a == nil || !a.answered {
		return step.Stays(v1alpha1.NotificationFailedCondition)
	}
	return a.note()
}

// note names the first receiver that fails.
func (a *tenantRecord) note() step.Note {
	note := step.Note{Condition: v1alpha1.NotificationFailedCondition}
	for _, name := range slices.Sorted(maps.Keys(a.receivers)) {
		r := a.receivers[name]
		if r.failure == nil {
			continue
		}
		reason, final := verdict.Of(r.failure)
		var limited *notice.LimitError
		if errors.As(r.failure, &limited) || !final && r.failures < patience {
			continue
		}
		note.Status, note.Reason, note.Event = metav1.ConditionTrue, reason, corev1.EventTypeWarning
		note.Message = fmt.Sprintf("notification %s: %s", name, r.failure)
		return note
	}
	return note
}

// receiverKey is the key of messages to a receiver of a Tenant.
func receiverKey(tenant types.UID, name string) string {
	return "notification " + string(tenant) + " " + name
}
