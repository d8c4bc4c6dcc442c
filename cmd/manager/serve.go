package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubeop/kubeop/internal/manager/tokens"
)

// part is something that runs in the manager's process: a row of the list in parts.
type part struct {
	name string
	// run is nil if the settings do not have the part.
	run func(context.Context) error
	// lead is the name of the lead that the part has while it runs, so that one of several managers runs it at a time; "" runs it on each.
	lead string
	end  end
	need need
}

// end says until when a part runs.
type end int

const (
	// atStop: until the manager gets the signal to stop.
	atStop end = iota
	// afterDrain: until load balancers know that it stops, and then until its answers are sent.
	afterDrain
	// afterAPI: until the API has sent its answers.
	afterAPI
)

// need says what the end of a part means.
type need bool

const (
	// vital: the manager ends with it.
	vital need = true
	// optional: the manager goes on without it.
	optional need = false
)

// parts is the only list of what runs in the manager's process.
func (m *manager) parts() []part {
	return []part{
		{"API", m.api.Serve, "", afterDrain, vital},
		{"probes and metrics", m.health.Serve, "", afterAPI, vital},
		{"caches of the cluster", m.cluster.Start, "", afterAPI, vital},
		{"certificate of the API", m.renewal(), "", afterAPI, vital},
		{"sweep of what was fetched", m.sweep, "", afterAPI, optional},
		{"sweep of the store", m.sweepStore, "sweep", afterAPI, optional},
		{"who pays for usage", m.recordPayers, "payers", afterAPI, optional},
		{"budgets of tenants", m.compareBudgets, "budgets", afterAPI, optional},
		{"changes for webhooks", m.hooks.watching(), "webhooks", atStop, optional},
		{"messages to webhooks", withLogger("webhooks", m.hooks.sending()), "", atStop, optional},
		{"sweep of kubeconfigs", m.sweepingKubeconfigs(), "kubeconfigs", afterAPI, optional},
		{"usage of apps", m.measuring(), "usage", afterAPI, optional},
		{"keys that sign JWTs", withLogger("signing", m.signing.Run), "", afterAPI, optional},
		{"keys of issuers", withLogger("oidc", m.issuers.Run), "", afterAPI, optional},
	}
}

// renewal reads the certificate of the API when it changes.
func (m *manager) renewal() func(context.Context) error {
	if m.certificates == nil {
		return nil
	}
	return m.certificates.Start
}

// sweepingKubeconfigs removes the kubeconfigs that ended, if people get any. It does so each minute, because each has a Secret in a project and counts to what the tenant may have.
func (m *manager) sweepingKubeconfigs() func(context.Context) error {
	if m.kubeconfigs == nil {
		return nil
	}
	return func(ctx context.Context) error {
		return every(ctx, time.Minute, "Removing kubeconfigs that ended", m.kubeconfigs.Sweep)
	}
}

// measuring measures what apps use, if it is to.
func (m *manager) measuring() func(context.Context) error {
	if m.config.UsageCluster == "" {
		return nil
	}
	return m.sampler.Run
}

// led returns what runs a part, by its lead if it has one.
func (m *manager) led(p part) func(context.Context) error {
	if p.lead == "" {
		return p.run
	}
	return func(ctx context.Context) error { return m.leader.Run(ctx, p.lead, p.run) }
}

// withLogger gives a part a logger of its own.
func withLogger(name string, run func(context.Context) error) func(context.Context) error {
	if run == nil {
		return nil
	}
	return func(ctx context.Context) error { return run(logr.NewContext(ctx, ctrl.Log.WithName(name))) }
}

// serve runs all parts until the context ends or a vital part does. Probes are answered until the API has stopped.
func (m *manager) serve(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, m.store.Close()) }()
	// A stop that comes this early is no failure.
	if err := m.offerSetup(ctx); err != nil && ctx.Err() == nil {
		return errors.Join(err, m.api.Listener.Close(), m.health.Listener.Close())
	}
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	drained, stopAPI := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAPI()
	finished, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	until := map[end]context.Context{atStop: stopped, afterDrain: drained, afterAPI: finished}
	var group errgroup.Group
	for _, p := range m.parts() {
		if p.run == nil {
			continue
		}
		group.Go(func() error {
			if p.need == vital {
				defer stop()
			}
			if p.end == afterDrain {
				defer finish()
			}
			err := m.led(p)(until[p.end])
			if p.need == vital && stopped.Err() == nil {
				ctrl.Log.Info("Stopping, because a part ended", "part", p.name, "why", fmt.Sprint(err))
			}
			return err
		})
	}
	<-stopped.Done()
	m.checks.Stop()
	select {
	case <-time.After(m.config.DrainDelay):
	case <-finished.Done(): // The API failed, so there is nothing to drain.
	}
	stopAPI()
	return group.Wait()
}

// offerSetup logs the code for the first administrator, unless there is one: the holder of a token, or people of an issuer.
func (m *manager) offerSetup(ctx context.Context) error {
	if admins := m.config.OIDC.Admins; len(m.issuers.URLs()) > 0 && len(admins.Users)+len(admins.Groups) > 0 {
		return nil
	}
	code, expires, err := (&tokens.Operations{Store: m.store, Now: time.Now}).OfferSetup(ctx)
	if err != nil || code == "" {
		return err
	}
	ctrl.Log.Info("There is no administrator yet. POST /v1/setup with this code answers a token with the scope admin, once.", "code", code, "expires", expires)
	return nil
}

// hourly runs do every hour, until the context ends. Its errors are logged.
func hourly(ctx context.Context, what string, do func(context.Context) error) error {
	return every(ctx, time.Hour, what, do)
}

// atOnce is every, and does it at once too.
func atOnce(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) error {
	if err := do(ctx); err != nil && ctx.Err() == nil {
		ctrl.Log.Error(err, what)
	}
	return every(ctx, interval, what, do)
}

// every is hourly for another time.
func every(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) error {
	again := time.NewTicker(interval)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			if err := do(ctx); err != nil && ctx.Err() == nil {
				ctrl.Log.Error(err, what)
			}
		}
	}
}

// sweep removes what was fetched and not used for days, of this manager's.
func (m *manager) sweep(ctx context.Context) error {
	return hourly(ctx, "Removing what was fetched and is not used", func(ctx context.Context) error {
		return errors.Join(m.repositories.Git.Disk.Sweep(ctx), m.repositories.Forget(ctx))
	})
}

// sweepStore removes what ended from the store, at once and then every hour: a lead may be lost more often.
func (m *manager) sweepStore(ctx context.Context) error {
	return atOnce(ctx, time.Hour, "Removing what ended from the store", func(ctx context.Context) error { return m.store.Sweep(ctx, time.Now()) })
}

// recordPayers records which tenants there are.
func (m *manager) recordPayers(ctx context.Context) error {
	m.followCluster(ctx)
	return atOnce(ctx, time.Minute, "Recording who pays for usage", m.payers.Round)
}

// compareBudgets compares what the usage of tenants costs with their budgets.
func (m *manager) compareBudgets(ctx context.Context) error {
	defer m.budgets.Forget()
	m.followCluster(ctx)
	return atOnce(ctx, compareEvery, "Comparing costs with budgets", m.budgets.Round)
}

// followCluster waits until the caches follow the cluster, or the context ends.
func (m *manager) followCluster(ctx context.Context) {
	for m.cluster.Following(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}
