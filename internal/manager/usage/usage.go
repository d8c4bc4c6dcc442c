// Package usage has the operations about what apps use.
package usage

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// Operations are the operations listUsage and setUsage.
type Operations struct {
	Store store.Usage
	// Cluster is the name of the cluster that kubeop measures; "" if it measures none.
	Cluster string
	// Has returns nil if the tenant exists, and otherwise the error to answer with.
	Has func(ctx context.Context, tenant string) error
	Now func() time.Time
}

// Amount is the amount of one meter that was used.
type Amount struct {
	Name   string `json:"name" example:"cpu.requested"`
	Unit   string `json:"unit,omitempty" doc:"Of meters that kubeop measures." example:"core-seconds"`
	Amount string `json:"amount" doc:"A decimal, which is exact." example:"1800.5"`
	// Missing is there so that an amount with unmeasured minutes is not taken for less use.
	Missing int `json:"missing,omitempty" doc:"The number of minutes between from and until that were not measured. The amount does not include them."`
}

// Usage is what one app, or a project beside its apps, used in one cluster within a time.
type Usage struct {
	Tenant  string    `json:"tenant"`
	Project string    `json:"project"`
	App     string    `json:"app" doc:"Empty for what belongs to the project, and to none of its apps."`
	Cluster string    `json:"cluster"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	Meters  []Amount  `json:"meters" nullable:"false" doc:"By name. A meter that is not there has the amount 0."`
}

// Gap is a time in which some minutes were not measured.
type Gap = billing.Gap

// Page is a page of usage, with the gaps of all pages.
type Page struct {
	page.List[Usage]
	Gaps []Gap `json:"gaps,omitempty" doc:"Where something was not measured, as exact as step. They are on the first page."`
}

type answer[T any] struct{ Body T }

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "listUsage", Method: http.MethodGet, Path: "/v1/usage", Summary: "What apps used, by tenant, project, app, cluster and time",
		Description: "Amounts are sums over time: of an app that requests half a core for an hour, cpu.requested is 1800 core-seconds. What was not measured is reported as a gap, and never guessed.",
		Tags:        []string{"Usage"}, Security: auth.Required, Errors: problem.Statuses(http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound),
	}, o.list)
	huma.Register(api, huma.Operation{
		OperationID: "setUsage", Method: http.MethodPost, Path: "/v1/usage", Summary: "What others measured, to be set and not added", DefaultStatus: http.StatusOK,
		Description: "An amount is that of a meter within a whole hour. It is set, and not added: sent again it changes nothing, and another one replaces it.",
		Tags:        []string{"Usage"}, Security: auth.Required, Errors: problem.Statuses(http.StatusBadRequest, http.StatusForbidden, http.StatusConflict),
	}, o.set)
}
