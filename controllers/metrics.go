package controllers

import (
	"context"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// histograms are the histograms of Flux's recorder about the durations of Reconciles. Conditions and suspension come from states, which
// reads them from the cache.
func (s *shared) histograms() []prometheus.Collector {
	return slices.DeleteFunc(s.durations.Collectors(), func(c prometheus.Collector) bool {
		_, histogram := c.(*prometheus.HistogramVec)
		return !histogram
	})
}

// states reports at each scrape the conditions and the suspension of the objects in the cache, under the names that Flux's dashboards and
// alerts use. It keeps nothing between scrapes, because there are thousands of objects, and so there are no series of deleted objects. A
// condition has only the series of its present status, with the value 1, and suspension has a series only for suspended objects.
type states struct {
	reader client.Reader
	clock  clock.PassiveClock
}

var (
	conditionState = prometheus.NewDesc("gotk_reconcile_condition", "The condition of an object: 1 for the status that it has.",
		[]string{"kind", "name", "namespace", "type", "status"}, nil)
	suspendState = prometheus.NewDesc("gotk_suspend_status", "1 for an object that is suspended.",
		[]string{"kind", "name", "namespace"}, nil)
)

// Describe implements prometheus.Collector.
func (*states) Describe(out chan<- *prometheus.Desc) {
	out <- conditionState
	out <- suspendState
}

// Collect implements prometheus.Collector.
func (s *states) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	lists := map[string]client.ObjectList{
		v1alpha1.RepositoryKind: &v1alpha1.RepositoryList{}, v1alpha1.RegistryKind: &v1alpha1.RegistryList{},
		v1alpha1.TenantKind: &v1alpha1.TenantList{}, v1alpha1.ProjectKind: &v1alpha1.ProjectList{}, v1alpha1.AppKind: &v1alpha1.AppList{},
	}
	for kind, list := range lists {
		err := s.reader.List(ctx, list, client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(list, func(o runtime.Object) error {
				s.collect(out, kind, o.(step.Object))
				return nil
			})
		}
		if err != nil {
			out <- prometheus.NewInvalidMetric(conditionState, err)
		}
	}
}

func (s *states) collect(out chan<- prometheus.Metric, kind string, o step.Object) {
	status := metav1.ConditionUnknown
	if ready := conditions.Get(o, v1alpha1.ReadyCondition); ready != nil {
		status = ready.Status
	}
	out <- prometheus.MustNewConstMetric(conditionState, prometheus.GaugeValue, 1,
		kind, o.GetName(), o.GetNamespace(), v1alpha1.ReadyCondition, string(status))
	if o.GetSchedule().Suspend || v1alpha1.SuspendedUntil(o).After(s.clock.Now()) {
		out <- prometheus.MustNewConstMetric(suspendState, prometheus.GaugeValue, 1, kind, o.GetName(), o.GetNamespace())
	}
}
