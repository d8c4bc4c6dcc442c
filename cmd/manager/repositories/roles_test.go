package repositories

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// TestEachRoleWritesWhatTheTableSays tries each role with each write: in its own project, in another one of its tenant, and in another
// tenant. Bodies are such that nothing is written by those who may.
func TestEachRoleWritesWhatTheTableSays(t *testing.T) {
	s := newStage(t)
	const ok, no, none = http.StatusUnprocessableEntity, http.StatusForbidden, http.StatusNotFound
	operations := []struct{ method, path, body string }{
		{"POST", "/v1/tenants", `{"name":"new","spec":{"no":1}}`}, {"PATCH", "/v1/tenants/acme", `{"spec":{"no":1}}`},
		{"POST", "/v1/projects/acme", `{"name":"new","spec":{"no":1}}`}, {"PATCH", "/v1/projects/acme/shop", `{"spec":{"no":1}}`}, {"PUT", "/v1/projects/acme/blog", `{"spec":{"no":1}}`},
		{"POST", "/v1/apps/acme/shop", `{"name":"new","spec":{"no":1}}`}, {"PUT", "/v1/apps/acme/shop/web", `{"spec":{"no":1}}`}, {"POST", "/v1/apps/acme/blog", `{"name":"new","spec":{"no":1}}`},
		{"POST", "/v1/projects/beta", `{"name":"new","spec":{"no":1}}`}, {"PATCH", "/v1/apps/beta/shop/a", `{"spec":{"no":1}}`}, {"POST", "/v1/apps/none/shop", `{"name":"new","spec":{"no":1}}`},
		{"POST", "/v1/apps/acme/shop/web/rollback", `{"to":"` + noCommit + `"}`}, {"POST", "/v1/apps/acme/blog/web/rollback", `{"to":"` + noCommit + `"}`}, {"POST", "/v1/apps/beta/shop/a/rollback", `{"to":"` + noCommit + `"}`},
	}
	for role, want := range map[string][]int{
		"admin":                    {ok, ok, ok, ok, ok, ok, ok, ok, ok, ok, none, none, none, none},
		"tenant:acme:admin":        {no, no, ok, ok, ok, ok, ok, ok, none, none, none, none, none, none},
		"tenant:acme:edit":         {no, no, ok, ok, ok, ok, ok, ok, none, none, none, none, none, none},
		"tenant:acme:view":         {no, no, no, no, no, no, no, no, none, none, none, no, no, none},
		"project:acme/shop:edit":   {no, none, no, no, none, ok, ok, none, none, none, none, none, none, none},
		"project:acme/shop:deploy": {no, none, no, no, none, no, ok, none, none, none, none, none, none, none},
		"project:acme/shop:view":   {no, none, no, no, none, no, no, none, none, none, none, no, none, none},
		"tenant:beta:edit":         {no, none, none, none, none, none, none, none, no, no, none, none, none, no},
	} {
		caller := s.holder(role, role)
		for i, o := range operations {
			if answer := s.send(caller, o.method, o.path, o.body); answer.Code != want[i] {
				t.Errorf("%s: %s %s: %d %s, want %d", role, o.method, o.path, answer.Code, answer.Body, want[i])
			}
		}
	}
	// Deletions, and reading files, by those who may not.
	for role, paths := range map[string]map[string]int{
		"tenant:acme:edit":         {"DELETE /v1/projects/acme/shop": no, "DELETE /v1/tenants/acme": no, "GET /v1/tenants/acme/file": no, "DELETE /v1/apps/beta/shop/a": none},
		"tenant:acme:view":         {"DELETE /v1/apps/acme/shop/web": no, "GET /v1/apps/acme/shop/web/file": no},
		"project:acme/shop:deploy": {"DELETE /v1/apps/acme/shop/web": no, "GET /v1/apps/acme/shop/web/file": http.StatusOK, "GET /v1/apps/acme/blog/web/file": none, "GET /v1/apps/beta/shop/a/file": none},
		"tenant:beta:admin":        {"GET /v1/apps/beta/shop/a/file": no, "DELETE /v1/projects/beta/shop": no},
		"admin":                    {"GET /v1/apps/beta/shop/a/file": http.StatusOK},
	} {
		caller := s.holder("d "+role, role)
		for operation, want := range paths {
			method, path, _ := strings.Cut(operation, " ")
			if answer := s.send(caller, method, path, ""); answer.Code != want {
				t.Errorf("%s: %s: %d %s, want %d", role, operation, answer.Code, answer.Body, want)
			}
		}
	}
	if s.acme.commits() != 1 || s.platform.commits() != 1 {
		t.Error("something was written")
	}
}

const noCommit = "0000000000000000000000000000000000000000"

// TestEachRoleReadsTheHistoryThatTheTableSays tries each role with the history of an app, what changed in its files, and a rollback that
// would change nothing: in its own project, in another one of its tenant, and in another tenant.
func TestEachRoleReadsTheHistoryThatTheTableSays(t *testing.T) {
	s := newStage(t)
	acme, platform := s.acme.bare("rev-parse", "main"), s.platform.bare("rev-parse", "main")
	s.delivered("acme", "web", acme)
	s.delivered("beta", "a", platform)
	const ok, no, none = http.StatusOK, http.StatusForbidden, http.StatusNotFound
	// Of each app: its history, a diff, and a rollback.
	for role, want := range map[string]map[string][3]int{
		"admin":                    {"acme/shop/web": {ok, ok, http.StatusAccepted}, "beta/shop/a": {ok, ok, http.StatusAccepted}, "none/shop/web": {none, none, none}},
		"tenant:acme:admin":        {"acme/shop/web": {ok, ok, http.StatusAccepted}, "beta/shop/a": {none, none, none}, "none/shop/web": {none, none, none}},
		"tenant:acme:edit":         {"acme/shop/web": {ok, ok, http.StatusAccepted}, "beta/shop/a": {none, none, none}},
		"tenant:acme:view":         {"acme/shop/web": {ok, no, no}, "beta/shop/a": {none, none, none}},
		"project:acme/shop:edit":   {"acme/shop/web": {ok, ok, http.StatusAccepted}, "acme/blog/web": {none, none, none}, "beta/shop/a": {none, none, none}},
		"project:acme/shop:deploy": {"acme/shop/web": {ok, ok, http.StatusAccepted}, "acme/blog/web": {none, none, none}, "beta/shop/a": {none, none, none}},
		"project:acme/shop:view":   {"acme/shop/web": {ok, no, no}, "acme/blog/web": {none, none, none}, "beta/shop/a": {none, none, none}},
		"tenant:beta:edit":         {"acme/shop/web": {none, none, none}, "beta/shop/a": {ok, no, no}}, // Only administrators change the platform repository.
	} {
		caller := s.holder("h "+role, role)
		for app, want := range want {
			commit := acme
			if strings.HasPrefix(app, "beta") {
				commit = platform
			}
			at := "/v1/apps/" + app
			for i, o := range [][3]string{{"GET", at + "/history"}, {"GET", at + "/diff?from=" + commit}, {"POST", at + "/rollback", `{"to":"` + commit + `"}`}} {
				if answer := s.send(caller, o[0], o[1], o[2]); answer.Code != want[i] {
					t.Errorf("%s: %s %s: %d %s, want %d", role, o[0], o[1], answer.Code, answer.Body, want[i])
				}
			}
		}
	}
	if s.acme.commits() != 1 || s.platform.commits() != 1 {
		t.Error("something was written")
	}
}

// TestAnotherTenantLooksLikeNone by nothing in the answer.
func TestAnotherTenantLooksLikeNone(t *testing.T) {
	s := newStage(t)
	caller := s.holder("ci", "tenant:acme:admin")
	detail := func(path string) problem.Problem {
		p := s.refused(caller, "PATCH "+path, `{"spec":{"host":"x"}}`, http.StatusNotFound)
		p.RequestID = ""
		return p
	}
	if got, want := detail("/v1/apps/beta/shop/a"), detail("/v1/apps/none/shop/a"); got.Detail != want.Detail || len(got.Errors) != 0 {
		t.Errorf("%+v and %+v", got, want)
	}
}

// TestAWriteIsFollowedUntilTheOperatorReadItsCommit, by the log of the repository.
func TestAWriteIsFollowedUntilTheOperatorReadItsCommit(t *testing.T) {
	s := newStage(t)
	caller := s.holder("ci", "project:acme/shop:edit")
	state := func(path string) string {
		t.Helper()
		answer := s.send(caller, "GET", path, "")
		if answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
		}
		_, rest, _ := strings.Cut(answer.Body.String(), `"state":"`)
		text, _, _ := strings.Cut(rest, `"`)
		return text
	}
	repository := &v1alpha1.Repository{}
	read := func(commit string) {
		t.Helper()
		if err := s.objects.Get(t.Context(), client.ObjectKey{Name: "acme"}, repository); err != nil {
			t.Fatal(err)
		}
		repository.Status.LastAttemptedRevision = "main@sha1:" + commit
		if err := s.objects.Update(t.Context(), repository); err != nil {
			t.Fatal(err)
		}
	}
	before := s.acme.bare("rev-parse", "main")
	first := s.written(caller, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":3}}}`)
	second := s.written(caller, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":4}}}`)
	read(before)
	if got := s.send(caller, "GET", first.Follow, "").Body.String(); !strings.Contains(got, "has not read the commit") {
		t.Errorf("before it was read: %s", got)
	}
	read(second.Commit)
	for _, w := range []string{first.Follow, second.Follow} {
		if got := s.send(caller, "GET", w, "").Body.String(); state(w) != "Pending" || !strings.Contains(got, "has not applied") {
			t.Errorf("after it was read: %s", got)
		}
	}
	read(first.Commit)
	if got := s.send(caller, "GET", second.Follow, "").Body.String(); !strings.Contains(got, "has not read the commit") {
		t.Errorf("the later one is %s", got)
	}
	s.refused(caller, "GET /v1/apps/acme/shop/web/commits/"+strings.Repeat("0", 40), "", http.StatusNotFound)
	s.refused(caller, "GET "+strings.Replace(first.Follow, "acme", "beta", 1), "", http.StatusNotFound)
}

// TestALateGitServerIsReported: the caller gets an answer before the connection is cut, and may send the request again.
func TestALateGitServerIsReported(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	release := make(chan struct{})
	s.acme.server.Set(func() {
		s.acme.server.Wrap = func(http.ResponseWriter, *http.Request, http.Handler) bool {
			<-release
			return false
		}
	})
	t.Cleanup(func() { close(release) })
	limited, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := httptest.NewRequestWithContext(limited, "PATCH", "/v1/apps/acme/shop/web", strings.NewReader(`{"spec":{"host":"x.example.com"}}`))
	r.Header.Set("Authorization", "Bearer "+admin)
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	if answer.Code != http.StatusGatewayTimeout || !strings.Contains(answer.Body.String(), string(problem.TookTooLong)) {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}
