package report

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	gitreport "github.com/kubeop/kubeop/gitops/report"
)

// hall is a Notifier with a cluster and a receiver.
type hall struct {
	*Notifier
	t     *testing.T
	clock *clocktesting.FakeClock
	kube  client.Client

	mu       sync.Mutex
	received []string
	answer   int
	url      string
}

func newHall(t *testing.T, types ...string) *hall {
	t.Helper()
	h := &hall{t: t, clock: clocktesting.NewFakeClock(time.Now()), answer: http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.received = append(h.received, string(body))
		w.WriteHeader(h.answer)
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "u1"}}
	for _, kind := range types {
		tenant.Spec.Notifications = append(tenant.Spec.Notifications, receiving(kind))
	}
	h.kube = fake.NewClientBuilder().WithScheme(scheme).WithObjects(tenant,
		&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}}).Build()
	h.start()
	return h
}

func receiving(kind string) v1alpha1.Notification {
	return v1alpha1.Notification{Name: kind, Type: kind, EventSeverity: "info", SecretRef: v1alpha1.LocalSecretReference{Name: kind}}
}

func (h *hall) start() {
	h.Notifier = &Notifier{
		Reader: h.kube, Queue: gitreport.NewQueue(clock.RealClock{}, nil), Clock: h.clock,
		Network: &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Secret: func(context.Context, string) (map[string][]byte, error) {
			return map[string][]byte{"address": []byte(h.url), "token": []byte("a-key")}, nil
		},
		Wake: func(types.NamespacedName) {},
	}
}

// app creates or changes the App web.
func (h *hall) app(ready metav1.ConditionStatus, message string, delivered ...string) {
	h.t.Helper()
	a := &v1alpha1.App{}
	err := h.kube.Get(h.t.Context(), client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}, a)
	a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: ready, Reason: "Unhealthy", Message: message, LastTransitionTime: metav1.NewTime(h.clock.Now())}}
	for _, revision := range delivered {
		a.Status.Deliveries = slices.Insert(a.Status.Deliveries, 0, v1alpha1.DeliveryRecord{Revision: revision, Author: "Jane", Result: v1alpha1.DeliverySucceeded})
	}
	if err == nil {
		err = h.kube.Update(h.t.Context(), a)
	} else {
		a.Namespace, a.Name, a.Labels = "kubeop-acme-shop", "web", map[string]string{v1alpha1.TenantLabel: "acme"}
		err = h.kube.Create(h.t.Context(), a)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// look reconciles after a time, and waits for messages with these words in them, one after the other, and no other.
func (h *hall) look(after time.Duration, want ...string) {
	h.t.Helper()
	h.clock.Step(after)
	h.mu.Lock()
	h.received = nil
	h.mu.Unlock()
	if _, err := h.Reconcile(h.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "acme"}}); err != nil {
		h.t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		time.Sleep(30 * time.Millisecond)
		h.mu.Lock()
		got := slices.Clone(h.received)
		h.mu.Unlock()
		if slices.EqualFunc(got, want, strings.Contains) {
			return
		}
		if len(got) > len(want) || time.Now().After(deadline) {
			h.t.Fatalf("received %q, want %q", got, want)
		}
	}
}

func TestAReceiverGetsFailuresRecoveriesAndDeliveries(t *testing.T) {
	h := newHall(t, "slack")
	h.app(metav1.ConditionTrue, "", "main@sha1:1111111111")
	h.look(0) // What was before is known.
	h.app(metav1.ConditionTrue, "", "main@sha1:2222222222")
	h.look(time.Minute, "acme/shop/web: Delivered: main@sha1:2222222222 by Jane")
	h.app(metav1.ConditionFalse, "no image")
	h.look(hold / 2)
	h.look(hold, "acme/shop/web: Unhealthy: no image")
	h.app(metav1.ConditionFalse, "another text")
	h.look(time.Minute)
	h.app(metav1.ConditionUnknown, "trying")
	h.look(time.Minute)
	h.app(metav1.ConditionTrue, "")
	h.look(time.Minute, "acme/shop/web: Recovered")
}

// TestARestartRepeatsOnlyAlerts: Alertmanager keeps alerts only as long as they are sent.
func TestARestartRepeatsOnlyAlerts(t *testing.T) {
	h := newHall(t, "slack", "alertmanager")
	h.app(metav1.ConditionTrue, "")
	h.look(0)
	h.app(metav1.ConditionFalse, "no image")
	h.look(time.Minute, "", "")
	h.start()
	h.look(time.Minute, "KubeopAppNotReady")
	h.look(time.Minute)
	h.look(5*time.Minute, "KubeopAppNotReady")
}

func TestAReceiverThatIsDownGetsTheNewestStateLater(t *testing.T) {
	h := newHall(t, "generic")
	h.app(metav1.ConditionTrue, "")
	h.look(0)
	h.answer = http.StatusServiceUnavailable
	h.app(metav1.ConditionFalse, "no image")
	h.look(time.Minute, "no image")
	h.answer = http.StatusOK
	h.app(metav1.ConditionTrue, "")
	h.look(time.Minute)
	h.app(metav1.ConditionFalse, "no memory")
	h.clock.Step(hold)
	h.Queue.Hurry("notification ")
	h.look(hold, "no memory")
	var body struct{ Notices []any }
	if err := json.Unmarshal([]byte(h.received[0]), &body); err != nil || len(body.Notices) != 1 {
		t.Errorf("it got %s: %v", h.received[0], err)
	}
}

func TestATenantWithoutReceiversIsForgotten(t *testing.T) {
	h := newHall(t, "slack")
	h.app(metav1.ConditionTrue, "")
	h.look(0)
	if !h.notifies("acme") {
		t.Error("its apps wake nothing")
	}
	tenant := &v1alpha1.Tenant{}
	if err := h.kube.Get(t.Context(), client.ObjectKey{Name: "acme"}, tenant); err != nil {
		t.Fatal(err)
	}
	tenant.Spec.Notifications = nil
	if err := h.kube.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	h.app(metav1.ConditionFalse, "no image")
	h.look(time.Minute)
	if h.notifies("acme") {
		t.Error("its apps still wake something")
	}
}

func TestAReceiverThatRefusesIsACondition(t *testing.T) {
	h := newHall(t, "slack")
	h.app(metav1.ConditionTrue, "")
	h.look(0)
	h.answer = http.StatusNotFound
	h.app(metav1.ConditionFalse, "no image")
	h.look(time.Minute, "no image")
	tenant := &v1alpha1.Tenant{}
	if err := h.kube.Get(t.Context(), client.ObjectKey{Name: "acme"}, tenant); err != nil {
		t.Fatal(err)
	}
	note := h.Note(tenant)
	for deadline := time.Now().Add(5 * time.Second); note.Status == "" && time.Now().Before(deadline); note = h.Note(tenant) {
		time.Sleep(time.Millisecond)
	}
	if note.Status != metav1.ConditionTrue || note.Reason != v1alpha1.SourceNotFoundReason || !strings.HasPrefix(note.Message, "notification slack: ") {
		t.Errorf("the condition is %+v", note)
	}
	tenant.Spec.Notifications = nil
	if note := h.Note(tenant); note.Status != "" {
		t.Errorf("without receivers the condition is %+v", note)
	}
}

// TestMessagesAreShort: one line, of at most maxMessage characters.
func TestMessagesAreShort(t *testing.T) {
	exact := strings.Repeat("é", maxMessage)
	for message, want := range map[string]string{"a\nb": "a", exact: exact, exact + "x": exact[:2*(maxMessage-1)] + "…"} {
		if got := brief(message); got != want {
			t.Errorf("%.20q is %q, want %q", message, got, want)
		}
	}
}
