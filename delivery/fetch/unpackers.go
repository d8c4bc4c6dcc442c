package fetch

import (
	"context"
	"runtime/debug"
	"strings"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fair"
)

// unpackers bound how many packs are unpacked at once, and so the memory that hostile ones take together. Each tenant's apps unpack
// one at a time. Repositories have places of their own: a push waits for no app's pack.
type unpackers struct {
	apps, repositories packPlaces
	// limitOf says what one pack of a tenant, or of a Repository, may inflate to; nil says limits.inflated of each.
	limitOf func(name string) int64
}

// packPlaces are the places of packs, and those of packs that take more memory than limits.large.
type packPlaces struct{ all, large *fair.Places }

// Bounds of what is unpacked at once, for apps and for Repositories each: there is a place for a fourth tenant where three never end.
var (
	unpackBounds = fair.Bounds{Places: 4, PerTenant: 1}
	largeBounds  = fair.Bounds{Places: 1}
)

func newUnpackers() *unpackers {
	of := func(whose string) packPlaces {
		return packPlaces{
			all:   fair.NewPlaces("unpacking of "+whose, unpackBounds, clock.RealClock{}),
			large: fair.NewPlaces("large unpacking of "+whose, largeBounds, clock.RealClock{}),
		}
	}
	return &unpackers{apps: of("apps"), repositories: of("repositories")}
}

type tenantKey struct{}

// onBehalfOf has the unpacking in a fetch count for a tenant.
func onBehalfOf(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// unpackPlace is where one pack is unpacked.
type unpackPlace struct {
	ctx    context.Context
	tenant string
	packPlaces
	limitOf func(name string) int64
	leaves  []func()
}

// enter waits for a place.
func (u *unpackers) enter(ctx context.Context) (*unpackPlace, error) {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	p := &unpackPlace{ctx: ctx, tenant: tenant, packPlaces: u.apps, limitOf: u.limitOf}
	if strings.HasPrefix(tenant, repositoryShare) {
		p.packPlaces = u.repositories
	}
	return p, p.take(p.all)
}

func (p *unpackPlace) take(places *fair.Places) error {
	leave, err := places.Enter(p.ctx, p.tenant)
	if err == nil {
		p.leaves = append(p.leaves, leave)
	}
	return err
}

// enlarge waits until the pack may take more memory than limits.large. It does so once.
func (p *unpackPlace) enlarge() error {
	if len(p.leaves) > 1 {
		return nil
	}
	return p.take(p.large)
}

// bound returns the limits with what the tenant's pack may inflate to.
func (p *unpackPlace) bound(l limits) limits {
	if p.limitOf != nil {
		l.inflated = p.limitOf(strings.TrimPrefix(p.tenant, repositoryShare))
	}
	return l
}

// leave gives all back, first the memory of a large pack: left alone, the process would hold it for minutes.
func (p *unpackPlace) leave() {
	if len(p.leaves) > 1 {
		debug.FreeOSMemory()
	}
	for _, leave := range p.leaves {
		leave()
	}
}
