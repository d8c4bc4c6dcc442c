package writes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/progress"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

const commit = "0123456789012345678901234567890123456789"

// written are repositories that keep what they are asked for. err, if set, is their answer.
type written struct {
	changes []Change
	sees    []Sees
	err     error
	// same: a change makes no commit. leaves: the caller is gone when the commit is pushed.
	same, leaves bool
}

// Write implements Repositories.
func (w *written) Write(_ context.Context, c Change) (Written, error) {
	w.changes = append(w.changes, c)
	if w.err != nil {
		return Written{}, w.err
	}
	made := Written{Commit: commit, Changed: !w.same, Repository: "acme", File: "app.yaml"}
	if w.leaves {
		c.Alone(made)
		return Written{}, context.Canceled
	}
	return made, nil
}

// File implements Repositories.
func (w *written) File(_ context.Context, of Object, ofPlatform bool) (File, error) {
	w.changes = append(w.changes, Change{Of: of, OfPlatform: ofPlatform})
	return File{Repository: "acme", Path: "app.yaml", Commit: commit, Text: "spec: {}\n", ETag: `"one"`}, w.err
}

// Progress implements Repositories.
func (w *written) Progress(_ context.Context, of Object, commit string, sees Sees) (progress.Report, error) {
	w.changes, w.sees = append(w.changes, Change{Of: of, To: commit}), append(w.sees, sees)
	return progress.Report{}, w.err
}

// manager serves the operations about a cluster with the tenants acme and beta.
type manager struct {
	*operated.Served
	*written
	operations *Operations
	unread     error
}

func newManager(t *testing.T, faults func(store.Store) store.Store) *manager {
	t.Helper()
	m, cluster := &manager{written: &written{}}, index.New()
	for _, name := range []string{"acme", "beta"} {
		if err := live.Apply(cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	m.Served = operated.Start(t, func(s *operated.Served, api huma.API) {
		kept := s.Store
		if faults != nil {
			kept = faults(kept)
		}
		m.operations = &Operations{Repositories: m.written, Store: kept, Now: s.Now, Live: &live.Operations{Index: cluster, Synced: func(context.Context) error { return m.unread }}}
		m.operations.Register(api)
	})
	return m
}

// events are what the log has of writes, the newest first.
func (m *manager) events(t *testing.T) (all []string) {
	t.Helper()
	found, err := m.Store.ListEvents(t.Context(), "", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		if e.Action != "test" {
			all = append(all, strings.TrimSpace(fmt.Sprint(e.Actor, " ", e.Action, " ", e.Object, " of ", e.Tenant, " ", e.Commit)))
		}
	}
	return all
}

// TestEachRoleWritesWhereItMay tries each role with each kind of write. What a caller may not even read is not there for it.
func TestEachRoleWritesWhereItMay(t *testing.T) {
	const yes, no, none = http.StatusAccepted, http.StatusForbidden, http.StatusNotFound
	requests := []struct{ method, path, body string }{
		{"POST", "/v1/tenants", `{"name":"gamma"}`}, {"PATCH", "/v1/tenants/acme", `{"spec":{}}`}, {"DELETE", "/v1/tenants/acme", ""},
		{"POST", "/v1/projects/acme", `{"name":"shop"}`}, {"PUT", "/v1/projects/acme/shop", `{"spec":{}}`}, {"DELETE", "/v1/projects/acme/shop", ""},
		{"POST", "/v1/apps/acme/shop", `{"name":"web"}`}, {"PATCH", "/v1/apps/acme/shop/web", `{"spec":{}}`}, {"DELETE", "/v1/apps/acme/shop/web", ""},
		{"POST", "/v1/apps/acme/shop/web/rollback", `{}`}, {"POST", "/v1/projects/beta", `{"name":"shop"}`}, {"PATCH", "/v1/apps/nobody/shop/web", `{"spec":{}}`},
	}
	for role, want := range map[string][12]int{
		"admin":                    {yes, yes, yes, yes, yes, yes, yes, yes, yes, yes, yes, none},
		"tenant:acme:admin":        {no, no, no, yes, yes, yes, yes, yes, yes, yes, none, none},
		"tenant:acme:edit":         {no, no, no, yes, yes, no, yes, yes, yes, yes, none, none},
		"tenant:acme:view":         {no, no, no, no, no, no, no, no, no, no, none, none},
		"project:acme/shop:edit":   {no, none, none, no, no, no, yes, yes, yes, yes, none, none},
		"project:acme/shop:deploy": {no, none, none, no, no, no, no, yes, no, yes, none, none},
		"project:acme/shop:view":   {no, none, none, no, no, no, no, no, no, no, none, none},
		"project:acme/blog:edit":   {no, none, none, no, none, none, none, none, none, none, none, none},
	} {
		t.Run(role, func(t *testing.T) {
			m := newManager(t, nil)
			secret, made := m.Token(role, role), 0
			for i, r := range requests {
				answer := m.Do(secret, r.method, r.path, r.body)
				if answer.Code != want[i] {
					t.Errorf("%s %s: %d %s, want %d", r.method, r.path, answer.Code, answer.Body, want[i])
				}
				if want[i] == yes {
					made++
				}
			}
			if len(m.changes) != made || len(m.events(t)) != made {
				t.Errorf("%d changes and %d events, want %d", len(m.changes), len(m.events(t)), made)
			}
			for _, c := range m.changes {
				if c.OfPlatform != (role == "admin") {
					t.Errorf("%s %s may change the platform: %t", c.How, c.Of.Path(), c.OfPlatform)
				}
			}
		})
	}
	m := newManager(t, nil)
	for _, r := range requests {
		operated.Refused(t, m.Do("", r.method, r.path, r.body), problem.Unauthenticated)
	}
	m.unread = errors.New("not read yet")
	if answer := m.Do(m.Token("root", "admin"), "POST", "/v1/tenants", `{"name":"gamma"}`); operated.Refused(t, answer, problem.Unavailable).Code != "" && answer.Header().Get("Retry-After") == "" {
		t.Error("nothing says when the cluster may be read")
	}
	if len(m.changes) != 0 {
		t.Errorf("%+v was written", m.changes)
	}
}

// TestACreationInATenantThatIsNotThereYetSaysWhatToFollow, if the caller may create there. Others get the answer that they get about every tenant.
func TestACreationInATenantThatIsNotThereYetSaysWhatToFollow(t *testing.T) {
	m := newManager(t, nil)
	for scope, want := range map[string]string{"admin": "The cluster has no tenant gamma. If its commit was just made, follow it", "tenant:acme:admin": ""} {
		for _, path := range []string{"/v1/projects/gamma", "/v1/apps/gamma/shop"} {
			p := operated.Refused(t, m.Do(m.Token(scope+path, scope), "POST", path, `{"name":"shop"}`), problem.NotFound)
			if want == "" && p.Detail != "" || !strings.HasPrefix(p.Detail, want) {
				t.Errorf("%s, as %s: %q", path, scope, p.Detail)
			}
		}
	}
}

// TestAWriteIsAnsweredAndRecordedOnce: what changed nothing, or was only tried, is no event; and a store that fails changes no answer.
func TestAWriteIsAnsweredAndRecordedOnce(t *testing.T) {
	const event = "root patchApp app/acme/shop/web of acme " + commit
	for name, c := range map[string]struct {
		query      string
		written    written
		store      error
		want       int
		wantEvents []string
	}{
		"a commit":             {"", written{}, nil, http.StatusAccepted, []string{event}},
		"nothing changed":      {"", written{same: true}, nil, http.StatusAccepted, nil},
		"tried":                {"?dryRun=true", written{}, nil, http.StatusOK, nil},
		"refused":              {"", written{err: problem.New(problem.Conflict, "The file was changed.")}, nil, http.StatusConflict, nil},
		"failed":               {"", written{err: errors.New("dial 10.0.0.1 with hunter2")}, nil, http.StatusInternalServerError, nil},
		"the caller left":      {"", written{leaves: true}, nil, http.StatusInternalServerError, []string{event}},
		"a store that is away": {"", written{}, errors.New("disk full"), http.StatusAccepted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, func(real store.Store) store.Store { return broken{real, c.store} })
			*m.written = c.written
			answer := m.Do(m.Token("root", "admin"), "PATCH", "/v1/apps/acme/shop/web"+c.query, `{"spec":{"replicas":3}}`)
			if answer.Code != c.want || strings.Contains(answer.Body.String(), "hunter2") {
				t.Errorf("%d %s", answer.Code, answer.Body)
			}
			follow := "/v1/apps/acme/shop/web/commits/" + commit
			if c.want != http.StatusAccepted {
				follow = ""
			}
			if answer.Header().Get("Location") != follow {
				t.Errorf("it is followed at %q, want %q", answer.Header().Get("Location"), follow)
			}
			if diff := cmp.Diff(c.wantEvents, m.events(t)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// broken is a store that records nothing if err is set.
type broken struct {
	store.Store
	err error
}

// RecordEvent implements store.Audit.
func (b broken) RecordEvent(ctx context.Context, e store.Event) error {
	if b.err != nil {
		return b.err
	}
	return b.Store.RecordEvent(ctx, e)
}

// BeginRequest implements store.Requests.
func (b broken) BeginRequest(ctx context.Context, r store.Request) (store.Request, error) {
	if b.err != nil {
		return store.Request{}, b.err
	}
	return b.Store.BeginRequest(ctx, r)
}

// TestTheAuthorOfACommitIsPrinted: what turns the direction of a text, or begins a line, is left out of the name.
func TestTheAuthorOfACommitIsPrinted(t *testing.T) {
	for name, want := range map[string]string{
		"CI of the shop": "CI of the shop", "a\nb\u202ec\x00": "abc", " \u200b\t ": "id", "Ann <ann@example.com>": "Ann <ann@example.com>",
	} {
		if got := authorOf(auth.Caller{Token: store.Token{ID: "id", Name: name}}); got != (Person{want, "id@token.kubeop"}) {
			t.Errorf("%q: %+v", name, got)
		}
	}
	m := newManager(t, nil)
	answer := m.Do(m.Token("root", "admin"), "DELETE", "/v1/apps/acme/shop/web", "")
	id := operated.Read[Written](t, answer, http.StatusAccepted).Request
	if id == "" || id != answer.Header().Get("X-Request-Id") || len(m.changes) != 1 || m.changes[0].ID != id || m.changes[0].How != Delete || m.changes[0].Author.Name != "root" {
		t.Errorf("the request %q made %+v", id, m.changes)
	}
}

// TestACallerIsAskedAgainBeforeTheCommitIsPushed: its token may be revoked while the write waits.
func TestACallerIsAskedAgainBeforeTheCommitIsPushed(t *testing.T) {
	m := newManager(t, nil)
	m.Do(m.Token("acme", "tenant:acme:admin"), "DELETE", "/v1/apps/acme/shop/web", "")
	if len(m.changes) != 1 || m.changes[0].Allowed() != nil {
		t.Fatalf("%+v", m.changes)
	}
	if err := m.Store.RevokeToken(t.Context(), "acme", "acme", store.Event{At: m.Time}); err != nil {
		t.Fatal(err)
	}
	var refused *problem.Problem
	if err := m.changes[0].Allowed(); !errors.As(err, &refused) || refused.Code != problem.Unauthenticated {
		t.Errorf("after the revocation: %v", err)
	}
}

func TestAnIdempotencyKeyMakesOneCommit(t *testing.T) {
	const path, body, other = "/v1/apps/acme/shop", `{"name":"web","spec":{"image":{"image":"a"}}}`, `{"name":"web","spec":{"image":{"image":"b"}}}`
	m := newManager(t, nil)
	acme, root, edit := m.Token("acme", "tenant:acme:admin"), m.Token("root", "admin"), m.Token("edit", "tenant:acme:edit")
	send := func(secret, key, body string) (Written, int) {
		t.Helper()
		answer := m.Do(secret, "POST", path, body, "Idempotency-Key: "+key)
		var w Written
		if answer.Code == http.StatusAccepted {
			w = operated.Read[Written](t, answer, answer.Code)
		}
		return w, answer.Code
	}
	first, code := send(acme, "one", body)
	if code != http.StatusAccepted || !strings.HasPrefix(first.Request, "key-") {
		t.Fatalf("%d %+v", code, first)
	}
	for name, c := range map[string]struct {
		secret, key, body string
		code, changes     int
	}{
		"again":                       {acme, "one", body, http.StatusAccepted, 1},
		"another body":                {acme, "one", other, http.StatusUnprocessableEntity, 1},
		"another key":                 {acme, "two", other, http.StatusAccepted, 2},
		"the same, of another caller": {edit, "one", body, http.StatusAccepted, 2},
		"of another caller":           {root, "one", other, http.StatusAccepted, 2},
		"a key with a space":          {acme, "a b", body, http.StatusUnprocessableEntity, 1},
		"a key that is too long":      {acme, strings.Repeat("k", 256), body, http.StatusUnprocessableEntity, 1},
	} {
		m.changes = m.changes[:1]
		again, code := send(c.secret, c.key, c.body)
		if code != c.code || len(m.changes) != c.changes || c.changes == 1 && code == http.StatusAccepted && again != first || c.changes == 2 && again.Request == first.Request {
			t.Errorf("%s: %d, %d changes, %+v", name, code, len(m.changes), again)
		}
	}
	// The key of a token that is valid for long is forgotten after a week.
	long := token.New()
	if err := m.Store.CreateToken(t.Context(), store.Token{ID: "long", Hash: token.Hash(long), Scopes: []string{"admin"}, Expires: m.Time.AddDate(1, 0, 0)}, store.Event{}); err != nil {
		t.Fatal(err)
	}
	m.changes, first = nil, Written{}
	for after, want := range []int{1, 1, 2, 2} { // Days 0, 7 less a second, 7, and 7 and a second.
		m.Time = m.Time.Add([]time.Duration{0, 7*24*time.Hour - time.Second, time.Second, time.Second}[after])
		again, _ := send(long, "one", body)
		if len(m.changes) != want || (again == first) != (after%2 == 1) {
			t.Errorf("request %d: %d changes, %+v", after, len(m.changes), again)
		}
		first = again
	}
}

// TestAKeyIsFreeAfterARefusalAndHeldAfterAFailure: nobody knows whether a write that failed was pushed, so it has the same ID when it is sent again.
func TestAKeyIsFreeAfterARefusalAndHeldAfterAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		first error
		free  bool
	}{
		"refused": {problem.New(problem.Conflict, "The file was changed."), true},
		"failed":  {problem.New(problem.Unavailable, "The repository does not answer."), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, nil)
			root := m.Token("root", "admin")
			send := func(body string) int {
				return m.Do(root, "POST", "/v1/apps/acme/shop", body, "Idempotency-Key: k").Code
			}
			m.err = c.first
			send(`{"name":"web"}`)
			m.err = nil
			if code := send(`{"name":"api"}`); (code == http.StatusAccepted) != c.free {
				t.Errorf("another body with the key: %d", code)
			}
			if c.free {
				return
			}
			if code := send(`{"name":"web"}`); code != http.StatusAccepted || len(m.changes) != 2 || m.changes[0].ID != m.changes[1].ID {
				t.Errorf("%d, %+v", code, m.changes)
			}
			if diff := cmp.Diff([]string{"root createApp app/acme/shop/web of acme " + commit}, m.events(t)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
	m := newManager(t, func(real store.Store) store.Store { return broken{real, errors.New("disk 7 of db1 is full")} })
	p := operated.Refused(t, m.Do(m.Token("root", "admin"), "POST", "/v1/apps/acme/shop", `{"name":"web"}`, "Idempotency-Key: k"), problem.Unavailable)
	if !strings.Contains(p.Detail, "Nothing was written.") || strings.Contains(p.Detail, "db1") || len(m.changes) != 0 {
		t.Errorf("%+v, %+v", p, m.changes)
	}
}

func TestASpecKeepsItsNumbersAndHasSoManyLevels(t *testing.T) {
	nested := func(levels int) string { return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) }
	for name, c := range map[string]struct {
		spec string
		want map[string]any
		code problem.Code // Of a spec that is refused.
		text string
	}{
		"integers":              {`{"a":9007199254740993,"b":-9223372036854775808,"c":[1,{"d":2}]}`, map[string]any{"a": int64(9007199254740993), "b": int64(-9223372036854775808), "c": []any{int64(1), map[string]any{"d": int64(2)}}}, "", ""},
		"as floats":             {`{"a":1e3,"b":2.0,"c":0.5,"d":1e300}`, map[string]any{"a": int64(1000), "b": int64(2), "c": 0.5, "d": 1e300}, "", ""},
		"more than 64 bits":     {`{"a":9223372036854775808}`, nil, problem.Invalid, "has a number in spec that is neither an integer of 64 bits nor a float of 64 bits"},
		"more than a float has": {`{"a":1e400}`, nil, problem.BadRequest, ""},
		"no object":             {`["a"]`, nil, problem.Invalid, ""},
		"null":                  {`null`, nil, problem.Invalid, ""},
		"60 levels":             {nested(60), depth(60), "", ""},
		"61 levels":             {nested(61), nil, problem.Invalid, ""},
		"lists, one too many":   {`{"a":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + "}", nil, problem.Invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, nil)
			answer := m.Do(m.Token("root", "admin"), "PUT", "/v1/apps/acme/shop/web", `{"spec":`+c.spec+`}`)
			if c.code != "" {
				p := operated.Refused(t, answer, c.code)
				if text := fmt.Sprintf("%+v", p); !strings.Contains(text, c.text) {
					t.Errorf("the answer is %s", text)
				}
				if len(m.changes) != 0 {
					t.Errorf("%+v was written", m.changes)
				}
				return
			}
			if answer.Code != http.StatusAccepted || len(m.changes) != 1 {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			if diff := cmp.Diff(c.want, m.changes[0].Spec); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func depth(levels int) map[string]any {
	var inner any = int64(1)
	for range levels - 1 {
		inner = map[string]any{"a": inner}
	}
	return map[string]any{"a": inner}
}

func TestHostileNamesAndHeadersOfWritesAreRefused(t *testing.T) {
	m := newManager(t, nil)
	root := m.Token("root", "admin")
	for _, r := range []struct{ method, path, body, header string }{
		{"POST", "/v1/tenants", `{"name":"../acme"}`, ""}, {"POST", "/v1/tenants", `{"name":""}`, ""}, {"POST", "/v1/tenants", `{}`, ""}, {"POST", "/v1/tenants", `{"name":"a","Spec":{}}`, ""},
		{"POST", "/v1/projects/acme", `{"name":"a/b"}`, ""}, {"POST", "/v1/apps/acme/shop", `{"name":"web","namespace":"kube-system"}`, ""}, {"POST", "/v1/apps/acme/shop", `{"name":"` + strings.Repeat("a", 64) + `"}`, ""},
		{"PUT", "/v1/apps/acme/%2e%2e/web", `{"spec":{}}`, ""}, {"PUT", "/v1/apps/acme/shop/web", `{}`, ""}, {"PUT", "/v1/apps/acme/shop/web?force=true", `{"spec":{}}`, ""},
		{"PUT", "/v1/apps/acme/shop/web", `{"spec":{}}`, "If-Match: one"}, {"DELETE", "/v1/apps/acme/shop/web", "", `If-Match: "one" "two"`}, {"DELETE", "/v1/apps/acme/shop/web", "", "If-Match: "},
		{"POST", "/v1/apps/acme/shop/web/rollback", `{"to":"HEAD~1"}`, ""}, {"POST", "/v1/apps/acme/shop/web/rollback", `{"to":"` + strings.ToUpper(commit) + `x"}`, ""}, {"GET", "/v1/apps/acme/shop/web/commits/main", "", ""},
	} {
		headers := []string{}
		if r.header != "" {
			headers = append(headers, r.header)
		}
		operated.Refused(t, m.Do(root, r.method, r.path, r.body, headers...), problem.Invalid)
	}
	if len(m.changes) != 0 {
		t.Errorf("%+v was written", m.changes)
	}
	for header, want := range map[string][]string{`"one"`: {"one"}, `W/"weak", "two"`: {"two"}, `*`: nil} {
		m.changes = nil
		if answer := m.Do(root, "PUT", "/v1/apps/acme/shop/web", `{"spec":{}}`, "If-Match: "+header); answer.Code != http.StatusAccepted || len(m.changes) != 1 || !cmp.Equal(m.changes[0].Match, want) {
			t.Errorf("%s: %d %+v", header, answer.Code, m.changes)
		}
	}
}

// TestOnlyRolesThatMayChangeAnObjectReadItsFile. Roles that may read the object also read the state of its commits, within the same limits.
func TestOnlyRolesThatMayChangeAnObjectReadItsFile(t *testing.T) {
	for role, c := range map[string]struct {
		file, commit int
		sees         Sees
	}{
		"admin":                    {http.StatusOK, http.StatusOK, Sees{Platform: true, Tenant: true}},
		"tenant:acme:view":         {http.StatusForbidden, http.StatusOK, Sees{Tenant: true}},
		"project:acme/shop:deploy": {http.StatusOK, http.StatusOK, Sees{}},
		"project:acme/shop:view":   {http.StatusForbidden, http.StatusOK, Sees{}},
		"project:acme/blog:edit":   {http.StatusNotFound, http.StatusNotFound, Sees{}},
		"tenant:beta:admin":        {http.StatusNotFound, http.StatusNotFound, Sees{}},
	} {
		m := newManager(t, nil)
		secret := m.Token(role, role)
		file := m.Do(secret, "GET", "/v1/apps/acme/shop/web/file", "")
		if file.Code != c.file || c.file == http.StatusOK && (file.Header().Get("ETag") != `"one"` || operated.Read[File](t, file, http.StatusOK).Text != "spec: {}\n") {
			t.Errorf("%s: the file is %d %s", role, file.Code, file.Body)
		}
		if known := m.Do(secret, "GET", "/v1/apps/acme/shop/web/file", "", `If-None-Match: "one"`); c.file == http.StatusOK && (known.Code != http.StatusNotModified || known.Body.Len() > 0) {
			t.Errorf("%s: with its ETag: %d %s", role, known.Code, known.Body)
		}
		if answer := m.Do(secret, "GET", "/v1/apps/acme/shop/web/commits/"+commit, ""); answer.Code != c.commit {
			t.Errorf("%s: the commit is %d %s", role, answer.Code, answer.Body)
		}
		if c.commit == http.StatusOK && (len(m.sees) != 1 || m.sees[0] != c.sees) {
			t.Errorf("%s sees %+v, want %+v", role, m.sees, c.sees)
		}
	}
	var spec Spec
	if err := json.Unmarshal([]byte(`{"a":`), &spec); err == nil || spec != nil {
		t.Errorf("half a spec is %v, %v", spec, err)
	}
}
