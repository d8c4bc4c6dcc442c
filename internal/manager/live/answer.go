package live

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/etag"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/page"
)

// answer writes a body that was encoded when its objects changed.
type answer struct{ Body func(huma.Context) }

type one struct {
	ETag         string `header:"ETag" doc:"It changes whenever the body does."`
	CacheControl string `header:"Cache-Control" doc:"Clients may store the answer, and have to ask each time whether it is still the present one."`
	Body         func(huma.Context)
}

// answerOf answers an item, or that the caller has it.
func answerOf(k etag.Known, item *index.Item) *one {
	return &one{ETag: item.ETag, CacheControl: "private, no-cache", Body: func(ctx huma.Context) {
		if k.Has(item.ETag) {
			ctx.SetStatus(http.StatusNotModified)
			return
		}
		write(ctx, append(bytes.Clone(item.Body), '\n'))
	}}
}

// buffers are reused: pages are large, and collecting thousands of them as garbage would cost more than writing them.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// pageOf answers with a page. read has one item more than the limit if there is a next page.
func pageOf(q page.Query, read []*index.Item) *answer {
	list := page.Of(q, read, func(item *index.Item) string { return item.Name })
	return &answer{func(ctx huma.Context) {
		body := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(body)
		body.Reset()
		body.WriteString(`{"items":[`)
		for i, item := range list.Items {
			if i > 0 {
				body.WriteByte(',')
			}
			body.Write(item.Body)
		}
		body.WriteByte(']')
		if list.Next != "" {
			// A cursor is base64, which needs no escape.
			body.WriteString(`,"next":"` + list.Next + `"`)
		}
		body.WriteString("}\n")
		write(ctx, body.Bytes())
	}}
}

func write(ctx huma.Context, body []byte) {
	ctx.SetHeader("Content-Type", "application/json")
	ctx.SetStatus(http.StatusOK)
	// It fails only if the client disconnected.
	_, _ = ctx.BodyWriter().Write(body)
}
