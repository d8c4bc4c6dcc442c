package problem

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// After sets the header Retry-After of the answer: how long to wait before the next request.
func (p *Problem) After(wait time.Duration) *Problem {
	p.Wait = wait
	return p
}

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.Wait > 0 {
		// Rounded up to whole seconds, because an earlier request would be refused again.
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(p.Wait.Seconds())), 10))
	}
	return h
}

// Refuse answers a request with the problem, in a middleware of huma.
func (p *Problem) Refuse(api huma.API, ctx huma.Context) {
	for name, values := range p.GetHeaders() {
		ctx.SetHeader(name, values[0])
	}
	// huma makes the same problem from the status. This fails only if the client disconnected.
	_ = huma.WriteErr(api, ctx, p.Status, p.Detail)
}
