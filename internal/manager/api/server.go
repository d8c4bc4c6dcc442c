package api

import (
	"context"
	"net/http"
	"runtime"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/version"
)

// build is the body of GET /version, with the same fields as that of the operator.
type build struct {
	Service string `json:"service" example:"kubeop-manager"`
	Version string `json:"version" example:"v0.1.0"`
	Commit  string `json:"commit" doc:"The commit that the manager was built of."`
	Go      string `json:"go" doc:"The version of Go." example:"go1.26.8"`
}

type state struct {
	Status string `json:"status" enum:"ok"`
}

type answered[T any] struct{ Body T }

// registerServer registers what every caller may ask of the server itself, without a token.
func registerServer(api huma.API, checks *readiness.Checks) {
	huma.Register(api, huma.Operation{
		OperationID: "getVersion", Method: http.MethodGet, Path: "/version", Tags: []string{"Server"},
		Summary: "Which build answers", Errors: []int{http.StatusTooManyRequests},
	}, func(context.Context, *struct{}) (*answered[build], error) {
		return &answered[build]{build{Service: "kubeop-manager", Version: version.Version, Commit: version.Commit, Go: runtime.Version()}}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "getHealth", Method: http.MethodGet, Path: "/healthz", Tags: []string{"Server"},
		Summary: "Whether the process answers", Errors: []int{http.StatusTooManyRequests},
	}, func(context.Context, *struct{}) (*answered[state], error) {
		return &answered[state]{state{Status: "ok"}}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "getReadiness", Method: http.MethodGet, Path: "/readyz", Tags: []string{"Server"},
		Summary:     "Whether all is there that requests need",
		Description: "The problem of an answer 503 names what is not ready. The log has the reasons.",
		Errors:      []int{http.StatusTooManyRequests, http.StatusServiceUnavailable},
	}, func(ctx context.Context, _ *struct{}) (*answered[state], error) {
		not := checks.NotReady(ctx)
		if len(not) == 0 {
			return &answered[state]{state{Status: "ok"}}, nil
		}
		p := problem.New(problem.Unavailable, "Not ready: "+strings.Join(not, ", ")+".")
		for _, name := range not {
			p.Errors = append(p.Errors, problem.Fault{Location: name, Message: "is not ready"})
		}
		return nil, p
	})
}
