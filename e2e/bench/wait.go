package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/e2e/stage"
)

// progressEvery is how often a wait tells how far it is.
const progressEvery = 5 * time.Second

// wait waits until nothing is missing and tells now and then how far it is.
func (b *bench) wait(ctx context.Context, what string, missing func() (int, string)) error {
	patience := 3*time.Minute + time.Duration(len(b.apps))*time.Second
	told := time.Now()
	return stage.Until(ctx, patience, what, func(context.Context) error {
		// The audit log is read on the way, so that it is not rotated away.
		if _, err := b.meter.requests(); err != nil {
			return stage.Final(err)
		}
		left, example := missing()
		if left == 0 {
			return nil
		}
		err := fmt.Errorf("%d of %d to go; %s", left, len(b.apps), example)
		if time.Since(told) > progressEvery {
			b.say.Say("%v", err)
			told = time.Now()
		}
		return err
	})
}

// quiet waits until there are no requests but those that come by the clock.
func (b *bench) quiet(ctx context.Context) error { return b.quietWithin(ctx, 2*time.Minute) }

func (b *bench) quietWithin(ctx context.Context, patience time.Duration) error {
	last, since := -1, time.Now()
	return stage.Until(ctx, patience, "quiet", func(ctx context.Context) error {
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

// work is a number that stands still while nothing is done: requests, or looks where there is no audit log.
func (b *bench) work(ctx context.Context) (int, error) {
	if b.meter.log != nil {
		now, err := b.meter.requests()
		return now.Cost(), err
	}
	now, err := b.meter.client(ctx)
	return now.Reconciles, err
}

// looks waits until as many looks were taken as there are apps and none is due, and at least for a time.
func (b *bench) looks(ctx context.Context, name string, before observation, atLeast time.Duration) error {
	began, asked, left := time.Now(), time.Time{}, len(b.apps)
	return b.wait(ctx, name, func() (int, string) {
		if rest := atLeast - time.Since(began); rest > 0 {
			return left, fmt.Sprintf("%d s to go", int(rest.Seconds()))
		}
		// The metrics of thousands of apps are work for the controller too, so they are not asked for at each turn.
		if time.Since(asked) < time.Second {
			return left, "looks to go"
		}
		asked = time.Now()
		now, err := b.meter.client(ctx)
		if err != nil {
			return left, err.Error()
		}
		// Some apps may have been looked at twice before others have had their turn.
		left = max(now.Pending, len(b.apps)-(now.Reconciles-before.client.Reconciles))
		return left, "looks to go"
	})
}
