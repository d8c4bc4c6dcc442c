package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/e2e/stage"
)

// progressEvery is how often a wait reports its progress.
const progressEvery = 5 * time.Second

// wait waits until nothing is missing and reports its progress regularly.
func (b *bench) wait(ctx context.Context, what string, missing func() (int, string)) error {
	timeout := 3*time.Minute + time.Duration(len(b.apps))*time.Second
	reportedAt := time.Now()
	return stage.Until(ctx, timeout, what, func(context.Context) error {
		// Read the audit log meanwhile, so that it is not rotated before it is read.
		if _, err := b.meter.requests(); err != nil {
			return stage.Final(err)
		}
		left, example := missing()
		if left == 0 {
			return nil
		}
		err := fmt.Errorf("%d of %d to go; %s", left, len(b.apps), example)
		if time.Since(reportedAt) > progressEvery {
			b.say.Say("%v", err)
			reportedAt = time.Now()
		}
		return err
	})
}

// quiet waits until only periodic requests are left.
func (b *bench) quiet(ctx context.Context) error { return b.quietWithin(ctx, 2*time.Minute) }

func (b *bench) quietWithin(ctx context.Context, timeout time.Duration) error {
	last, since := -1, time.Now()
	return stage.Until(ctx, timeout, "quiet", func(ctx context.Context) error {
		now, err := b.work(ctx)
		if err != nil {
			return stage.Final(err)
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < b.still {
			return fmt.Errorf("%d requests by now", now)
		}
		return nil
	})
}

// work is a counter of requests, or of reconciliations without an audit log. It stays constant while nothing is done.
func (b *bench) work(ctx context.Context) (int, error) {
	if b.meter.log != nil {
		now, err := b.meter.requests()
		return now.Cost(), err
	}
	now, err := b.meter.client(ctx)
	return now.Reconciles, err
}

// looks waits for as many reconciliations as there are apps, until none is due, and for a minimum time.
func (b *bench) looks(ctx context.Context, name string, before observation, atLeast time.Duration) error {
	began, scraped, left := time.Now(), time.Time{}, len(b.apps)
	return b.wait(ctx, name, func() (int, string) {
		if rest := atLeast - time.Since(began); rest > 0 {
			return left, fmt.Sprintf("%d s to go", int(rest.Seconds()))
		}
		// Metrics of thousands of apps cost the controller CPU, so do not read them in every iteration.
		if time.Since(scraped) < time.Second {
			return left, "looks to go"
		}
		scraped = time.Now()
		now, err := b.meter.client(ctx)
		if err != nil {
			return left, err.Error()
		}
		// Some apps may be reconciled twice before others are reconciled.
		left = max(now.Pending, len(b.apps)-(now.Reconciles-before.client.Reconciles))
		return left, "looks to go"
	})
}
