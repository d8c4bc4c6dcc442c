package client

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/managed"
)

// started returns a manager of a cluster with the apps api, db and web in the project shop of the tenant acme.
func started(t *testing.T) *managed.Manager {
	t.Helper()
	m := managed.Start(t, 1000)
	m.Apply(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}}, app("api"), app("db"), app("web"))
	return m
}

func app(name string) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: name, CreationTimestamp: metav1.Unix(1_700_000_000, 0)}}
	a.Spec.Type = v1alpha1.AppImage
	a.Status.URL = name + ".example.com"
	a.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "delivered", LastTransitionTime: metav1.Unix(1_700_000_060, 0)}}
	return a
}

func newClient(t *testing.T, server, token string) *Client {
	t.Helper()
	c, err := New(Options{Server: server, Token: token, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEveryOperationHasAMethod: otherwise the document changed, and the client was not made again.
func TestEveryOperationHasAMethod(t *testing.T) {
	text, err := os.ReadFile("../../docs/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Responses   map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	found := 0
	for path, methods := range document.Paths {
		for method, operation := range methods {
			names := []string{strings.ToUpper(operation.OperationID[:1]) + operation.OperationID[1:]}
			content := operation.Responses["200"].Content
			if _, streamed := content["text/event-stream"]; streamed {
				names = append(names, names[0]+"Events")
			}
			if _, all := content["application/json"]; !all && len(names) > 1 {
				names = names[1:]
			}
			for _, name := range names {
				found++
				if _, has := reflect.TypeFor[*Client]().MethodByName(name); !has {
					t.Errorf("%s %s has no method %s: run make generate", method, path, name)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d operations were found", found)
	}
}

// TestAProgramReadsWhatItsTokenMaySee of a real manager: lists page by page, one object, and nothing again that it has.
func TestAProgramReadsWhatItsTokenMaySee(t *testing.T) {
	ctx := t.Context()
	m := started(t)
	viewer, id := m.Token("project:acme/shop:view")
	c := newClient(t, m.URL+"/", viewer)
	caller, err := c.GetCaller(ctx)
	if err != nil || caller.Body.ID != id || caller.Header.Get("X-Request-Id") == "" {
		t.Fatalf("%v: %+v", err, caller)
	}
	var pages int
	apps, err := All(func(cursor string) ([]App, string, error) {
		pages++
		page, err := c.ListApps(ctx, "acme", "shop", ListAppsParams{Limit: 2, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return page.Body.Items, page.Body.Next, nil
	})
	if err != nil || len(apps) != 3 || pages != 2 {
		t.Fatalf("%v: %d apps on %d pages", err, len(apps), pages)
	}
	want := App{
		Tenant: "acme", Project: "shop", Name: "web", Type: Image, URL: "web.example.com", Ready: AppReadyTrue, Message: "delivered", Created: time.Unix(1_700_000_000, 0).UTC(),
		Conditions: []Condition{{Type: "Ready", Status: ConditionStatusTrue, Reason: "Succeeded", Message: "delivered", Since: time.Unix(1_700_000_060, 0).UTC()}},
	}
	if diff := cmp.Diff(want, apps[2]); diff != "" {
		t.Errorf("the app (-want +got):\n%s", diff)
	}
	first, err := c.GetApp(ctx, "acme", "shop", "web", GetAppParams{})
	if err != nil || first.Body.Name != "web" || first.Header.Get("ETag") == "" {
		t.Fatalf("%v: %+v", err, first)
	}
	if _, err := c.GetApp(ctx, "acme", "shop", "web", GetAppParams{IfNoneMatch: first.Header.Get("ETag")}); !errors.Is(err, ErrNotModified) {
		t.Errorf("what it has: %v", err)
	}
	for _, name := range []string{"../../../v1/tokens", "a/b", "%2e%2e", "ä ?#", "web;x"} {
		var refused *Error
		if _, err := c.GetApp(ctx, "acme", "shop", name, GetAppParams{}); !errors.As(err, &refused) || refused.Status/100 != 4 && refused.Status/100 != 3 {
			t.Errorf("the app %q: %v", name, err)
		}
	}
}

// TestATokenIsCreatedUsedAndRevoked through the client alone.
func TestATokenIsCreatedUsedAndRevoked(t *testing.T) {
	ctx := t.Context()
	m := started(t)
	admin, _ := m.Token("admin")
	c := newClient(t, m.URL, admin)
	made, err := c.CreateToken(ctx, Wanted{Name: "CI", Scopes: []string{"tenant:acme:view"}})
	if err != nil || made.Status != http.StatusCreated || made.Body.Token == "" || made.Body.Expires.Before(time.Now()) {
		t.Fatalf("%v: %+v", err, made)
	}
	if tenants, err := newClient(t, m.URL, made.Body.Token).ListTenants(ctx, ListTenantsParams{}); err != nil || len(tenants.Body.Items) != 1 {
		t.Errorf("%v: %+v", err, tenants)
	}
	if revoked, err := c.RevokeToken(ctx, made.Body.ID); err != nil || revoked.Status != http.StatusNoContent {
		t.Errorf("%v: %+v", err, revoked)
	}
	audit, err := c.ListAudit(ctx, ListAuditParams{Limit: 1})
	if err != nil || audit.Body.Items[0].Action != "revokeToken" {
		t.Errorf("%v: %+v", err, audit)
	}
}

// TestRefusalsAreErrorsWithTheirCode, whoever refuses. None repeats the token.
func TestRefusalsAreErrorsWithTheirCode(t *testing.T) {
	m := started(t)
	viewer, _ := m.Token("project:acme/shop:view")
	busy := managed.Start(t, 1)
	hurried, _ := busy.Token("admin")
	unread := started(t)
	unread.Unsynced = errors.New("dial 10.0.0.1")
	admin, _ := unread.Token("admin")
	const forged = "kubeop_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for name, tc := range map[string]struct {
		server, token string
		call          func(*Client) error
		status        int64
		code          string
		after         bool
		says          string
	}{
		"a forged token":   {m.URL, forged, reads, 401, "unauthenticated", false, ""},
		"no token":         {m.URL, "", reads, 401, "unauthenticated", false, ""},
		"no right":         {m.URL, viewer, func(c *Client) error { _, err := c.ListTokens(t.Context(), ListTokensParams{}); return err }, 403, "forbidden", false, ""},
		"what others have": {m.URL, viewer, func(c *Client) error { _, err := c.ListApps(t.Context(), "beta", "shop", ListAppsParams{}); return err }, 404, "not-found", false, ""},
		"an invalid request": {m.URL, viewer, func(c *Client) error {
			_, err := c.ListApps(t.Context(), "acme", "shop", ListAppsParams{Limit: 501})
			return err
		}, 422, "invalid", false, "query.limit"},
		"a stream of others'": {m.URL, viewer, func(c *Client) error { return last(c.ListAppsEvents(t.Context(), "beta", "shop", ListAppsParams{})) }, 404, "not-found", false, ""},
		"too many requests":   {busy.URL, hurried, func(c *Client) error { return errors.Join(ignoring(reads(c)), reads(c)) }, 429, "rate-limited", true, ""},
		"caches not filled":   {unread.URL, admin, reads, 503, "unavailable", true, "has not read the cluster yet"},
		"too late":            {answering(t, "application/problem+json", `{"status":504,"code":"deadline-exceeded","title":"The operation took too long.","requestId":"r-1"}`, 504), forged, reads, 504, "deadline-exceeded", false, "r-1"},
		"a proxy":             {answering(t, "text/html", "<html>", 502), forged, reads, 502, "", false, "something before it"},
		"a status that lies":  {answering(t, "application/problem+json", `{"status":200,"code":"x","title":"Fine"}`, 500), forged, reads, 500, "x", false, ""},
		"a problem without":   {answering(t, "application/problem+json", `{}`, 503), forged, reads, 503, "", false, ""},
		"no page":             {m.URL + "/elsewhere", viewer, reads, 404, "not-found", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.call(newClient(t, tc.server, tc.token))
			var refused *Error
			if !errors.As(err, &refused) {
				t.Fatalf("it ends with %v", err)
			}
			if refused.Status != tc.status || refused.Code != tc.code || (refused.RetryAfter > 0) != tc.after || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), fmt.Sprint(tc.status)) {
				t.Errorf("%+v: %v", refused, err)
			}
			if tc.token != "" && strings.Contains(fmt.Sprintf("%v %+v", err, refused), tc.token) {
				t.Errorf("it repeats the token: %v", err)
			}
		})
	}
}

// ignoring drops the error of a request that only counts.
func ignoring(error) error { return nil }

func reads(c *Client) error {
	_, err := c.ListProjects(context.Background(), "acme", ListProjectsParams{})
	return err
}

// answering returns the URL of a server that answers everything alike.
func answering(t *testing.T, contentType, body string, status int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestAnAnswerThatIsCutIsNoAnswer, and neither is one that is no JSON or comes too late.
func TestAnAnswerThatIsCutIsNoAnswer(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"cut in the body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = fmt.Fprint(w, `{"items":[`)
			panic(http.ErrAbortHandler)
		},
		"cut before the body": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no JSON":             func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>") },
		"nothing":             func(http.ResponseWriter, *http.Request) {},
		"late": func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, `{"items":[`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			t.Cleanup(s.Close)
			c := newClient(t, s.URL, "secret")
			c.timeout = 300 * time.Millisecond
			if err := reads(c); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// TestATokenGoesOnlyToTheManager: not over plain HTTP, not to a redirection, and not to a server with a certificate of an unknown authority.
func TestATokenGoesOnlyToTheManager(t *testing.T) {
	for server, allowed := range map[string]bool{
		"http://127.0.0.1:8443": true, "http://[::1]:8443/": true, "http://localhost": true, "https://kubeop.example.com/path": true, "http://127.0.0.2": true,
		"http://kubeop.example.com": false, "http://127.0.0.1.example.com": false, "http://localhost.example.com": false, "http://10.0.0.1": false, "http://[::ffff:10.0.0.1]": false,
		"kubeop.example.com": false, "": false, "ftp://127.0.0.1": false, "https://": false, "https://me:hunter2@kubeop.example.com": false, "https://h:hunter2": false, "https://h?x=hunter2": false,
		"https://h#hunter2": false, "/kubeop": false,
	} {
		_, err := New(Options{Server: server, Token: "secret"})
		if (err == nil) != allowed || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", server, err)
		}
	}
	var got []string
	record := func(w http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) }
	elsewhere := httptest.NewServer(http.HandlerFunc(record))
	defer elsewhere.Close()
	moved := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	var refused *Error
	if err := reads(newClient(t, moved.URL, "secret")); !errors.As(err, &refused) || !strings.Contains(err.Error(), "not followed") || len(got) > 0 {
		t.Errorf("a redirection: %v, and %q was sent there", err, got)
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(record))
	defer secure.Close()
	if err := reads(newClient(t, secure.URL, "secret")); err == nil || len(got) > 0 {
		t.Errorf("an unknown authority: %v, and %q was sent", err, got)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	known, err := New(Options{Server: secure.URL, Token: "secret", Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	_ = reads(known) // The answer is empty.
	if diff := cmp.Diff([]string{"Bearer secret"}, got); diff != "" {
		t.Errorf("sent to the manager (-want +got):\n%s", diff)
	}
}
