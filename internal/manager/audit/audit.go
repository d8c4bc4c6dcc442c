// Package audit has the operations that read the audit log.
package audit

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

type answer struct{ Body page.List[Event] }

// Register registers the operations.
func Register(api huma.API, log store.Audit) {
	registerExport(api, log)
	huma.Register(api, huma.Operation{
		OperationID: "listAudit", Method: http.MethodGet, Path: "/v1/audit", Summary: "What was written, by whom and from where, the newest first",
		Tags: []string{"Audit"}, Security: auth.Required,
		Errors: problem.Statuses(http.StatusBadRequest, http.StatusForbidden),
	}, func(ctx context.Context, q *page.OfTenant) (*answer, error) {
		tenant, refused := auth.Of(ctx).Place(q.Tenant, access.Audit)
		if refused != nil {
			return nil, refused
		}
		before, err := position(q.Query)
		if err != nil {
			return nil, err
		}
		found, err := log.ListEvents(ctx, tenant, before, q.Limit+1)
		if err != nil {
			return nil, problem.FromStore(ctx, err)
		}
		all := make([]Event, 0, len(found))
		for _, e := range found {
			all = append(all, Event(e))
		}
		return &answer{page.Of(q.Query, all, func(e Event) string { return strconv.FormatInt(e.ID, 10) })}, nil
	})
}
