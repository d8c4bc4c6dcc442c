package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

// counted is a store that counts how often it is swept, and fails to be.
type counted struct {
	store.Store
	sweeps int
}

func (c *counted) Sweep(context.Context, time.Time) error {
	c.sweeps++
	return errors.New("it does not answer")
}

// TestTheStoreIsSweptAsSoonAsItsManagerLeads: managers may take the lead from each other more often than every hour.
func TestTheStoreIsSweptAsSoonAsItsManagerLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		s := &counted{}
		began := time.Now()
		go func() {
			time.Sleep(time.Minute)
			if s.sweeps != 1 {
				t.Errorf("in a minute it was swept %d times", s.sweeps)
			}
		}()
		if err := (&manager{services: &services{store: s}}).sweepStore(ctx); err != nil || s.sweeps != 3 {
			t.Errorf("%v: in %s it was swept %d times", err, time.Since(began), s.sweeps)
		}
	})
}
