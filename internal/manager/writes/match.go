package writes

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/kubeop/kubeop/internal/manager/etag"
)

// Matched is what may be made only upon a version of the file.
type Matched struct {
	Dry
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"ETags of the file that the caller saw, or *. If it is none of them any more, the answer is 409. For DELETE nothing else in the folder may have changed either."`
	etags   etag.Required
}

// Resolve implements huma.Resolver.
func (m *Matched) Resolve(ctx huma.Context) (errs []error) {
	r, _ := humago.Unwrap(ctx)
	m.etags, errs = etag.IfMatch(r.Header)
	return errs
}
