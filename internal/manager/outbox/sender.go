// Package outbox sends what waits for webhooks: each message until its webhook takes it, for a day, and the messages about one object in their order.
package outbox

import (
	"cmp"
	"context"
	"fmt"
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
	// lookEvery is how often the store is asked what is due, unless something was delivered meanwhile.
	lookEvery = time.Second
	// Timeout is how long an attempt may take: to connect, to send, and to get the answer.
	Timeout = 12 * time.Second
	// claimed is how long others wait for a sender that claimed a message, and was killed. It is much longer than an attempt.
	claimed = time.Minute
	// storeTimeout is how long the store may take for what is recorded of an attempt.
	storeTimeout = 10 * time.Second
)

// Store is what a Sender needs of the store.
type Store interface {
	store.Outbox
	GetWebhook(ctx context.Context, of, id string) (store.Webhook, error)
}

// Sender sends. Several may run at once on one store, each in a process of its own: they claim what they send.
type Sender struct {
	Store Store
	// Keys returns the keys that encrypt the secrets.
	Keys func() (*kms.Keys, error)
	// Receivers is the way to webhooks. It refuses addresses that none may lead to by a RefusedError.
	Receivers http.RoundTripper
	Now       func() time.Time
	// Jitter returns a number from 0 to less than 1, which spreads what is sent again.
	Jitter  func() float64
	Metrics *Metrics

	running sync.WaitGroup
	places  places
	wake    chan struct{}
	once    sync.Once
}

// Run sends until the context ends, and then waits for the attempts that have begun. The context has the log.
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

// woken returns the channel by which an attempt that ended says that there is a place for another one.
func (s *Sender) woken() chan struct{} {
	s.once.Do(func() { s.wake = make(chan struct{}, 1) })
	return s.wake
}

// round begins an attempt for each message that is due, as far as there are places. The tenants with the fewest attempts are first.
func (s *Sender) round(ctx context.Context) error {
	due, err := s.Store.ListDue(ctx, s.Now())
	if err != nil || len(due) == 0 {
		return err
	}
	// Without keys no webhook is at fault, so their messages wait.
	if _, err := s.Keys(); err != nil {
		return fmt.Errorf("reading the keys that encrypt the secrets of webhooks: %w", err)
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

// begin claims as many messages for a webhook as there are places, and sends them.
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
			// What was begun ends, also if the manager stops: an attempt that is cut off would be made again.
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
