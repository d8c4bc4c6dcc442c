package controllers

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// part is one component of the operator's process: a row of the list in setup.go.
type part struct {
	name      string
	role      role
	placement placement
}

// placement says on which replicas, and when, a part runs.
type placement string

const (
	leader       placement = "on the leader, from its election to its end"
	everyReplica placement = "on every replica, all the time"
)

// role is the kind of a part, and the function that adds the part to the manager; nil if the settings turn the part off.
type role struct {
	kind string
	add  func(mgr ctrl.Manager, p part) error
}

// addTo adds the part to the manager.
func (p part) addTo(mgr ctrl.Manager) error {
	if p.role.add == nil {
		return nil
	}
	if err := p.role.add(mgr, p); err != nil {
		return fmt.Errorf("setting up the %s %s: %w", p.role.kind, p.name, err)
	}
	return nil
}

// given turns a part off if the settings do not have it.
func given(there bool, r role) role {
	if !there {
		r.add = nil
	}
	return r
}

// controller is a controller, which its own package adds to the manager.
func controller(setUp func() error) role {
	return role{"controller", func(ctrl.Manager, part) error { return setUp() }}
}

// objectCache is a cache of objects, job a background task, and server something that others call.
func objectCache(c cache.Cache) role      { return running("cache", c) }
func job(r manager.Runnable) role         { return running("job", r) }
func jobFunc(f manager.RunnableFunc) role { return running("job", f) }
func server(r manager.Runnable) role      { return running("server", r) }

func running(kind string, r manager.Runnable) role {
	return role{kind, func(mgr ctrl.Manager, p part) error { return mgr.Add(runnable{r, p.placement == leader}) }}
}

// runnable runs on the replicas that its row names.
type runnable struct {
	manager.Runnable
	leads bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r runnable) NeedLeaderElection() bool { return r.leads }

// cacheBeforeAll is a cache that the manager fills on every replica before it starts anything else.
func cacheBeforeAll(r manager.Runnable) role {
	return role{"cache", func(mgr ctrl.Manager, _ part) error { return mgr.Add(r) }}
}

// handler handles events of objects in the manager's cache.
func handler(follow func(context.Context, cache.Cache) error) role {
	return role{"handler", func(mgr ctrl.Manager, _ part) error { return follow(context.Background(), mgr.GetCache()) }}
}

// alive and ready are checks of /healthz and /readyz.
func alive(c healthz.Checker) role {
	return role{"probe", func(mgr ctrl.Manager, p part) error { return mgr.AddHealthzCheck(p.name, c) }}
}

func ready(c healthz.Checker) role {
	return role{"probe", func(mgr ctrl.Manager, p part) error { return mgr.AddReadyzCheck(p.name, c) }}
}

// byManager is a part that the manager runs itself because of its options.
func byManager(kind string) role {
	return role{kind, func(ctrl.Manager, part) error { return nil }}
}

// collector is one metrics collector, collectors are several.
func collector(c prometheus.Collector) role {
	return collectors(func() []prometheus.Collector { return []prometheus.Collector{c} })
}

// Metrics of the leader are collected only while this replica leads. Other replicas would report the same again.
func collectors(all func() []prometheus.Collector) role {
	return role{"metrics", func(mgr ctrl.Manager, p part) error {
		var errs []error
		for _, c := range all() {
			if p.placement == leader {
				c = whileLeading{c, mgr.Elected()}
			}
			ctrlmetrics.Registry.Unregister(c) // Tests may set up several managers in one process.
			errs = append(errs, ctrlmetrics.Registry.Register(c))
		}
		return errors.Join(errs...)
	}}
}

// whileLeading is a collector that collects nothing until this replica leads.
type whileLeading struct {
	prometheus.Collector
	elected <-chan struct{}
}

// Collect implements prometheus.Collector.
func (w whileLeading) Collect(out chan<- prometheus.Metric) {
	select {
	case <-w.elected:
		w.Collector.Collect(out)
	default:
	}
}
