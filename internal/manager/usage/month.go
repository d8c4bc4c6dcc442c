package usage

import (
	"context"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

// Each calls do with what a tenant used, by place and hour, from the beginning of one hour to before that of another.
func (o *Operations) Each(ctx context.Context, tenant string, from, until time.Time, do func(store.Used) error) error {
	q := store.UsageQuery{Tenant: tenant, From: from, Until: until, Limit: batch}
	for {
		hours, err := o.Store.ListUsage(ctx, q)
		if err != nil {
			return err
		}
		for _, used := range hours {
			if err := do(used); err != nil {
				return err
			}
		}
		if len(hours) < q.Limit {
			return nil
		}
		last := hours[len(hours)-1]
		q.After, q.AfterHour = last.Place, last.Hour.Add(time.Hour)
	}
}

// GapsOf returns the hours in which something was not measured all the time, those that follow each other as one.
func (o *Operations) GapsOf(ctx context.Context, from, until time.Time) ([]Gap, error) {
	covered, err := o.Store.ListCovered(ctx, from, until)
	if err != nil {
		return nil, err
	}
	return coverageOf(covered, o.Cluster, o.Now().UTC()).gaps(span{from, until, hour}), nil
}
