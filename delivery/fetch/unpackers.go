package fetch

import (
	"context"
	"strings"
)

// unpackers bounds how many packs are unpacked at once, and so the memory hostile ones can take together. Repositories have a place
// of their own: a push waits for no app's pack. A tenant's apps wait for each other first, so that tenants take turns.
type unpackers struct {
	apps, repositories chan struct{}
	tenants            locks
}

func newUnpackers() *unpackers {
	return &unpackers{apps: make(chan struct{}, 1), repositories: make(chan struct{}, 1)}
}

type tenantKey struct{}

// onBehalfOf has the unpacking in a fetch count for a tenant.
func onBehalfOf(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// enter waits for a place, and returns the function that gives it back.
func (u *unpackers) enter(ctx context.Context) (leave func(), err error) {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	places := u.apps
	if strings.HasPrefix(tenant, repositoryShare) {
		places = u.repositories
	}
	unlock, err := u.tenants.lock(ctx, tenant)
	if err != nil {
		return nil, err
	}
	select {
	case places <- struct{}{}:
		return func() {
			<-places
			unlock()
		}, nil
	case <-ctx.Done():
		unlock()
		return nil, ctx.Err()
	}
}
