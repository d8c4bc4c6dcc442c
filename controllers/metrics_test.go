package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestMetricsReportTheConditionsOfObjects(t *testing.T) {
	failing := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	conditions.MarkFalse(failing, v1alpha1.ReadyCondition, "Broken", "broken")
	failing.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "1970-01-01T01:00:00Z"}
	held := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	held.Spec.Suspend = true
	hub := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "hub"}}
	conditions.MarkTrue(hub, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "ready")
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(failing, held, hub).WithStatusSubresource().Build()
	elected := make(chan struct{})
	registry := prometheus.NewRegistry()
	if err := registry.Register(whileLeading{&states{reader, clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, elected}); err != nil {
		t.Fatal(err)
	}
	collected := func() []string {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, family := range families {
			for _, m := range family.Metric {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, l.GetValue())
				}
				all = append(all, fmt.Sprint(family.GetName(), " ", strings.Join(labels, ","), " ", m.GetGauge().GetValue()))
			}
		}
		slices.Sort(all)
		return all
	}
	if got := collected(); len(got) != 0 {
		t.Errorf("a replica that is not the leader reports %v", got)
	}
	close(elected)
	want := []string{
		"gotk_reconcile_condition App,web,shop,False,Ready 1",
		"gotk_reconcile_condition Registry,hub,,True,Ready 1",
		"gotk_reconcile_condition Repository,acme,,Unknown,Ready 1",
		"gotk_suspend_status App,web,shop 1",
		"gotk_suspend_status Repository,acme, 1",
	}
	if diff := cmp.Diff(want, collected()); diff != "" {
		t.Error(diff)
	}
}

// undescribed is a collector whose metrics have no valid description.
type undescribed struct {
	prometheus.Collector
	why error
}

// Describe implements prometheus.Collector.
func (u undescribed) Describe(out chan<- *prometheus.Desc) { out <- prometheus.NewInvalidDesc(u.why) }

func TestACollectorThatCannotBeRegisteredEndsTheStart(t *testing.T) {
	invalid := errors.New("invalid")
	metrics := part{"wrong", collector(undescribed{why: invalid}), everyReplica}
	if err := metrics.addTo(nil); !errors.Is(err, invalid) || !strings.HasPrefix(err.Error(), "setting up the metrics wrong: ") {
		t.Errorf("got %v, want the error of the registration", err)
	}
}
