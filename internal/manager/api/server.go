package api

import (
	"context"
	"net/http"
	"runtime"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/version"
)

// build is the body of GET /version. It has the same fields as /version of the operator.
type build struct {
	Service string `json:"service" example:"kubeop-manager"`
	Version string `json:"version" example:"v0.1.0"`
	Commit  string `json:"commit" doc:"The commit that the manager was built of."`
	Go      string `json:"go" doc:"The version of Go." example:"go1.26.8"`
}

type state struct {
	Status string `json:"status" enum:"ok"`
}

type ready struct {
	Status  string   `json:"status" enum:"ok,degraded"`
	Missing []string `json:"missing,omitempty" doc:"The dependencies of operations that are missing." example:"store"`
}

type answered[T any] struct{ Body T }

// registerServer registers the operations about the server itself, which need no token.
func registerServer(api huma.API, checks *readiness.Checks) {
	huma.Register(api, huma.Operation{
		OperationID: "getVersion", Method: http.MethodGet, Path: "/version", Tags: []string{"Server"},
		Summary: "Which build answers", Errors: []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusGatewayTimeout},
	}, func(context.Context, *struct{}) (*answered[build], error) {
		return &answered[build]{build{Service: "kubeop-manager", Version: version.Version, Commit: version.Commit, Go: runtime.Version()}}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "getHealth", Method: http.MethodGet, Path: "/healthz", Tags: []string{"Server"},
		Summary: "Whether the process answers", Errors: []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusGatewayTimeout},
	}, func(context.Context, *struct{}) (*answered[state], error) {
		return &answered[state]{state{Status: "ok"}}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "getReadiness", Method: http.MethodGet, Path: "/readyz", Tags: []string{"Server"},
		Summary: "Whether requests should be sent here, and what of them is missing",
		Description: "An answer 503 is that of a manager that stops. What is missing is named by an answer 200: operations that need it are answered by 503 or from what was there before, all others as ever. " +
			"The log has the reasons.",
		Errors: []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout},
	}, func(ctx context.Context, _ *struct{}) (*answered[ready], error) {
		if checks.Stopping() {
			return nil, problem.New(problem.Unavailable, "Not ready: stopping.")
		}
		missing := checks.Missing(ctx)
		if len(missing) > 0 {
			return &answered[ready]{ready{Status: "degraded", Missing: missing}}, nil
		}
		return &answered[ready]{ready{Status: "ok"}}, nil
	})
}
