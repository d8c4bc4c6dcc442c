package main

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/invoices"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv"
)

// TestATenantIsAlertedOfItsBudgetAndRecordedWhenItIsGone by a manager with the rights of its service account, on a real API server.
func TestATenantIsAlertedOfItsBudgetAndRecordedWhenItIsGone(t *testing.T) {
	plane := testenv.Start(t)
	if _, err := plane.InstallChart(t.Context(), "manager.enabled=true", "manager.plainHTTP=true"); err != nil {
		t.Fatal(err)
	}
	admin := adminOf(t, plane)
	prices := &v1alpha1.PriceList{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Spec: v1alpha1.PriceListSpec{Default: true, Currency: "EUR", Meters: []v1alpha1.PriceMeter{
		{Name: "gpu", Unit: "gpu-hour", Periods: []v1alpha1.PricePeriod{{From: "2020-01-01", Tiers: []v1alpha1.PriceTier{{Price: "10"}}}}},
	}}}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", Annotations: map[string]string{v1alpha1.AllowDeletionAnnotation: "acme"}}, Spec: v1alpha1.TenantSpec{CostBudget: &v1alpha1.CostBudget{Amount: "50"}}}
	for _, o := range []client.Object{prices, tenant} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	c := &config.Manager{APIAddr: "127.0.0.1:0", HealthAddr: "127.0.0.1:0", GracefulTimeout: time.Minute, RequestsPerSecond: 1000, Burst: 1000, DataDir: t.TempDir()}
	served, err := listen(t.Context(), c, accountOf(t, plane))
	if err != nil {
		t.Fatal(err)
	}
	used := store.Used{Place: store.Place{Tenant: "acme", Project: "shop", Cluster: "elsewhere"}, Hour: time.Now().UTC().Truncate(time.Hour), Amounts: store.Amounts{"gpu": meter.Of(big.NewInt(6), 0)}}
	if _, err := served.store.SetUsage(t.Context(), []store.Used{used}, nil); err != nil {
		t.Fatal(err)
	}
	serveUntilTheEnd(t, served)
	wait := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	var events []string
	wait("there are no events about the budget", func() bool {
		var all corev1.EventList
		if err := admin.List(t.Context(), &all, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		events = nil
		for _, e := range all.Items {
			if e.Reason == v1alpha1.CostBudgetReachedReason {
				events = append(events, fmt.Sprint(e.Type, " ", e.InvolvedObject.Kind, " ", e.InvolvedObject.Name, " ", e.InvolvedObject.UID == tenant.UID, " ", e.Message))
			}
		}
		return len(events) == 2
	})
	slices.Sort(events)
	month := time.Now().UTC().Format("2006-01")
	if diff := cmp.Diff([]string{
		"Warning Tenant acme true The usage in " + month + " costs 60.00 EUR so far without taxes, and reaches 100 % of spec.costBudget, which is 50 EUR.",
		"Warning Tenant acme true The usage in " + month + " costs 60.00 EUR so far without taxes, and reaches 80 % of spec.costBudget, which is 50 EUR.",
	}, events); diff != "" {
		t.Errorf("-want +events:\n%s", diff)
	}
	wait("the metric has no value", func() bool { return testutil.CollectAndCount(served.budgets.Metric) > 0 })
	recorded := func() store.Payer {
		all, err := served.store.ListPayers(t.Context(), "acme")
		if err != nil || len(all) > 1 {
			t.Fatalf("%v: recorded are %+v", err, all)
		}
		return append(all, store.Payer{})[0]
	}
	wait("it is not recorded that the tenant is there", func() bool { return recorded().UID == string(tenant.UID) && recorded().Gone.IsZero() })
	if err := admin.Delete(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	wait("it is not recorded that the tenant is gone", func() bool { return !recorded().Gone.IsZero() })
	// Its account creates events nowhere else, and neither reads nor changes any.
	other, err := openBudgets(c, accountOf(t, plane), served.store, served.cluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Tell(t.Context(), tenant, invoices.Alert{}); err != nil {
		t.Errorf("an event on a tenant: %v", err)
	}
	account, err := client.New(accountOf(t, plane), client.Options{Scheme: admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	event := budgetEvent(tenant, invoices.Alert{}, time.Now())
	event.Namespace = testenv.Namespace
	if err := account.Create(t.Context(), event); !apierrors.IsForbidden(err) {
		t.Errorf("an event in another namespace: %v", err)
	}
	if err := account.List(t.Context(), &corev1.EventList{}, client.InNamespace("default")); !apierrors.IsForbidden(err) {
		t.Errorf("the list of events: %v", err)
	}
}
