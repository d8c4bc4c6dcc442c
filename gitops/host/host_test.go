package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// loopback lets tests reach their own servers.
var loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

const hash = "4f2b1f2c9e0a6f0f0d3c1f7d0a1b2c3d4e5f6a7b"

// request is what a server received.
type request struct {
	Method, Path, Authorization string
	Body                        map[string]any
}

// serve answers each request with a status, and records the last one.
func serve(t *testing.T, answer func(w http.ResponseWriter)) (*httptest.Server, *request) {
	t.Helper()
	got := &request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*got = request{Method: r.Method, Path: r.URL.EscapedPath(), Authorization: r.Header.Get("Authorization")}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal(body, &got.Body); err != nil {
			t.Errorf("the body %q: %v", body, err)
		}
		delete(got.Body, "created_at") // The library sends GitHub its zero times, which GitHub ignores.
		delete(got.Body, "updated_at")
		answer(w)
	}))
	t.Cleanup(server.Close)
	return server, got
}

func created(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"id":7,"number":7,"iid":7,"state":"success","html_url":"https://git.example.com/pr/7","web_url":"https://git.example.com/pr/7"}`)
}

func open(t *testing.T, server *httptest.Server, kind Type, auth transport.Auth) *Repository {
	t.Helper()
	path := "/acme/shop.git"
	if kind == BitbucketServer {
		path = "/scm/acme/shop.git"
	}
	at := Place{URL: server.URL + path, Type: kind}
	if kind == Bitbucket {
		at.Address = server.URL
	}
	r, err := Open(loopback, at, auth, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestSetStatusSendsWhatEachGitHostExpects(t *testing.T) {
	tests := map[string]struct {
		kind  Type
		auth  transport.Auth
		state State
		want  request
	}{
		"GitHub": {GitHub, transport.Auth{BearerToken: "t0ken"}, Success, request{
			"POST", "/api/v3/repos/acme/shop/statuses/" + hash, "Bearer t0ken",
			map[string]any{"state": "success", "context": "kubeop/acme", "description": "3 apps are healthy", "target_url": "https://example.com"},
		}},
		"GitLab": {GitLab, transport.Auth{Username: "bot", Password: "t0ken"}, Failure, request{
			"POST", "/api/v4/projects/acme%2Fshop/statuses/" + hash, "Bearer t0ken",
			map[string]any{"state": "failed", "name": "kubeop/acme", "description": "3 apps are healthy", "target_url": "https://example.com"},
		}},
		"Gitea": {Gitea, transport.Auth{Username: "bot", Password: "t0ken"}, Pending, request{
			"POST", "/api/v1/repos/acme/shop/statuses/" + hash, "Basic Ym90OnQwa2Vu",
			map[string]any{"state": "pending", "context": "kubeop/acme", "description": "3 apps are healthy", "target_url": "https://example.com"},
		}},
		"Bitbucket": {Bitbucket, transport.Auth{BearerToken: "t0ken"}, Canceled, request{
			"POST", "/2.0/repositories/acme/shop/commit/" + hash + "/statuses/build", "Bearer t0ken",
			map[string]any{"state": "FAILED", "key": "kubeop/acme", "name": "kubeop/acme", "description": "3 apps are healthy", "url": "https://example.com"},
		}},
		"Bitbucket Server": {BitbucketServer, transport.Auth{BearerToken: "t0ken"}, Pending, request{
			"POST", "/rest/build-status/1.0/commits/" + hash, "Bearer t0ken",
			map[string]any{"state": "INPROGRESS", "key": "kubeop/acme", "name": "kubeop/acme", "description": "3 apps are healthy", "url": "https://example.com"},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server, got := serve(t, created)
			err := open(t, server, tc.kind, tc.auth).SetStatus(t.Context(), Status{
				Commit: hash, Context: "kubeop/acme", State: tc.state, Description: "3 apps\nare healthy", Link: "https://example.com",
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAStatusForBitbucketAlwaysHasALink: Bitbucket refuses a status without one.
func TestAStatusForBitbucketAlwaysHasALink(t *testing.T) {
	for kind, want := range map[Type]string{Bitbucket: "https://bitbucket.org/acme/shop", BitbucketServer: "/projects/acme/repos/shop"} {
		server, got := serve(t, created)
		if err := open(t, server, kind, transport.Auth{BearerToken: "t"}).SetStatus(t.Context(), Status{Commit: hash, State: Success}); err != nil {
			t.Fatal(err)
		}
		if link, _ := got.Body["url"].(string); !strings.HasSuffix(link, want) {
			t.Errorf("%s: got the link %q, want %q", kind, link, want)
		}
	}
}

func TestEachGitHostOpensAndCommentsPullRequests(t *testing.T) {
	tests := map[Type]struct{ open, comment string }{
		GitHub:          {"/api/v3/repos/acme/shop/pulls", "/api/v3/repos/acme/shop/issues/7/comments"},
		GitLab:          {"/api/v4/projects/acme%2Fshop/merge_requests", "/api/v4/projects/acme%2Fshop/merge_requests/7/notes"},
		Gitea:           {"/api/v1/repos/acme/shop/pulls", "/api/v1/repos/acme/shop/issues/7/comments"},
		Bitbucket:       {"/2.0/repositories/acme/shop/pullrequests", "/2.0/repositories/acme/shop/pullrequests/7/comments"},
		BitbucketServer: {"/rest/api/1.0/projects/acme/repos/shop/pull-requests", "/rest/api/1.0/projects/acme/repos/shop/pull-requests/7/comments"},
	}
	for kind, want := range tests {
		t.Run(string(kind), func(t *testing.T) {
			server, got := serve(t, created)
			r := open(t, server, kind, transport.Auth{BearerToken: "t"})
			number, _, err := r.OpenPullRequest(t.Context(), PullRequest{Title: "Scale web", Body: "more", From: "scale", Into: "main"})
			if err != nil {
				t.Fatal(err)
			}
			if got.Method != "POST" || !strings.HasPrefix(got.Path, want.open) || got.Body["title"] != "Scale web" {
				t.Errorf("opened with %+v, want POST %s", *got, want.open)
			}
			if number != 7 {
				t.Errorf("it has the number %d, want 7", number)
			}
			if err := r.Comment(t.Context(), 7, "**plan**"); err != nil {
				t.Fatal(err)
			}
			text, _ := got.Body["body"].(string)
			if text == "" {
				text, _ = got.Body["text"].(string)
			}
			if content, ok := got.Body["content"].(map[string]any); ok {
				text, _ = content["raw"].(string)
			}
			if got.Method != "POST" || !strings.HasPrefix(got.Path, want.comment) || text != "**plan**" {
				t.Errorf("commented with %+v, want POST %s", *got, want.comment)
			}
		})
	}
}

// TestAnOpenPullRequestIsNotOpenedAgain: the host refuses a second one of the same branches, in words of its own.
func TestAnOpenPullRequestIsNotOpenedAgain(t *testing.T) {
	const others = `{"number": 5, "state": "open", "head": {"ref": "scale", "repo": {"full_name": "acme/shop"}}, "base": {"ref": "next"}, "html_url": "5"},
		{"number": 6, "state": "open", "head": {"ref": "other", "repo": {"full_name": "acme/shop"}}, "base": {"ref": "main"}, "html_url": "6"}`
	const refused = "0  opening a pull request of acme/shop: the host does not accept it (422): A pull request already exists"
	for name, tc := range map[string]struct {
		open string
		want string
	}{
		"open":     {others + `, {"number": 7, "state": "open", "head": {"ref": "scale", "repo": {"full_name": "acme/shop"}}, "base": {"ref": "main"}, "html_url": "https://example.com/7"}`, "7 https://example.com/7 <nil>"},
		"not open": {others, refused},
		"a fork's": {others + `, {"number": 7, "state": "open", "head": {"ref": "scale", "repo": {"full_name": "eve/shop"}}, "base": {"ref": "main"}, "html_url": "7"}`, refused},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(http.StatusUnprocessableEntity)
					fmt.Fprint(w, `{"message": "A pull request already exists"}`)
					return
				}
				fmt.Fprint(w, "["+tc.open+"]")
			}))
			defer server.Close()
			number, link, err := open(t, server, GitHub, transport.Auth{BearerToken: "t0ken"}).OpenPullRequest(t.Context(), PullRequest{Title: "Scale", From: "scale", Into: "main"})
			got := fmt.Sprint(number, " ", link, " ", err)
			if got = strings.ReplaceAll(got, server.Listener.Addr().String(), "the host"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestACommentReplacesTheLastOne: those that begin with the mark are deleted, also if one is another's, and no comment that quotes one is.
func TestACommentReplacesTheLastOne(t *testing.T) {
	const theirs = `[{"id": 1, "body": "<!-- plan -->\nold"}, {"id": 2, "body": "> <!-- plan -->\n> old\n\nlooks good"}, {"id": 3, "body": "<!-- plan -->\nolder"}]`
	for kind, want := range map[Type]string{
		GitHub:          "GET issues/7/comments, DELETE issues/comments/1, DELETE issues/comments/3, POST issues/7/comments",
		Gitea:           "GET issues/7/comments, DELETE issues/7/comments/1, DELETE issues/7/comments/3, POST issues/7/comments",
		GitLab:          "GET merge_requests/7/notes, DELETE merge_requests/7/notes/1, DELETE merge_requests/7/notes/3, POST merge_requests/7/notes",
		Bitbucket:       "POST pullrequests/7/comments",
		BitbucketServer: "POST pull-requests/7/comments",
	} {
		t.Run(string(kind), func(t *testing.T) {
			var seen []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, path, _ := strings.Cut(r.URL.Path, "/shop/")
				seen = append(seen, r.Method+" "+path)
				w.Header().Set("Content-Type", "application/json")
				switch r.Method {
				case http.MethodGet:
					_, _ = io.WriteString(w, theirs)
				case http.MethodDelete:
					w.WriteHeader(http.StatusForbidden)
				default:
					created(w)
				}
			}))
			defer server.Close()
			if err := open(t, server, kind, transport.Auth{BearerToken: "t"}).ReplaceComment(t.Context(), 7, "<!-- plan -->\n", "new"); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(seen, ", "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	server, _ := serve(t, func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) })
	if err := open(t, server, Bitbucket, transport.Auth{BearerToken: "t"}).ReplaceComment(t.Context(), 7, "x", "new"); err == nil {
		t.Error("a host that fails is no error")
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	const setting = "setting the commit status of acme/shop: "
	tests := map[string]struct {
		kind   Type
		status int
		body   string
		is     error
		says   string
	}{
		"GitHub, a token without the scope": {GitHub, 403, `{"message":"Resource not accessible by personal access token"}`, failure.ErrAuthentication, setting + `the token may not do this at the host (403, "Resource not accessible by personal access token"): its user may make another there: ` + ofGitHub},
		"GitHub, an expired token":          {GitHub, 401, `{"message":"Bad credentials"}`, failure.ErrAuthentication, setting + `the host rejected the token (401): it may have expired; its user may make another there: ` + ofGitHub},
		"GitHub, a commit that is gone":     {GitHub, 422, `{"message":"No commit found for SHA"}`, failure.ErrInvalid, setting + "the host does not accept it (422): No commit found for SHA"},
		"GitHub, a private repository":      {GitHub, 404, `{"message":"Not Found"}`, failure.ErrNotFound, setting + `the host has no such repository or commit, or the token may not see it (404): its user may make another there: ` + ofGitHub},
		"GitLab, a token without the scope": {GitLab, 403, `{"error":"insufficient_scope"}`, failure.ErrAuthentication, setting + `the token may not do this at the host (403, "{\"error\":\"insufficient_scope\"}"): its user may make another there: it needs the scope api, and at least the role Developer in the project` + ofSecret},
		"Gitea, a token without the scope":  {Gitea, 403, `{"message":"token does not have"}`, failure.ErrAuthentication, setting + `the token may not do this at the host (403, "Forbidden"): its user may make another there: ` + ofGitea},
		"Bitbucket Server, no rights":       {BitbucketServer, 401, `{"errors":[]}`, failure.ErrAuthentication, setting + `the host rejected the token (401): it may have expired; its user may make another there: it needs the permission "Repository write"` + ofSecret},
		"Bitbucket, no rights":              {Bitbucket, 403, `{"error":{"message":"no"}}`, failure.ErrAuthentication, setting + `the token may not do this at the host (403, "no"): its user may make another there: it needs the permissions "Repositories: Write" and "Pull requests: Write"` + ofSecret},
		"a host that is down":               {Gitea, 502, `<html>`, failure.ErrServer, setting + "the host answered 502 Bad Gateway"},
		"a token in an answer":              {GitLab, 400, `{"error":"t0ken-of-mine is bad"}`, failure.ErrInvalid, setting + `the host does not accept it (400): {"error":"*** is bad"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server, _ := serve(t, func(w http.ResponseWriter) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			auth := transport.Auth{BearerToken: "t0ken-of-mine", Secret: "kubeop-system/acme"}
			err := open(t, server, tc.kind, auth).SetStatus(t.Context(), Status{Commit: hash, State: Success})
			if !errors.Is(err, tc.is) {
				t.Fatalf("got %v, want %v", err, tc.is)
			}
			if got := strings.ReplaceAll(err.Error(), server.Listener.Addr().String(), "the host"); got != tc.says {
				t.Errorf("got %q, want %q", got, tc.says)
			}
		})
	}
}

func TestARateLimitSaysHowLongToWait(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	tests := map[string]struct {
		status   int
		header   map[string]string
		min, max time.Duration
	}{
		"Retry-After in seconds": {429, map[string]string{"Retry-After": "90"}, 90 * time.Second, 90 * time.Second},
		"Retry-After as a date":  {429, map[string]string{"Retry-After": in(time.Minute)}, 50 * time.Second, time.Minute},
		"GitHub's primary limit": {403, map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "99999999"}, 0, 0},
		"GitHub's second limit":  {403, map[string]string{"Retry-After": "60"}, time.Minute, time.Minute},
		"without a time":         {429, nil, 0, 0},
		"too long":               {429, map[string]string{"Retry-After": "99999999"}, time.Hour, time.Hour},
		"in the past":            {429, map[string]string{"Retry-After": "-5"}, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server, _ := serve(t, func(w http.ResponseWriter) {
				for k, v := range tc.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tc.status)
			})
			err := open(t, server, GitHub, transport.Auth{BearerToken: "t"}).SetStatus(t.Context(), Status{Commit: hash, State: Success})
			var limited *RateLimitError
			if !errors.As(err, &limited) || limited.After < tc.min || limited.After > tc.max {
				t.Errorf("got %v (%+v), want a limit of %s to %s", err, limited, tc.min, tc.max)
			}
		})
	}
}

// TestAStateThatGitLabHasAlreadyIsNoError: GitLab refuses a state that the commit has already.
func TestAStateThatGitLabHasAlreadyIsNoError(t *testing.T) {
	server, _ := serve(t, func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"message":{"state":["Cannot transition status via :enqueue from :pending"]}}`)
	})
	if err := open(t, server, GitLab, transport.Auth{BearerToken: "t"}).SetStatus(t.Context(), Status{Commit: hash, State: Pending}); err != nil {
		t.Error(err)
	}
}

func TestAHostileGitHostIsRefusedWithinLimits(t *testing.T) {
	t.Run("an endless answer is not read to its end", func(t *testing.T) {
		sent := 0
		server, _ := serve(t, func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			for block := make([]byte, 64<<10); sent < 1<<30; sent += len(block) {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		})
		err := open(t, server, GitLab, transport.Auth{BearerToken: "t"}).SetStatus(t.Context(), Status{Commit: hash, State: Pending})
		if !errors.Is(err, failure.ErrInvalid) || len(err.Error()) > 1000 {
			t.Errorf("got %d bytes: %.300v", len(err.Error()), err)
		}
		server.Close() // It waits for the handler.
		if sent > 100<<20 {
			t.Errorf("%d bytes were read", sent)
		}
	})
	t.Run("a redirect does not lead the token elsewhere", func(t *testing.T) {
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") }))
		defer other.Close()
		server, _ := serve(t, func(w http.ResponseWriter) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		if err := open(t, server, Gitea, transport.Auth{BearerToken: "t"}).SetStatus(t.Context(), Status{Commit: hash, State: Pending}); !errors.Is(err, failure.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an address of the cluster is not reached", func(t *testing.T) {
		server, _ := serve(t, func(http.ResponseWriter) { t.Error("it was asked") })
		r, err := Open(&transport.Network{}, Place{URL: server.URL + "/acme/shop", Type: Gitea}, transport.Auth{BearerToken: "t"}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.SetStatus(t.Context(), Status{Commit: hash, State: Pending}); !errors.Is(err, failure.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}

// TestAGitHubAppIsForGitHub: another host has no API for it.
func TestAGitHubAppIsForGitHub(t *testing.T) {
	app := &transport.GitHubApp{ID: "7", Installation: "42"}
	auth, err := forAPI(transport.Auth{App: app, KnownHosts: []byte("x"), Secret: "acme/git"}, GitHub)
	if err != nil || auth.App != app || auth.KnownHosts != nil || auth.Secret != "acme/git" {
		t.Errorf("%+v, %v", auth, err)
	}
}

func TestDescriptionsAreShort(t *testing.T) {
	server, got := serve(t, created)
	long := strings.Repeat("ä", 500)
	if err := open(t, server, Gitea, transport.Auth{BearerToken: "t"}).SetStatus(t.Context(), Status{Commit: hash, State: Failure, Description: long}); err != nil {
		t.Fatal(err)
	}
	if text, _ := got.Body["description"].(string); len([]rune(text)) != MaxDescription {
		t.Errorf("it has %d characters, want %d", len([]rune(text)), MaxDescription)
	}
}
