package kube

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// discoveryPause is the time between two refreshes of discovery.
const discoveryPause = time.Second

// discovered are the kinds whose objects say what the API server serves.
var discovered = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
}

// Discovery watches the metadata of CustomResourceDefinitions and APIServices and reports when the API server may serve other kinds than
// before. Every write to one of them counts, including writes of its status: only the status says that a kind is served. The API server
// writes these objects only on changes, not as a heartbeat. Every replica needs a Discovery, because each has its own caches.
type Discovery struct {
	client  metadata.Interface
	clock   clock.Clock
	log     logr.Logger
	refresh func(context.Context)
	changed chan struct{}
}

// NewDiscovery returns a Discovery over the operator's own connection. On a change, it calls refresh on a goroutine of its own, at once and
// again a second later, because discovery lags behind the objects. It never calls refresh twice in a second, however many changes there
// are. The first list counts as a change, because earlier discovery may be older than the list.
func NewDiscovery(config *rest.Config, shared *http.Client, log logr.Logger, clock clock.Clock, refresh func(context.Context)) (*Discovery, error) {
	client, err := metadata.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, fmt.Errorf("making the client that watches what is served: %w", err)
	}
	return &Discovery{client: client, clock: clock, log: log, refresh: refresh, changed: make(chan struct{}, 1)}, nil
}

// Start watches until the context ends.
func (d *Discovery) Start(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	for _, resource := range discovered {
		all.Go(func() { d.follow(ctx, resource) })
	}
	for calls := 0; ctx.Err() == nil; {
		if calls == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-d.changed:
				calls = 2
			}
		}
		d.refresh(ctx)
		calls--
		select {
		case <-ctx.Done():
		case <-d.clock.After(discoveryPause):
		}
		select {
		case <-d.changed:
			calls = 2
		default:
		}
	}
	return nil
}

func (d *Discovery) notify() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func (d *Discovery) follow(ctx context.Context, resource schema.GroupVersionResource) {
	var failed bool
	into := newRows(func(string, map[string]string) { d.notify() })
	go func() {
		select {
		case <-ctx.Done():
		case <-into.synced:
			d.notify()
		}
	}()
	follow(ctx, d.client.Resource(resource), into, func(err error) {
		if refused(err) && !failed {
			d.log.Info("The operator may not watch what the API server serves; new kinds are found late", "resource", resource.Resource, "reason", err.Error())
		}
		failed = refused(err)
	})
}
