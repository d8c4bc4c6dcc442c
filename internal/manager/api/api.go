// Package api is the handler of the management API: the operations, their OpenAPI document, and the checks that every request passes first.
package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/apidocs"
	"github.com/kubeop/kubeop/internal/manager/audit"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/history"
	"github.com/kubeop/kubeop/internal/manager/invoices"
	"github.com/kubeop/kubeop/internal/manager/kubeconfigs"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/logs"
	"github.com/kubeop/kubeop/internal/manager/oidc"
	"github.com/kubeop/kubeop/internal/manager/owners"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/ratelimit"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/request"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/manager/tokens"
	"github.com/kubeop/kubeop/internal/manager/usage"
	"github.com/kubeop/kubeop/internal/manager/webhooks"
	"github.com/kubeop/kubeop/internal/manager/writes"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/version"
)

// MaxBody is the size, in bytes, from which on the body of a request is refused. It is the default of huma.
const MaxBody = 1 << 20

// Options has the parts of the API and its limits.
type Options struct {
	Log      logr.Logger
	Registry prometheus.Registerer
	Checks   *readiness.Checks
	Store    store.Store
	// Signing signs the JWTs of projects; nil signs none.
	Signing *signing.Keys
	// Issuers verifies the ID tokens of people, nil if there are none. Owners has the scopes of people.
	Issuers *oidc.Issuers
	Owners  *owners.Owners
	// Live reads the cluster.
	Live *live.Operations
	// Repositories takes the writes, and has the history of apps.
	Repositories Repositories
	// Pods reads the logs of pods. It is nil if the manager may not read them.
	Pods corev1client.PodsGetter
	Optional
	// RequestsPerSecond and Burst limit the requests of each address, and of each token.
	RequestsPerSecond float64
	Burst             int
	Proxies           request.Proxies
	Now               func() time.Time
}

// Optional has what the manager does only if it is configured.
type Optional struct {
	// Kubeconfigs gives people tokens for the cluster. If it is nil, they get none.
	Kubeconfigs *kubeconfigs.Operations
	// Webhooks sends messages to webhooks. If it is nil, nothing is sent.
	Webhooks *webhooks.Operations
}

// Repositories has what all operations need of repositories.
type Repositories interface {
	writes.Repositories
	history.Repositories
}

// New returns the handler of the API.
func New(o Options) (http.Handler, error) {
	if o.Signing == nil {
		o.Signing = &signing.Keys{Now: o.Now}
	}
	mux := http.NewServeMux()
	operations := humago.New(mux, settings())
	registerServer(operations, o.Checks)
	auth.Describe(operations.OpenAPI())
	perToken := ratelimit.New(o.RequestsPerSecond, o.Burst, o.Now)
	authenticator := &auth.Authenticator{Tokens: o.Store, Projects: o.Signing, Issuers: o.Issuers, Owners: o.Owners, Limit: perToken.Refuse, Now: o.Now}
	operations.UseMiddleware(limitTime, authenticator.Middleware(operations))
	(&tokens.Operations{Store: o.Store, Project: o.Live.Project, Signing: o.Signing, JWTs: tokens.NewJWTLimit(o.Now), Now: o.Now}).Register(operations)
	audit.Register(operations, o.Store)
	o.registerWebhooks(operations)
	o.registerKubeconfigs(operations)
	o.Live.Register(operations)
	changes := &writes.Operations{Repositories: o.Repositories, Live: o.Live, Store: o.Store, Now: o.Now}
	changes.Register(operations)
	allowed := func(ctx context.Context, verb access.Verb, of history.App) error {
		return changes.Allowed(ctx, verb, writes.Object(of))
	}
	(&history.Operations{Repositories: o.Repositories, Allowed: allowed, OfPlatform: writes.OfPlatform}).Register(operations)
	o.registerUsage(operations)
	(&logs.Operations{Pods: o.Pods, Allowed: o.Live.Logs}).Register(operations)
	if err := serveDocument(mux, operations.OpenAPI()); err != nil {
		return nil, err
	}
	routeOf := func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
	perAddress := ratelimit.New(o.RequestsPerSecond, o.Burst, o.Now)
	handler := perAddress.Limit(limitBody(orNotFound(mux)))
	return request.NewFollower(o.Log, o.Registry, o.Proxies, problem.New(problem.Internal, "").Write).Follow(routeOf, secure(handler)), nil
}

func (o Options) registerWebhooks(api huma.API) {
	hooks := o.Webhooks
	if hooks == nil {
		hooks = &webhooks.Operations{}
	}
	hooks.Store, hooks.Tenant, hooks.Now, hooks.Writes = o.Store, o.Live.TenantRef, o.Now, webhooks.NewLimit(o.Now)
	hooks.Register(api)
}

// registerUsage registers what apps use, and what that costs.
func (o Options) registerUsage(api huma.API) {
	used := &usage.Operations{Store: o.Store, Cluster: o.Live.Measured, Has: o.Live.Tenant, Now: o.Now}
	used.Register(api)
	(&invoices.Operations{
		Store: o.Store, Used: used.Each, Gaps: used.GapsOf, Tenant: o.Live.TenantRef, PriceLists: o.Live.PriceLists, PricesOf: o.Live.PricesOf, PricesNamed: o.Live.PricesNamed, Now: o.Now, Turns: invoices.NewTurns(),
	}).Register(api)
}

func (o Options) registerKubeconfigs(api huma.API) {
	of := o.Kubeconfigs
	if of == nil {
		of = &kubeconfigs.Operations{}
	}
	of.Store, of.Project, of.Tenant, of.Tenants, of.Projects = o.Store, o.Live.Project, o.Live.TenantRef, o.Live.TenantNames, o.Live.ProjectNames
	of.Grant, of.Now, of.Tokens = o.Owners.Grant, o.Now, kubeconfigs.NewLimits(o.Now)
	of.Register(api)
}

// limitTime ends the context of an operation that takes too long.
func limitTime(ctx huma.Context, next func(huma.Context)) {
	limited, cancel := context.WithTimeout(ctx.Context(), config.OperationTimeout)
	defer cancel()
	next(huma.WithContext(ctx, limited))
}

// settings returns the settings of huma. The pages of huma are not served, because they load scripts from the internet.
func settings() huma.Config {
	c := huma.DefaultConfig("kubeop", version.Version)
	c.Info.Description = "The management API of kubeop. Answers from 400 on are problem details (RFC 9457) with a stable code."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.RejectUnknownQueryParameters = true
	c.Formats = map[string]huma.Format{"application/json": problem.JSON, "json": problem.JSON}
	c.Transformers = append(c.Transformers, func(ctx huma.Context, _ string, body any) (any, error) {
		if p, is := body.(*problem.Problem); is {
			answer := *p
			answer.RequestID = request.ID(ctx.Context())
			return &answer, nil
		}
		return body, nil
	})
	return c
}

// serveDocument serves the OpenAPI document and a page that shows it. Call it after the last operation is registered, because it makes both only once.
func serveDocument(mux *http.ServeMux, document *huma.OpenAPI) error {
	text, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing the OpenAPI document: %w", err)
	}
	page, err := apidocs.Render(document)
	if err != nil {
		return fmt.Errorf("writing the page of the API: %w", err)
	}
	// Writing fails only if the client disconnected.
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	})
	mux.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", apidocs.Policy)
		_, _ = w.Write(page)
	})
	return nil
}

// secure sets headers that protect browsers.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// limitBody refuses a body whose Content-Length is too large, and stops reading a body without a Content-Length at the limit.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength >= MaxBody {
			w.Header().Set("Connection", "close")
			problem.New(problem.TooLarge, fmt.Sprintf("A body has to have less than %d bytes.", MaxBody)).Write(w, request.ID(r.Context()))
			return
		}
		// huma answers 413 once it has read MaxBody bytes. This limit is for handlers that read the body themselves.
		r.Body = body{http.MaxBytesReader(w, r.Body, MaxBody+1)}
		next.ServeHTTP(w, r)
	})
}

// body marks the errors of reading that the client caused, to distinguish them from errors of the manager.
type body struct{ io.ReadCloser }

// Read implements io.Reader.
func (b body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && err != io.EOF {
		err = &problem.UnreadableBody{Err: err}
	}
	return n, err
}

// orNotFound answers with a Problem if the mux has no handler for a request.
func orNotFound(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := &refusal{header: http.Header{}}
		handler.ServeHTTP(refused, r)
		if refused.status == http.StatusMethodNotAllowed {
			allowed := refused.header.Get("Allow")
			w.Header().Set("Allow", allowed)
			problem.New(problem.NoSuchMethod, "The methods of this resource are "+strings.TrimSpace(allowed)+".").Write(w, request.ID(r.Context()))
			return
		}
		problem.New(problem.NotFound, "").Write(w, request.ID(r.Context()))
	})
}

// refusal is a ResponseWriter that keeps the status and the headers with which the mux refuses a request, and discards the text.
type refusal struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (r *refusal) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *refusal) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *refusal) Write(data []byte) (int, error) { return len(data), nil }
