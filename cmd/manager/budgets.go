package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/invoices"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/usage"
	"github.com/kubeop/kubeop/internal/store"
)

// compareEvery is how often costs are compared with budgets.
const compareEvery = 15 * time.Minute

// openBudgets returns what compares the costs of tenants with their budgets. It takes no turns of those who ask the API what they pay.
func openBudgets(c *config.Manager, cluster *rest.Config, opened store.Store, objects *live.Cluster) (*invoices.Budgets, error) {
	events, err := corev1client.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("making the client for events: %w", err)
	}
	of := &live.Operations{Index: objects.Index, Synced: objects.Synced}
	used := &usage.Operations{Store: opened, Cluster: c.UsageCluster, Now: time.Now}
	return &invoices.Budgets{
		Operations: &invoices.Operations{
			Store: opened, Used: used.Each, Gaps: used.GapsOf, Tenant: of.TenantRef, PriceLists: of.PriceLists, PricesOf: of.PricesOf, PricesNamed: of.PricesNamed, Now: time.Now, Turns: invoices.NewTurns(),
		},
		Reader: objects.Reader(), Following: objects.Following, Metric: invoices.NewMetric(),
		Tell: func(ctx context.Context, t *v1alpha1.Tenant, alert invoices.Alert) error {
			_, err := events.Events(metav1.NamespaceDefault).Create(ctx, budgetEvent(t, alert, time.Now()), metav1.CreateOptions{})
			return err
		},
	}, nil
}

// budgetEvent returns the event about an alert. Events on cluster-scoped objects are in the namespace default.
func budgetEvent(t *v1alpha1.Tenant, alert invoices.Alert, now time.Time) *corev1.Event {
	const by = "kubeop-manager"
	at := metav1.NewTime(now)
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s.%x", t.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TenantKind, Name: t.Name, UID: t.UID},
		Type:           corev1.EventTypeWarning, Reason: v1alpha1.CostBudgetReachedReason, Message: alert.String(),
		Source: corev1.EventSource{Component: by}, ReportingController: by, FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
}
