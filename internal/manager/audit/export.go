package audit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// NextCursor is the header with the cursor of the next part of an export.
const NextCursor = "X-Next-Cursor"

// lines is the media type of an export: a JSON object on each line.
const lines = "application/x-ndjson"

type exportQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"How many events to answer at most."`
	Cursor string `query:"cursor" maxLength:"512" doc:"The header X-Next-Cursor of the part before."`
	Tenant string `query:"tenant" maxLength:"63" doc:"The tenant. Default: the only one of the caller; all, for administrators."`
	Since  int64  `query:"since" minimum:"0" doc:"Answer only events with a greater id, such as the greatest one that the caller has."`
}

// export is the answer as text: one event on each line, not a JSON list.
type export struct {
	Next string `header:"X-Next-Cursor" doc:"The cursor of the next part. It is not there after the last one."`
	Body func(huma.Context)
}

// registerExport registers the operation for programs that copy the log to another place.
func registerExport(api huma.API, log store.Audit) {
	huma.Register(api, huma.Operation{
		OperationID: "exportAudit", Method: http.MethodGet, Path: "/v1/audit/export", Summary: "The audit log as JSON lines, the newest first",
		Description: "Each line is an event as listAudit answers it. With since, the id of the newest event of the export before, it answers what came after that.",
		Tags:        []string{"Audit"}, Security: auth.Required, Errors: problem.Statuses(http.StatusBadRequest, http.StatusForbidden),
		Responses: map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{lines: {Schema: &huma.Schema{Type: huma.TypeString}}}}},
	}, func(ctx context.Context, q *exportQuery) (*export, error) {
		tenant, refused := auth.Of(ctx).Place(q.Tenant, access.Audit)
		if refused != nil {
			return nil, refused
		}
		before, err := position(page.Query{Cursor: q.Cursor})
		if err != nil {
			return nil, err
		}
		found, err := log.ListEvents(ctx, tenant, before, q.Limit+1)
		if err != nil {
			return nil, problem.FromStore(ctx, err)
		}
		return exported(q, found)
	})
}

// exported writes each event on its own line, and stops before the event that the caller already has.
func exported(q *exportQuery, found []store.Event) (*export, error) {
	for i, e := range found {
		if e.ID <= q.Since {
			found = found[:i]
			break
		}
	}
	rest := page.Of(page.Query{Limit: q.Limit}, found, func(e store.Event) string { return strconv.FormatInt(e.ID, 10) })
	var text []byte
	var failed error
	for _, e := range rest.Items {
		line, err := json.Marshal(Event(e))
		failed = errors.Join(failed, err)
		text = append(append(text, line...), '\n')
	}
	if failed != nil {
		return nil, failed
	}
	return &export{Next: rest.Next, Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", lines)
		ctx.SetStatus(http.StatusOK)
		// It fails only if the client disconnected.
		_, _ = ctx.BodyWriter().Write(text)
	}}, nil
}
