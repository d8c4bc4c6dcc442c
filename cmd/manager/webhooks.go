package main

import (
	"context"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/changes"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/outbox"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/webhooks"
	"github.com/kubeop/kubeop/internal/store"
)

// hooks send what happens to webhooks: watcher finds it out and enqueues messages, and sender sends them.
type hooks struct {
	operations *webhooks.Operations
	watcher    *changes.Watcher
	sender     *outbox.Sender
}

// followedByHooks are the kinds that the manager follows only for webhooks.
func followedByHooks(c *config.Manager) []client.Object {
	if !c.Webhooks {
		return nil
	}
	return []client.Object{&v1alpha1.HostnameClaim{}}
}

// openHooks returns nil if the manager sends nothing. apiServer is the URL of the API server, to which no webhook leads.
func openHooks(c *config.Manager, apiServer string, s store.Store, cluster *live.Cluster) (*hooks, error) {
	if !c.Webhooks {
		return nil, nil
	}
	allowed, err := c.AllowedReceivers()
	if err != nil {
		return nil, err
	}
	var own []string
	if at, err := url.Parse(apiServer); err == nil && at.Hostname() != "" {
		own = append(own, at.Hostname())
	}
	through := newReceivers(allowed, own, c.WebhookPlainHTTP)
	h := &hooks{
		operations: &webhooks.Operations{Check: through.Check, KeyFile: c.KeyFile},
		watcher:    &changes.Watcher{Reader: cluster.Reader(), Store: s, Following: cluster.Following, Now: time.Now},
		sender: &outbox.Sender{
			Store: s, Receivers: through, Now: time.Now, Jitter: rand.Float64, Metrics: outbox.NewMetrics(s),
			Keys: func() (*kms.Keys, error) { return kms.Read(c.KeyFile) },
		},
	}
	return h, nil
}

// api returns the operations about webhooks.
func (h *hooks) api() *webhooks.Operations {
	if h == nil {
		return nil
	}
	return h.operations
}

// register registers the metrics.
func (h *hooks) register(registry prometheus.Registerer) {
	if h != nil {
		registry.MustRegister(h.sender.Metrics)
	}
}

// check adds to what /readyz asks whether the secrets of webhooks can be decrypted.
func (h *hooks) check(checks *readiness.Checks) {
	if h != nil {
		checks.Add("webhook-secrets", h.sender.Check)
	}
}

// changed notices an object that was added, changed or deleted.
func (h *hooks) changed(object client.Object) {
	if h != nil {
		h.watcher.Changed(object)
	}
}

// watching finds out what happens; nil if the manager sends nothing.
func (h *hooks) watching() func(context.Context) error {
	if h == nil {
		return nil
	}
	return h.watcher.Run
}

// sending sends messages, on each of several managers; nil if the manager sends nothing.
func (h *hooks) sending() func(context.Context) error {
	if h == nil {
		return nil
	}
	return h.sender.Run
}
