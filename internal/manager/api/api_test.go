package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/readiness"
	"github.com/kubeop/kubeop/internal/manager/request"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

func handler(t *testing.T, checks *readiness.Checks) http.Handler {
	t.Helper()
	h, err := New(Options{Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: checks, Store: operated.Store(t), RequestsPerSecond: 1000, Burst: 1000, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// noCluster has nothing in it.
func noCluster() *live.Operations {
	return &live.Operations{Index: index.New(), Synced: func(context.Context) error { return nil }}
}

func noChecks() *readiness.Checks { return readiness.New(logr.Discard(), time.Now) }

func call(h http.Handler, method, path string, body io.Reader) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(method, path, body))
	return answer
}

// problemOf reads a problem, and checks what every problem has.
func problemOf(t *testing.T, answer *httptest.ResponseRecorder) problem.Problem {
	t.Helper()
	var p problem.Problem
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	if got := answer.Header().Get("Content-Type"); got != problem.ContentType {
		t.Errorf("the media type is %s", got)
	}
	if p.Status != answer.Code || p.Type != "urn:kubeop:problem:"+string(p.Code) || p.Title == "" || p.RequestID == "" || p.RequestID != answer.Header().Get(request.IDHeader) {
		t.Errorf("status %d, request %s: %+v", answer.Code, answer.Header().Get(request.IDHeader), p)
	}
	return p
}

func TestBadRequestsAreProblems(t *testing.T) {
	h := handler(t, noChecks())
	for name, c := range map[string]struct {
		method, path string
		body         io.Reader
		want         problem.Code
		allow        string
	}{
		"an unknown path":                 {"GET", "/v2/tenants", nil, problem.NotFound, ""},
		"a path that climbs":              {"GET", "/docs/../../etc/passwd", nil, problem.NotFound, ""},
		"a method that is not there":      {"DELETE", "/version", nil, problem.NoSuchMethod, "GET, HEAD"},
		"an unknown parameter":            {"GET", "/version?pretty=1", nil, problem.Invalid, ""},
		"a body that is too large":        {"POST", "/version", strings.NewReader(strings.Repeat("x", MaxBody+1)), problem.TooLarge, ""},
		"a large body to an unknown path": {"PUT", "/x", strings.NewReader(strings.Repeat("x", MaxBody+1)), problem.TooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := call(h, c.method, c.path, c.body)
			if p := problemOf(t, answer); p.Code != c.want || answer.Header().Get("Allow") != c.allow {
				t.Errorf("%+v, allowed %q", p, answer.Header().Get("Allow"))
			}
		})
	}
}

// TestALostStoreIsNamedAndTakesNothingElseAway: the Service keeps the pod, and who needs the store is answered by a problem.
func TestALostStoreIsNamedAndTakesNothingElseAway(t *testing.T) {
	m, checks := newManager(t), noChecks()
	lost := errors.New("dial 10.0.0.1")
	checks.Add("store", func(context.Context) error { return lost })
	api, err := New(Options{
		Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: checks, Store: &broken{Store: m.store, all: lost}, RequestsPerSecond: 100, Burst: 100, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	health := NewHealth(checks, prometheus.NewRegistry())
	for _, h := range []http.Handler{api, health} {
		if answer := call(h, "GET", "/readyz", nil); answer.Code != http.StatusOK || answer.Body.String() != `{"status":"degraded","missing":["store"]}`+"\n" {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	}
	for _, path := range []string{"/docs", "/openapi.json", "/version", "/healthz"} {
		if answer := call(api, "GET", path, nil); answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	m.Handler = api
	if p := problemOf(t, m.as(m.holder("root", "admin"), "GET", "/v1/caller", "")); p.Code != problem.Unavailable {
		t.Errorf("%+v", p)
	}
	checks.Stop()
	if p := problemOf(t, call(api, "GET", "/readyz", nil)); p.Code != problem.Unavailable || p.Detail != "Not ready: stopping." {
		t.Errorf("while it stops: %+v", p)
	}
}

func TestTheVersionIsThatOfTheManager(t *testing.T) {
	var got map[string]string
	answer := call(handler(t, noChecks()), "GET", "/version", nil)
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got["service"] != "kubeop-manager" || got["version"] == "" {
		t.Errorf("%v: %s", err, answer.Body)
	}
}

func TestMetricsAreServedOnlyForPrometheus(t *testing.T) {
	registry := prometheus.NewRegistry()
	h, err := New(Options{Log: logr.Discard(), Live: noCluster(), Registry: registry, Checks: noChecks(), Store: operated.Store(t), RequestsPerSecond: 1000, Burst: 1000, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	call(h, "GET", "/version", nil)
	call(h, "GET", "/secret-name", nil)
	if answer := call(h, "GET", "/metrics", nil); answer.Code != http.StatusNotFound {
		t.Errorf("the API answers %d", answer.Code)
	}
	text := call(NewHealth(noChecks(), registry), "GET", "/metrics", nil).Body.String()
	if !strings.Contains(text, `kubeop_manager_request_duration_seconds_count{method="GET",route="GET /version",status="200"} 1`) || strings.Contains(text, "secret-name") {
		t.Errorf("the metrics are\n%s", text)
	}
}

func TestTheDocumentDescribesEveryOperation(t *testing.T) {
	h := handler(t, noChecks())
	answer := call(h, "GET", "/openapi.json", nil)
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Summary     string
			Security    []any
			Responses   map[string]struct {
				Headers map[string]any
				Content map[string]struct{ Schema map[string]any }
			}
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &document); err != nil || document.OpenAPI != "3.1.0" {
		t.Fatalf("%v: OpenAPI %s", err, document.OpenAPI)
	}
	if len(document.Paths) < 8 {
		t.Errorf("only %d paths are described", len(document.Paths))
	}
	page := call(h, "GET", "/docs", nil).Body.String()
	tagged := 0
	for path, methods := range document.Paths {
		for method, operation := range methods {
			if operation.OperationID == "" || operation.Summary == "" {
				t.Errorf("%s %s has no id or summary", method, path)
			}
			if !strings.Contains(page, `<section id="`+operation.OperationID+`">`) {
				t.Errorf("the page lacks %s %s", method, path)
			}
			expected := []string{"429", "500", "504"}
			if len(operation.Security) > 0 {
				expected = append(expected, "401", "503")
			}
			if method == "get" && operation.Responses["200"].Headers["ETag"] != nil {
				expected = append(expected, "304")
			}
			for _, status := range expected {
				if _, has := operation.Responses[status]; !has {
					t.Errorf("%s %s does not say that it answers %s", method, path, status)
				}
			}
			tagged += len(operation.Responses["200"].Headers)
			for status, response := range operation.Responses {
				if _, is := response.Content[problem.ContentType]; status >= "400" && !is {
					t.Errorf("%s %s: %s is not described as a problem", method, path, status)
				}
			}
		}
	}
	if tagged == 0 {
		t.Error("no answer has an ETag")
	}
}

// TestThePageNeedsNothingElse: neither the internet nor scripts, and a browser applies its style.
func TestThePageNeedsNothingElse(t *testing.T) {
	answer := call(handler(t, noChecks()), "GET", "/docs", nil)
	page := answer.Body.String()
	if found := regexp.MustCompile(`(?i)<script|<link|<img|src=|@import|https?://|\son\w+=`).FindString(page); found != "" {
		t.Errorf("the page has %s", found)
	}
	style, _, _ := strings.Cut(page[strings.Index(page, "<style>")+len("<style>"):], "</style>")
	file, err := os.ReadFile("../apidocs/page.css")
	if err != nil {
		t.Fatal(err)
	}
	if style != string(file) {
		t.Errorf("the style is not the one whose hash the policy allows:\n%s", style)
	}
	if policy := answer.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "style-src 'sha256-") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the policy is %s", policy)
	}
}

// TestABodyThatCannotBeReadIsTheClients: neither the manager's fault nor a reason to log one.
func TestABodyThatCannotBeReadIsTheClients(t *testing.T) {
	m := newManager(t)
	for name, c := range map[string]struct {
		body io.Reader
		code problem.Code
	}{
		"the client disconnects":          {io.MultiReader(strings.NewReader(`{"name":`), iotest.ErrReader(io.ErrUnexpectedEOF)), problem.BadRequest},
		"it is wrongly chunked":           {iotest.ErrReader(errors.New("invalid byte in chunk length")), problem.BadRequest},
		"it does not say how large it is": {io.MultiReader(strings.NewReader(`{"name":"`), strings.NewReader(strings.Repeat("x", MaxBody))), problem.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if p := problemOf(t, call(m, "POST", "/v1/setup", c.body)); p.Code != c.code {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestEachTokenHasALimitOfItsOwn, which the requests of others do not count for, although all come from one address and say that they come from others.
func TestEachTokenHasALimitOfItsOwn(t *testing.T) {
	m := newManager(t)
	first, second := m.holder("first", "admin"), m.holder("second", "admin")
	handler, err := New(Options{
		Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: m.store, RequestsPerSecond: 1, Burst: 2,
		Proxies: request.Proxies{netip.MustParsePrefix("192.0.2.1/32")}, Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	address := 0
	from := func(secret string) *httptest.ResponseRecorder {
		address++
		r := httptest.NewRequest("GET", "/v1/caller", nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", address))
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		return answer
	}
	for range 2 {
		if answer := from(first); answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
	}
	refused := from(first)
	if p := problemOf(t, refused); p.Code != problem.TooManyRequests || refused.Header().Get("Retry-After") != "1" {
		t.Errorf("%+v with %v", p, refused.Header())
	}
	if answer := from(second); answer.Code != http.StatusOK {
		t.Errorf("another token: %d %s", answer.Code, answer.Body)
	}
}

// TestEveryAnswerPassesTheLimitsAndHasTheHeaders, also one of a handler that is no operation, asked for a part of it.
func TestEveryAnswerPassesTheLimitsAndHasTheHeaders(t *testing.T) {
	m := newManager(t)
	handler, err := New(Options{
		Log: logr.Discard(), Live: noCluster(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: m.store, RequestsPerSecond: 1, Burst: 1, Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/docs", nil)
	r.Header.Set("Range", "bytes=9999999-")
	r.Header.Set("If-Match", `"x"`)
	first := httptest.NewRecorder()
	handler.ServeHTTP(first, r)
	if h := first.Header(); first.Code != http.StatusOK || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || !strings.Contains(h.Get("Content-Security-Policy"), "base-uri 'none'") {
		t.Errorf("%d with %v", first.Code, h)
	}
	second := call(handler, "GET", "/docs", nil)
	if p := problemOf(t, second); p.Code != problem.TooManyRequests || second.Header().Get("Retry-After") == "" {
		t.Errorf("%+v with %v", p, second.Header())
	}
}
