package writes

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubeop/kubeop/internal/manager/inflight"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

// TestEachOperationMakesItsChange of the object in its path, with what the request says, and names it in the answer and in the log.
func TestEachOperationMakesItsChange(t *testing.T) {
	const spec = `{"spec":{"a":1}}`
	tenant, project, app := Object{Tenant: "acme"}, Object{Tenant: "acme", Project: "shop"}, Object{Tenant: "acme", Project: "shop", App: "web"}
	one, match := map[string]any{"a": int64(1)}, []string{"x", "y"}
	const matching = `If-Match: "x", "y"`
	for request, c := range map[string]struct {
		body, header string
		want         Change
		event        string
	}{
		"POST /v1/tenants":                      {`{"name":"acme","spec":{"a":1}}`, "", Change{How: Create, Of: tenant, Spec: one}, "createTenant tenant/acme"},
		"PUT /v1/tenants/acme":                  {spec, matching, Change{How: Replace, Of: tenant, Spec: one, Match: match}, "replaceTenant tenant/acme"},
		"PATCH /v1/tenants/acme":                {spec, matching, Change{How: Patch, Of: tenant, Spec: one, Match: match}, "patchTenant tenant/acme"},
		"DELETE /v1/tenants/acme":               {"", matching, Change{How: Delete, Of: tenant, Match: match}, "deleteTenant tenant/acme"},
		"POST /v1/projects/acme":                {`{"name":"shop","spec":{"a":1}}`, "", Change{How: Create, Of: project, Spec: one}, "createProject project/acme/shop"},
		"PUT /v1/projects/acme/shop":            {spec, matching, Change{How: Replace, Of: project, Spec: one, Match: match}, "replaceProject project/acme/shop"},
		"PATCH /v1/projects/acme/shop":          {spec, matching, Change{How: Patch, Of: project, Spec: one, Match: match}, "patchProject project/acme/shop"},
		"DELETE /v1/projects/acme/shop":         {"", matching, Change{How: Delete, Of: project, Match: match}, "deleteProject project/acme/shop"},
		"POST /v1/apps/acme/shop":               {`{"name":"web","spec":{"a":1}}`, "", Change{How: Create, Of: app, Spec: one}, "createApp app/acme/shop/web"},
		"PUT /v1/apps/acme/shop/web":            {spec, matching, Change{How: Replace, Of: app, Spec: one, Match: match}, "replaceApp app/acme/shop/web"},
		"PATCH /v1/apps/acme/shop/web":          {spec, matching, Change{How: Patch, Of: app, Spec: one, Match: match}, "patchApp app/acme/shop/web"},
		"DELETE /v1/apps/acme/shop/web":         {"", matching, Change{How: Delete, Of: app, Match: match}, "deleteApp app/acme/shop/web"},
		"POST /v1/apps/acme/shop/web/rollback":  {`{"to":"` + commit + `"}`, "", Change{How: Rollback, Of: app, To: commit}, "rollbackApp app/acme/shop/web"},
		"POST /v1/apps/acme/shop/web/rollback ": {`{}`, "Idempotency-Key: k", Change{How: Rollback, Of: app}, "rollbackApp app/acme/shop/web"},
	} {
		t.Run(request, func(t *testing.T) {
			m := newManager(t, nil)
			root, headers := m.Token("root", "admin"), []string{}
			if c.header != "" {
				headers = append(headers, c.header)
			}
			method, path, _ := strings.Cut(strings.TrimSpace(request), " ")
			tried := m.Do(root, method, path+"?dryRun=true", c.body, headers...)
			made := m.Do(root, method, path, c.body, headers...)
			if tried.Code != http.StatusOK || made.Code != http.StatusAccepted || len(m.changes) != 2 {
				t.Fatalf("%d %s, %d %s", tried.Code, tried.Body, made.Code, made.Body)
			}
			for i, got := range m.changes {
				c.want.DryRun = i == 0
				if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Change{}, "ID", "Author", "OfPlatform", "Allowed", "Alone"), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("dry run %t, -want +got:\n%s", i == 0, diff)
				}
			}
			follow := "/v1/" + string(c.want.Of.Resource()) + "/" + c.want.Of.Path() + "/commits/" + commit
			if made.Header().Get("Location") != follow || operated.Read[Written](t, made, http.StatusAccepted).Follow != follow || tried.Header().Get("Location") != "" {
				t.Errorf("it is followed at %q, and a dry run at %q", made.Header().Get("Location"), tried.Header().Get("Location"))
			}
			if diff := cmp.Diff([]string{"root " + c.event + " of acme " + commit}, m.events(t)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestADryRunNeedsNoStore, because it uses no Idempotency-Key, even if the request has one.
func TestADryRunNeedsNoStore(t *testing.T) {
	m := newManager(t, func(real store.Store) store.Store { return broken{real, errors.New("disk full")} })
	root := m.Token("root", "admin")
	for _, body := range []string{`{"name":"web"}`, `{"name":"api"}`} {
		if answer := m.Do(root, "POST", "/v1/apps/acme/shop?dryRun=true", body, "Idempotency-Key: k"); answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s", body, answer.Code, answer.Body)
		}
	}
}

// TestAKeyIsForOneRollback: one to another commit is another request.
func TestAKeyIsForOneRollback(t *testing.T) {
	m := newManager(t, nil)
	root, other := m.Token("root", "admin"), strings.Repeat("a", 40)
	for _, c := range []struct {
		body string
		code int
	}{
		{`{"to":"` + commit + `"}`, http.StatusAccepted}, {`{"to":"` + commit + `"}`, http.StatusAccepted}, {`{"to":"` + other + `"}`, http.StatusUnprocessableEntity}, {`{}`, http.StatusUnprocessableEntity},
	} {
		if answer := m.Do(root, "POST", "/v1/apps/acme/shop/web/rollback", c.body, "Idempotency-Key: k"); answer.Code != c.code || len(m.changes) != 1 {
			t.Errorf("%s: %d %s, %d changes", c.body, answer.Code, answer.Body, len(m.changes))
		}
	}
}

// TestAWriteWaitsForRoomByItsSize: a small one counts as 16 KiB, and one that does not say its size as all that a tenant may hold. Reads do not wait.
func TestAWriteWaitsForRoomByItsSize(t *testing.T) {
	const all = 4 * smallBody
	t.Cleanup(func(usual inflight.Limits) func() { return func() { inFlight = usual } }(inFlight))
	inFlight = inflight.Limits{Tenant: all, All: 2 * all, Waiting: 2, Wait: 20 * time.Millisecond}
	large := `{"spec":{"a":"` + strings.Repeat("x", 2*smallBody) + `"}}`
	for name, c := range map[string]struct {
		held               int64
		method, path, body string
		unknown, refused   bool
	}{
		"a small one that fits":             {all - smallBody, "DELETE", "/v1/apps/acme/shop/web", "", false, false},
		"a small one that does not":         {all - smallBody + 1, "DELETE", "/v1/apps/acme/shop/web", "", false, true},
		"a rollback that does not":          {all - smallBody + 1, "POST", "/v1/apps/acme/shop/web/rollback", "{}", false, true},
		"a large one that fits":             {int64(all - len(large)), "PUT", "/v1/apps/acme/shop/web", large, false, false},
		"a large one that does not":         {int64(all - len(large) + 1), "PUT", "/v1/apps/acme/shop/web", large, false, true},
		"one of an unknown size that fits":  {0, "PUT", "/v1/apps/acme/shop/web", `{"spec":{}}`, true, false},
		"one of an unknown size, later":     {1, "PUT", "/v1/apps/acme/shop/web", `{"spec":{}}`, true, true},
		"a read":                            {all, "GET", "/v1/apps/acme/shop/web/file", "", false, false},
		"the commit of one, which is read":  {all, "GET", "/v1/apps/acme/shop/web/commits/" + commit, "", false, false},
		"of what is too large for a tenant": {all, "PATCH", "/v1/projects/acme/shop", `{"spec":{}}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, nil)
			leave, ok := m.operations.limiter().Enter(t.Context(), "acme", c.held)
			if !ok {
				t.Fatal("there is no room at all")
			}
			do := func(secret string) *httptest.ResponseRecorder {
				var body io.Reader = strings.NewReader(c.body)
				if c.unknown {
					body = io.MultiReader(body)
				}
				r, answer := httptest.NewRequest(c.method, c.path, body), httptest.NewRecorder()
				r.Header.Set("Authorization", "Bearer "+secret)
				r.Header.Set("Content-Type", "application/json")
				m.ServeHTTP(answer, r)
				return answer
			}
			acme := m.Token("acme", "tenant:acme:admin")
			answer := do(acme)
			if !c.refused {
				if answer.Code >= http.StatusBadRequest {
					t.Errorf("%d %s", answer.Code, answer.Body)
				}
				return
			}
			if operated.Refused(t, answer, problem.TooManyRequests); answer.Header().Get("Retry-After") != "1" || len(m.changes) != 0 {
				t.Errorf("it is to be sent again after %q, %d changes", answer.Header().Get("Retry-After"), len(m.changes))
			}
			if answer := do(m.Token("root", "admin")); answer.Code != http.StatusAccepted {
				t.Errorf("an administrator gets %d %s", answer.Code, answer.Body)
			}
			leave()
			if answer := do(acme); answer.Code != http.StatusAccepted {
				t.Errorf("with room, it is %d %s", answer.Code, answer.Body)
			}
		})
	}
}
