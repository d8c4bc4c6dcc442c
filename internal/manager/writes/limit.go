package writes

import (
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/inflight"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// inFlight limits how many bytes of bodies are held at once. A parsed body, with what is made from it, may need twenty times its size, and the
// container of the manager has 512 MiB.
var inFlight = inflight.Limits{Tenant: 4 << 20, All: 16 << 20, Waiting: 256, Wait: 5 * time.Second}

const (
	// smallBody is the minimum that a write counts, for the memory beside its body.
	smallBody = 16 << 10
	// unknownBody is what a write without a Content-Length counts: the largest body.
	unknownBody = 1 << 20
)

// limit makes a write wait, before its body is read, while other writes of its tenant or of all tenants hold too much. It runs after authentication.
func (o *Operations) limit(api huma.API) func(huma.Context, func(huma.Context)) {
	limiter := o.limiter()
	return func(ctx huma.Context, next func(huma.Context)) {
		leave, ok := limiter.Enter(ctx.Context(), auth.Of(ctx.Context()).Share(), weightOf(ctx))
		if !ok {
			problem.New(problem.TooManyRequests, "Too many writes are in progress, of the tenant or of all. Nothing was written: send the request again.").After(time.Second).Refuse(api, ctx)
			return
		}
		defer leave()
		next(ctx)
	}
}

func (o *Operations) limiter() *inflight.Limiter {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		o.held = inflight.New(inFlight)
	}
	return o.held
}

func weightOf(ctx huma.Context) int64 {
	r, _ := humago.Unwrap(ctx)
	if r.ContentLength < 0 {
		return unknownBody
	}
	return max(r.ContentLength, smallBody)
}
