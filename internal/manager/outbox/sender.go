// Package outbox sends messages to webhooks. It tries each message until its webhook accepts it, for a day, and keeps the order of the messages about
// one object.
package outbox

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/store"
)

const (
	// lookEvery is how often the sender reads which messages are due; after a delivery it reads at once.
	lookEvery = time.Second
	// Timeout is how long an attempt may take: to connect, to send, and to get the answer.
	Timeout = 12 * time.Second
	// claimed is how long a claim lasts: if its sender was killed, others wait that long. It is much longer than an attempt.
	claimed = time.Minute
	// storeTimeout is how long recording the result of an attempt may take.
	storeTimeout = 10 * time.Second
)

// Store is the part of the store that a Sender needs.
type Store interface {
	store.Outbox
	GetWebhook(ctx context.Context, of, id string) (store.Webhook, error)
}

// Sender sends messages. Several may run at once on one store, each in its own process, because they claim what they send.
type Sender struct {
	Store Store
	// Keys returns the keys that encrypt the secrets.
	Keys func() (*kms.Keys, error)
	// Receivers connects to webhooks. It refuses an address that is not allowed with a RefusedError.
	Receivers http.RoundTripper
	Now       func() time.Time
	// Jitter returns a number of at least 0 and less than 1, which spreads retries.
	Jitter  func() float64
	Metrics *Metrics

	running sync.WaitGroup
	places  places
	wake    chan struct{}
	once    sync.Once
}

// Run sends until the context ends, and then waits for the running attempts. The context has the log.
func (s *Sender) Run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	defer s.running.Wait()
	failed := false
	for ctx.Err() == nil {
		err := s.round(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			log.Error(err, "Looking for what is to be sent to webhooks")
		}
		failed = err != nil
		select {
		case <-ctx.Done():
		case <-look.C:
		case <-s.woken():
		}
	}
	return nil
}

// woken returns a channel that gets a value when an attempt ends, and so a place is free.
func (s *Sender) woken() chan struct{} {
	s.once.Do(func() { s.wake = make(chan struct{}, 1) })
	return s.wake
}

// round begins an attempt for each message that is due, as long as there are places. The tenants with the fewest attempts come first.
func (s *Sender) round(ctx context.Context) error {
	due, err := s.Store.ListDue(ctx, s.Now())
	if err != nil || len(due) == 0 {
		return err
	}
	running := s.places.ofTenants()
	slices.SortStableFunc(due, func(a, b store.DueWebhook) int { return cmp.Compare(running[a.Tenant], running[b.Tenant]) })
	for _, to := range due {
		if err := s.begin(ctx, to); err != nil {
			return err
		}
	}
	return nil
}

// begin claims as many messages for a webhook as it has places, and sends them.
func (s *Sender) begin(ctx context.Context, to store.DueWebhook) error {
	now := s.Now()
	taken := s.places.take(to, now)
	if taken == 0 {
		return nil
	}
	claim := store.Claim{By: uuid.NewString(), Now: now, Until: now.Add(claimed)}
	deliveries, err := s.Store.ClaimDeliveries(ctx, to.ID, claim, taken)
	for range taken - len(deliveries) {
		s.places.give(to)
	}
	for _, d := range deliveries {
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			// An attempt that was begun goes on even if the manager stops: an interrupted one would be repeated.
			s.send(context.WithoutCancel(ctx), to, d, claim.By)
			s.places.give(to)
			select {
			case s.woken() <- struct{}{}:
			default:
			}
		}()
	}
	return err
}
