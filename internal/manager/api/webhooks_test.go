package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/outbox"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/webhooks"
	"github.com/kubeop/kubeop/internal/store"
)

// withWebhooks returns a manager that sends to all hosts but inside.example.com.
func withWebhooks(t *testing.T) *manager {
	t.Helper()
	m, cluster, _ := newCluster(t)
	line, err := kms.NewKey("k")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Handler, err = New(Options{
		Log: logr.Discard(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: m.store, Signing: m.signing, Issuers: m.issuers, Owners: m.owners, RequestsPerSecond: 100_000, Burst: 100_000, Now: func() time.Time { return m.now },
		Live: &live.Operations{Index: cluster, Synced: func(context.Context) error { return nil }},
		Optional: Optional{Webhooks: &webhooks.Operations{KeyFile: file, Check: func(_ context.Context, u *url.URL) error {
			if u.Hostname() == "inside.example.com" {
				return &outbox.RefusedError{Why: "The host leads elsewhere."}
			}
			return nil
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type hook struct {
	ID, Name, Tenant, URL, Secret string
	DisabledReason                string
	Types                         []string
	Disabled                      bool
	PreviousUntil                 *time.Time
}

type delivery struct {
	ID                           int64
	Message, Type, Object, State string
}

const wantedHook = `{"name":"chat","url":"https://hooks.example.com/x","types":["app.*"]}`

func TestAWebhookIsCreatedChangedTriedAndDeleted(t *testing.T) {
	m := withWebhooks(t)
	admin := m.holder("acme", "tenant:acme:admin")
	made := read[hook](m, m.as(admin, "POST", "/v1/webhooks", wantedHook), http.StatusCreated)
	if made.Tenant != "acme" || !strings.HasPrefix(made.Secret, "whsec_") || made.Disabled {
		t.Fatalf("made %+v", made)
	}
	at := "/v1/webhooks/" + made.ID
	if text := m.as(admin, "GET", "/v1/webhooks", "").Body.String() + m.as(admin, "GET", at, "").Body.String(); strings.Contains(text, made.Secret) || strings.Count(text, made.ID) != 2 {
		t.Errorf("it is returned as %s", text)
	}
	changed := read[hook](m, m.as(admin, "PATCH", at, `{"types":["*"],"disabled":true,"url":"https://other.example.com/"}`), http.StatusOK)
	if diff := cmp.Diff(hook{ID: made.ID, Name: "chat", Tenant: "acme", URL: "https://other.example.com/", Types: []string{"*"}, Disabled: true}, changed); diff != "" {
		t.Errorf("-want +changed:\n%s", diff)
	}
	rotated := read[hook](m, m.as(admin, "POST", at+"/rotate-secret", `{"seconds":60}`), http.StatusOK)
	if rotated.Secret == made.Secret || rotated.PreviousUntil == nil || !rotated.PreviousUntil.Equal(m.now.Add(time.Minute).Truncate(time.Microsecond)) {
		t.Errorf("rotated %+v", rotated)
	}
	m.now = m.now.Add(time.Minute)
	if got := read[hook](m, m.as(admin, "GET", at, ""), http.StatusOK); got.PreviousUntil != nil {
		t.Errorf("both secrets sign until %s", got.PreviousUntil)
	}
	ping := read[delivery](m, m.as(admin, "POST", at+"/ping", ""), http.StatusAccepted)
	again := read[delivery](m, m.as(admin, "POST", fmt.Sprintf("%s/deliveries/%d/redeliver", at, ping.ID), ""), http.StatusAccepted)
	list := read[struct{ Items []delivery }](m, m.as(admin, "GET", at+"/deliveries?state=waiting", ""), http.StatusOK)
	if ping.Type != "webhook.ping" || ping.State != "waiting" || ping != again || len(list.Items) != 1 || list.Items[0] != ping {
		t.Errorf("%+v %+v %+v", ping, again, list)
	}
	if answer := m.as(admin, "DELETE", at, ""); answer.Code != http.StatusNoContent {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if p := problemOf(t, m.as(admin, "GET", at, "")); p.Code != problem.NotFound {
		t.Errorf("%+v", p)
	}
	events, err := m.store.ListEvents(t.Context(), "acme", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range events[:6] {
		if e.Object != "webhook/"+made.ID || e.Actor != "acme" {
			t.Errorf("%+v", e)
		}
		actions = append(actions, e.Action)
	}
	if diff := cmp.Diff([]string{"deleteWebhook", "redeliverToWebhook", "pingWebhook", "rotateWebhookSecret", "patchWebhook", "createWebhook"}, actions); diff != "" {
		t.Errorf("-want +recorded:\n%s", diff)
	}
}

func TestAWebhookThatTheManagerDisabledSaysWhyAndIsEnabled(t *testing.T) {
	m := withWebhooks(t)
	admin := m.holder("acme", "tenant:acme:admin")
	made := read[hook](m, m.as(admin, "POST", "/v1/webhooks", wantedHook), http.StatusCreated)
	disable := func(w *store.Webhook) error { w.Disabled, w.DisabledReason = true, "It is gone."; return nil }
	if _, err := m.store.ChangeWebhook(t.Context(), "acme", made.ID, disable, store.Event{}); err != nil {
		t.Fatal(err)
	}
	at := "/v1/webhooks/" + made.ID
	if got := read[hook](m, m.as(admin, "GET", at, ""), http.StatusOK); !got.Disabled || got.DisabledReason != "It is gone." {
		t.Errorf("%+v", got)
	}
	if got := read[hook](m, m.as(admin, "PATCH", at, `{"disabled":false}`), http.StatusOK); got.Disabled || got.DisabledReason != "" {
		t.Errorf("%+v", got)
	}
}

// TestAWebhookOfAnEarlierTenantHasNoTenant until an administrator of the platform gives it to the tenant that has the name now.
func TestAWebhookOfAnEarlierTenantHasNoTenant(t *testing.T) {
	m := withWebhooks(t)
	root, admin := m.holder("root", "admin"), m.holder("acme", "tenant:acme:admin")
	made := read[hook](m, m.as(admin, "POST", "/v1/webhooks", wantedHook), http.StatusCreated)
	anew := store.StateChange{Object: "tenant/acme", To: "1", NewTenant: store.TenantRef{Name: "acme", UID: "2", Created: m.now.Add(time.Minute)}}
	if _, err := m.store.RecordChanges(t.Context(), []store.StateChange{anew}); err != nil {
		t.Fatal(err)
	}
	at := "/v1/webhooks/" + made.ID
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		if p := problemOf(t, m.as(admin, method, at, map[string]string{"PATCH": `{"disabled":false}`}[method])); p.Code != problem.NotFound {
			t.Errorf("%s: %+v", method, p)
		}
	}
	if list := read[struct{ Items []hook }](m, m.as(admin, "GET", "/v1/webhooks", ""), http.StatusOK); len(list.Items) != 0 {
		t.Errorf("the new tenant has %+v", list.Items)
	}
	if got := read[hook](m, m.as(root, "GET", at, ""), http.StatusOK); !got.Disabled || got.Tenant != "~acme" || !strings.Contains(got.DisabledReason, "created") {
		t.Errorf("%+v", got)
	}
	if got := read[hook](m, m.as(root, "PATCH", at, `{"disabled":false}`), http.StatusOK); got.Disabled || got.Tenant != "acme" || got.DisabledReason != "" {
		t.Errorf("%+v", got)
	}
	if got := read[hook](m, m.as(admin, "GET", at, ""), http.StatusOK); got.ID != made.ID {
		t.Errorf("%+v", got)
	}
}

// TestTheNextTenantSeesNoWebhookOfTheOneBefore, although nobody disabled it: of a manager that sends nothing, nobody does. When each was created, by two clocks, does not count.
func TestTheNextTenantSeesNoWebhookOfTheOneBefore(t *testing.T) {
	m := withWebhooks(t)
	root, admin := m.holder("root", "admin"), m.holder("acme", "tenant:acme:admin")
	create := func(uid string, created time.Time) string {
		t.Helper()
		apply(t, m.cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: types.UID(uid), CreationTimestamp: metav1.NewTime(created)}})
		return read[hook](m, m.as(admin, "POST", "/v1/webhooks", wantedHook), http.StatusCreated).ID
	}
	listed := func(by string) (ids []string) {
		t.Helper()
		for _, w := range read[struct{ Items []hook }](m, m.as(by, "GET", "/v1/webhooks?tenant=acme", ""), http.StatusOK).Items {
			ids = append(ids, w.ID)
		}
		return ids
	}
	first := create("1", m.now.Add(-time.Hour))
	read[delivery](m, m.as(admin, "POST", "/v1/webhooks/"+first+"/ping", ""), http.StatusAccepted)
	// The clock of the API server is a minute behind at first, and then ahead.
	second := create("2", m.now.Add(-time.Minute))
	apply(t, m.cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "2", CreationTimestamp: metav1.NewTime(m.now.Add(time.Minute))}})
	if got := listed(admin); !slices.Equal(got, []string{second}) {
		t.Errorf("the new tenant has %q", got)
	}
	if got := listed(root); len(got) != 2 {
		t.Errorf("administrators see %q", got)
	}
	at := "/v1/webhooks/" + first
	for _, c := range [][3]string{
		{"GET", ""}, {"GET", "/deliveries"}, {"PATCH", "", `{"disabled":false}`}, {"POST", "/rotate-secret", "{}"}, {"POST", "/ping"}, {"POST", "/deliveries/1/redeliver"}, {"DELETE", ""},
	} {
		if p := problemOf(t, m.as(admin, c[0], at+c[1], c[2])); p.Code != problem.NotFound {
			t.Errorf("%s %s: %+v", c[0], c[1], p)
		}
	}
	live.Forget(m.cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	if got := listed(admin); len(got) > 0 {
		t.Errorf("without a tenant there are %q", got)
	}
	if p := problemOf(t, m.as(root, "PATCH", at, `{"disabled":false}`)); p.Code != problem.Conflict {
		t.Errorf("it is enabled for no tenant: %+v", p)
	}
	create("3", m.now)
	read[hook](m, m.as(root, "PATCH", at, `{"disabled":false}`), http.StatusOK)
	if got := listed(admin); !slices.Contains(got, first) || slices.Contains(got, second) {
		t.Errorf("an administrator gave the first one to the tenant, which has %q", got)
	}
}

// TestAWebhookIsChangedOnlyIfItIsAsTheCallerSawIt, if the caller says so.
func TestAWebhookIsChangedOnlyIfItIsAsTheCallerSawIt(t *testing.T) {
	m := withWebhooks(t)
	admin := m.holder("acme", "tenant:acme:admin")
	at := "/v1/webhooks/" + read[hook](m, m.as(admin, "POST", "/v1/webhooks", wantedHook), http.StatusCreated).ID
	patch := func(match, name string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(http.MethodPatch, at, strings.NewReader(`{"name":"`+name+`"}`))
		r.Header.Set("Authorization", "Bearer "+admin)
		r.Header.Set("If-Match", match)
		answer := httptest.NewRecorder()
		m.ServeHTTP(answer, r)
		return answer
	}
	first := m.as(admin, "GET", at, "").Header().Get("ETag")
	changed := patch(first, "one")
	read[hook](m, changed, http.StatusOK)
	second := changed.Header().Get("ETag")
	if first == "" || second == first || second != m.as(admin, "GET", at, "").Header().Get("ETag") {
		t.Errorf("the ETag is %s, and then %s", first, second)
	}
	known := httptest.NewRequest(http.MethodGet, at, nil)
	known.Header = http.Header{"Authorization": {"Bearer " + admin}, "If-None-Match": {second}}
	answer := httptest.NewRecorder()
	if m.ServeHTTP(answer, known); answer.Code != http.StatusNotModified || answer.Body.Len() > 0 {
		t.Errorf("to who has it is answered %d %s", answer.Code, answer.Body)
	}
	if p := problemOf(t, patch(first, "two")); p.Code != problem.Conflict {
		t.Errorf("another version is changed: %+v", p)
	}
	if p := problemOf(t, patch("x", "two")); p.Code != problem.Invalid || p.Errors[0].Location != "header.If-Match" {
		t.Errorf("without quotes: %+v", p)
	}
	if got := read[hook](m, m.as(admin, "GET", at, ""), http.StatusOK); got.Name != "one" {
		t.Errorf("its name is %q", got.Name)
	}
	read[hook](m, patch(first+", "+second, "two"), http.StatusOK)
	read[hook](m, patch("*", "three"), http.StatusOK)
}

// TestARequestAboutAWebhookIsMadeOnceForItsKey: sent again, it has the same answer, and its secret is not kept as plain text.
func TestARequestAboutAWebhookIsMadeOnceForItsKey(t *testing.T) {
	m := withWebhooks(t)
	admin := m.holder("acme", "tenant:acme:admin")
	with := func(key, path, body string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/v1/webhooks"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+admin)
		r.Header.Set("Idempotency-Key", key)
		answer := httptest.NewRecorder()
		m.ServeHTTP(answer, r)
		return answer
	}
	first := read[hook](m, with("k1", "", wantedHook), http.StatusCreated)
	m.now = m.now.Add(time.Minute)
	if again := read[hook](m, with("k1", "", wantedHook), http.StatusCreated); !cmp.Equal(first, again) {
		t.Errorf("-made +again:\n%s", cmp.Diff(first, again))
	}
	if p := problemOf(t, with("k1", "", strings.Replace(wantedHook, "app", "project", 1))); p.Code != problem.Invalid || p.Errors[0].Location != "header.Idempotency-Key" {
		t.Errorf("another body: %+v", p)
	}
	at := "/" + first.ID
	rotated := read[hook](m, with("k2", at+"/rotate-secret", "{}"), http.StatusOK)
	if again := read[hook](m, with("k2", at+"/rotate-secret", "{}"), http.StatusOK); rotated.Secret == first.Secret || !cmp.Equal(rotated, again) {
		t.Errorf("-rotated +again:\n%s", cmp.Diff(rotated, again))
	}
	ping := read[delivery](m, with("k3", at+"/ping", ""), http.StatusAccepted)
	if again := read[delivery](m, with("k3", at+"/ping", ""), http.StatusAccepted); ping != again {
		t.Errorf("%+v %+v", ping, again)
	}
	redeliver := fmt.Sprintf("%s/deliveries/%d/redeliver", at, ping.ID)
	for range 2 {
		read[delivery](m, with("k4", redeliver, ""), http.StatusAccepted)
	}
	if p := problemOf(t, with("k1", "", wantedHook)); p.Code != problem.Conflict || !strings.Contains(p.Detail, "secret") {
		t.Errorf("the secret of the first request is not there any more: %+v", p)
	}
	events, err := m.store.ListEvents(t.Context(), "acme", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range events[:4] {
		actions = append(actions, e.Action)
	}
	if diff := cmp.Diff([]string{"redeliverToWebhook", "pingWebhook", "rotateWebhookSecret", "createWebhook"}, actions); diff != "" {
		t.Errorf("-want +recorded:\n%s", diff)
	}
}

// TestWebhooksAreOfAdministratorsAndOfTheirTenant: each role on each operation, on what is of its tenant and of others.
func TestWebhooksAreOfAdministratorsAndOfTheirTenant(t *testing.T) {
	for who, administers := range map[string]string{
		"admin": "all", "tenant:acme:admin": "own", "tenant:acme:edit": "", "tenant:acme:view": "", "project:acme/shop:view": "", "project:acme/shop:edit": "", "project:acme/shop:deploy": "",
	} {
		t.Run(who, func(t *testing.T) {
			m := withWebhooks(t)
			root, caller := m.holder("root", "admin"), m.holder("caller", who)
			ids, pings := map[string]string{}, map[string]int64{}
			for _, tenant := range []string{"acme", "beta", ""} {
				made := read[hook](m, m.as(root, "POST", "/v1/webhooks", strings.Replace(wantedHook, "{", `{"tenant":"`+tenant+`",`, 1)), http.StatusCreated)
				ids[tenant], pings[tenant] = made.ID, read[delivery](m, m.as(root, "POST", "/v1/webhooks/"+made.ID+"/ping", ""), http.StatusAccepted).ID
			}
			for tenant, id := range ids {
				sees := administers == "all" || administers == "own" && tenant == "acme"
				want := func(status int) int {
					switch {
					case sees:
						return status
					case administers == "":
						return http.StatusForbidden
					}
					return http.StatusNotFound
				}
				for _, c := range []struct {
					method, path, body string
					status             int
				}{
					{"GET", "", "", 200}, {"PATCH", "", `{"name":"y"}`, 200}, {"POST", "/rotate-secret", `{}`, 200}, {"POST", "/ping", "", 202}, {"GET", "/deliveries", "", 200},
					{"POST", fmt.Sprintf("/deliveries/%d/redeliver", pings[tenant]), "", 202}, {"DELETE", "", "", 204},
				} {
					if answer := m.as(caller, c.method, "/v1/webhooks/"+id+c.path, c.body); answer.Code != want(c.status) {
						t.Errorf("%s %s of %q: %d, want %d: %s", c.method, c.path, tenant, answer.Code, want(c.status), answer.Body)
					}
				}
				// A delivery of another webhook is not found by one that the caller has.
				created := m.as(caller, "POST", "/v1/webhooks", strings.Replace(wantedHook, "{", `{"tenant":"`+tenant+`",`, 1))
				if allowed := sees || administers == "own" && tenant == ""; (created.Code == http.StatusCreated) != allowed || !allowed && created.Code != http.StatusForbidden {
					t.Errorf("creating one of %q: %d %s", tenant, created.Code, created.Body)
				}
				if created.Code == http.StatusCreated {
					mine := read[hook](m, created, http.StatusCreated)
					if administers == "own" && mine.Tenant != "acme" {
						t.Errorf("it is of %q", mine.Tenant)
					}
					if answer := m.as(caller, "POST", fmt.Sprintf("/v1/webhooks/%s/deliveries/%d/redeliver", mine.ID, pings["beta"]), ""); answer.Code != http.StatusNotFound {
						t.Errorf("a delivery of another webhook: %d", answer.Code)
					}
				}
			}
			listed := m.as(caller, "GET", "/v1/webhooks", "")
			if (listed.Code == http.StatusOK) != (administers != "") || administers == "own" && strings.Contains(listed.Body.String(), "beta") {
				t.Errorf("the list: %d %s", listed.Code, listed.Body)
			}
		})
	}
}

func TestBadWebhooksAreNotCreated(t *testing.T) {
	m := withWebhooks(t)
	admin := m.holder("root", "admin")
	for name, c := range map[string]struct {
		body, fault string
		code        problem.Code
	}{
		"an unknown type":    {`{"name":"x","url":"https://a.example.com","types":["app.hunter2"]}`, "body.types[0]", problem.Invalid},
		"one of later":       {`{"name":"x","url":"https://a.example.com","types":["*","cluster.*"]}`, "body.types[1]", problem.Invalid},
		"no type":            {`{"name":"x","url":"https://a.example.com","types":[]}`, "body.types", problem.Invalid},
		"no host":            {`{"name":"x","url":"https:///hunter2","types":["*"]}`, "body.url", problem.Invalid},
		"no URL":             {`{"name":"x","url":"hunter2","types":["*"]}`, "body.url", problem.Invalid},
		"a password":         {`{"name":"x","url":"https://a:hunter2@a.example.com","types":["*"]}`, "body.url", problem.Invalid},
		"a fragment":         {`{"name":"x","url":"https://a.example.com/#hunter2","types":["*"]}`, "body.url", problem.Invalid},
		"a private address":  {`{"name":"x","url":"https://inside.example.com/","types":["*"]}`, "body.url", problem.Invalid},
		"a long URL":         {`{"name":"x","url":"https://a.example.com/` + strings.Repeat("x", 2048) + `","types":["*"]}`, "body.url", problem.Invalid},
		"a tenant of nobody": {`{"name":"x","tenant":"gamma","url":"https://a.example.com","types":["*"]}`, "body.tenant", problem.Invalid},
		"a secret":           {`{"name":"x","secret":"hunter2","url":"https://a.example.com","types":["*"]}`, "body.secret", problem.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			p := problemOf(t, m.as(admin, "POST", "/v1/webhooks", c.body))
			if p.Code != c.code || len(p.Errors) == 0 || p.Errors[0].Location != c.fault || strings.Contains(fmt.Sprint(p), "hunter2") {
				t.Errorf("%+v", p)
			}
		})
	}
	made := read[hook](m, m.as(admin, "POST", "/v1/webhooks", wantedHook), http.StatusCreated)
	if p := problemOf(t, m.as(admin, "PATCH", "/v1/webhooks/"+made.ID, `{"url":"https://inside.example.com/"}`)); p.Code != problem.Invalid {
		t.Errorf("%+v", p)
	}
	for range store.MaxWebhooks - 1 {
		read[hook](m, m.as(admin, "POST", "/v1/webhooks", wantedHook), http.StatusCreated)
	}
	if p := problemOf(t, m.as(admin, "POST", "/v1/webhooks", wantedHook)); p.Code != problem.Conflict || !strings.Contains(p.Detail, "20") {
		t.Errorf("%+v", p)
	}
}

func TestATenantWritesAboutWebhooksSoOftenInADay(t *testing.T) {
	m := withWebhooks(t)
	admin, other := m.holder("acme", "tenant:acme:admin"), m.holder("beta", "tenant:beta:admin")
	made := read[hook](m, m.as(admin, "POST", "/v1/webhooks", wantedHook), http.StatusCreated)
	for range 999 {
		if answer := m.as(admin, "PATCH", "/v1/webhooks/"+made.ID, `{"name":"y"}`); answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
	}
	answer := m.as(admin, "POST", "/v1/webhooks/"+made.ID+"/ping", "")
	if p := problemOf(t, answer); p.Code != problem.TooManyRequests || answer.Header().Get("Retry-After") == "" {
		t.Errorf("%+v", p)
	}
	read[hook](m, m.as(other, "POST", "/v1/webhooks", wantedHook), http.StatusCreated)
}

func TestAManagerThatSendsNothingSaysSo(t *testing.T) {
	m, _, _ := newCluster(t)
	admin := m.holder("root", "admin")
	if p := problemOf(t, m.as(admin, "POST", "/v1/webhooks", wantedHook)); p.Code != problem.Conflict || !strings.Contains(p.Detail, "manager.webhooks.enabled") {
		t.Errorf("%+v", p)
	}
}
