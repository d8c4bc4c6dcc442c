package webhooks

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/kubeop/kubeop/internal/manager/etag"
	"github.com/kubeop/kubeop/internal/store"
)

// tagged is the answer about one webhook.
type tagged struct {
	Status int
	ETag   string `header:"ETag" doc:"It changes whenever the body does."`
	Body   Webhook
}

// tag answers a webhook with the ETag that If-Match takes.
func (o *Operations) tag(w store.Webhook) (*tagged, error) {
	body := answerOf(w, store.Time(o.Now()))
	text, err := json.Marshal(body)
	return &tagged{http.StatusOK, etag.Of(text), body}, err
}

// unless answers 304, which has no body, if the caller has the answer already.
func (t *tagged) unless(k etag.Known) {
	if k.Has(t.ETag) {
		t.Status = http.StatusNotModified
	}
}

// Matched is what may be made only upon a version of the webhook.
type Matched struct {
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"ETags of the webhook that the caller saw, or *. If it is none of them any more, the answer is 409."`
	etags   etag.Required
}

// Resolve implements huma.Resolver.
func (m *Matched) Resolve(ctx huma.Context) (errs []error) {
	r, _ := humago.Unwrap(ctx)
	m.etags, errs = etag.IfMatch(r.Header)
	return errs
}
