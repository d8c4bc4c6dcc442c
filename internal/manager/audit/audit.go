// Package audit has the operation that reads the audit log.
package audit

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// Event is a write that was made.
type Event struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Actor     string    `json:"actor" doc:"The id of the caller's token, or setup."`
	Action    string    `json:"action" doc:"The id of the operation." example:"createToken"`
	Object    string    `json:"object" doc:"What it was made on."`
	Tenant    string    `json:"tenant,omitempty"`
	Address   string    `json:"address" doc:"Where the request came from."`
	RequestID string    `json:"requestId"`
	Commit    string    `json:"commit,omitempty" doc:"The commit that the write made."`
}

type answer struct{ Body page.List[Event] }

// Register registers the operation.
func Register(api huma.API, log store.Audit) {
	huma.Register(api, huma.Operation{
		OperationID: "listAudit", Method: http.MethodGet, Path: "/v1/audit", Summary: "What was written, by whom and from where, the newest first",
		Tags: []string{"Audit"}, Security: auth.Required,
		Errors: problem.Statuses(http.StatusBadRequest, http.StatusForbidden),
	}, func(ctx context.Context, q *page.Query) (*answer, error) {
		caller := auth.Of(ctx)
		if !caller.Grant.May(access.Audit, access.Read, caller.Token.Tenant, "") {
			return nil, problem.New(problem.Forbidden, "")
		}
		before, err := position(q)
		if err != nil {
			return nil, err
		}
		found, err := log.ListEvents(ctx, caller.Token.Tenant, before, q.Limit+1)
		if err != nil {
			return nil, problem.FromStore(ctx, err)
		}
		all := make([]Event, 0, len(found))
		for _, e := range found {
			all = append(all, Event(e))
		}
		return &answer{page.Of(*q, all, func(e Event) string { return strconv.FormatInt(e.ID, 10) })}, nil
	})
}

func position(q *page.Query) (int64, error) {
	key, err := q.Key()
	if err != nil || key == "" {
		return 0, err
	}
	id, err := strconv.ParseInt(key, 10, 64)
	if err != nil || id < 1 {
		return 0, problem.New(problem.BadRequest, "The cursor is not one that this list answered.", problem.Fault{Location: "query.cursor", Message: "is no cursor of this list"})
	}
	return id, nil
}
