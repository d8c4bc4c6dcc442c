package problem

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// After lets the answer say with the header Retry-After how long to wait for the next request.
func (p *Problem) After(wait time.Duration) *Problem {
	p.Wait = wait
	return p
}

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.Wait > 0 {
		// Whole seconds, of which the last one has begun: a request before would be refused again.
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(p.Wait.Seconds())), 10))
	}
	return h
}

// Refuse answers with the problem in a middleware of huma.
func (p *Problem) Refuse(api huma.API, ctx huma.Context) {
	for name, values := range p.GetHeaders() {
		ctx.SetHeader(name, values[0])
	}
	// It writes the problem that is made of the status. It fails only if the client disconnected.
	_ = huma.WriteErr(api, ctx, p.Status, p.Detail)
}
