package repositories

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/offline"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

const webSpec = `{"type":"Image","host":"api.example.com","image":{"reference":"registry.example.com/api:1","ports":[{"name":"http","port":8080}],"replicas":2}}`

// TestTheAPICommitsTheFilesThatKubeopCreateWrites compares what the API commits with what `kubeop create` writes for people who push it.
func TestTheAPICommitsTheFilesThatKubeopCreateWrites(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	for name, c := range map[string]struct {
		in         *remote
		args       []string
		path, body string
	}{
		"an app": {s.acme, []string{"app", "shop/api", "--image", "registry.example.com/api:1", "--port", "8080", "--host", "api.example.com", "--replicas", "2"},
			"/v1/apps/acme/shop", `{"name":"api","spec":` + webSpec + `}`},
		"a project": {s.acme, []string{"project", "docs", "--quota", "pods=20"}, "/v1/projects/acme", `{"name":"docs","spec":{"quota":{"pods":"20"}}}`},
		"a tenant": {s.platform, []string{"tenant", "gamma", "--url", "https://git.example.com/gamma.git", "--owner", "Group:gamma:edit"},
			"/v1/tenants", `{"name":"gamma","spec":{"repository":{"url":"https://git.example.com/gamma.git"},"owners":[{"kind":"Group","name":"gamma","role":"edit"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			c.in.T = t
			c.in.Git("pull", "--quiet", "origin", "main")
			t.Chdir(c.in.Work)
			streams, _, _, _ := genericiooptions.NewTestIOStreams()
			command := offline.Create(call.New(streams, clocktesting.NewFakeClock(time.Now())))
			command.SetArgs(c.args)
			command.SetOut(io.Discard)
			if err := command.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.in.Git("add", "--all")
			byHand := c.in.Git("write-tree")
			c.in.Git("reset", "--quiet", "--hard")
			w := s.written(admin, "POST", c.path, c.body)
			if got := c.in.bare("rev-parse", "main^{tree}"); got != byHand || c.in.bare("rev-parse", "main") != w.Commit {
				t.Errorf("the trees differ:\n%s", c.in.bare("show", "main"))
			}
		})
	}
}

// TestACommitHasTheCallerAndTheRequest, and the audit log has the commit.
func TestACommitHasTheCallerAndTheRequest(t *testing.T) {
	s := newStage(t)
	caller := s.holder("ci", "project:acme/shop:edit")
	w := s.written(caller, "POST", "/v1/apps/acme/shop", `{"name":"api","spec":`+webSpec+`}`)
	if got := s.acme.bare("log", "-1", "--format=%an|%ae|%cn|%s|%(trailers:key=Kubeop-Request,valueonly)"); strings.TrimSpace(got) != "CI of ci|ci@token.kubeop|kubeop-manager|Create app acme/shop/api|"+w.Request {
		t.Errorf("the commit says %q", got)
	}
	if w.Repository != "acme" || w.File != "projects/shop/apps/api/app.yaml" || !w.Changed || w.Follow != "/v1/apps/acme/shop/api/commits/"+w.Commit {
		t.Errorf("%+v", w)
	}
	events, err := s.store.ListEvents(t.Context(), "acme", 0, 1)
	if err != nil || len(events) != 1 {
		t.Fatalf("%v %v", events, err)
	}
	if e := events[0]; e.Action != "createApp" || e.Object != "app/acme/shop/api" || e.Commit != w.Commit || e.Actor != "ci" || e.RequestID != w.Request {
		t.Errorf("%+v", e)
	}
}

// TestAChangeOfOneFieldKeepsTheRest: comments, quotes and order, by a merge patch and by a replacement.
func TestAChangeOfOneFieldKeepsTheRest(t *testing.T) {
	const path = "/v1/apps/acme/shop/web"
	for name, c := range map[string]struct{ method, body, want string }{
		"a patch":              {"PATCH", `{"spec":{"image":{"replicas":3}}}`, strings.Replace(appText, "replicas: 2", "replicas: 3", 1)},
		"a patch that deletes": {"PATCH", `{"spec":{"image":{"replicas":null,"command":null}}}`, strings.Replace(appText, "    replicas: 2 # two zones\n", "", 1)},
		"a replacement": {"PUT", `{"spec":{"type":"Image","image":{"reference":"registry.example.com/web:1.0","replicas":2,"env":[{"name":"MESSAGE","value":"hi"}]}}}`,
			strings.Replace(appText, "value: hello", "value: hi", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			w := s.written(s.holder("ci", "project:acme/shop:deploy"), c.method, path, c.body)
			if got := s.acme.bare("show", w.Commit+":"+appFile) + "\n"; got != c.want {
				t.Errorf("-want +got:\n%s", cmp.Diff(c.want, got))
			}
			if again := s.written(s.holder("again", "admin"), c.method, path, c.body); again.Changed || again.Commit != w.Commit || s.acme.commits() != 2 {
				t.Errorf("the same again: %+v", again)
			}
		})
	}
}

// TestAConflictHasBothVersions: what is there, and what the caller wants.
func TestAConflictHasBothVersions(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	p := s.refused(admin, "POST /v1/apps/acme/shop", `{"name":"web","spec":`+webSpec+`}`, http.StatusConflict)
	if p.Versions == nil || p.Versions.Current != appText || !strings.Contains(p.Versions.Yours, "api.example.com") || p.Versions.File != appFile || p.Versions.Commit != s.acme.bare("rev-parse", "main") {
		t.Errorf("%+v", p.Versions)
	}
	read := s.send(admin, "GET", "/v1/apps/acme/shop/web/file", "")
	seen := header{"If-Match", read.Header().Get("ETag")}
	if read.Code != http.StatusOK || seen.value == "" || !strings.Contains(read.Body.String(), "two zones") {
		t.Fatalf("%d %s", read.Code, read.Body)
	}
	if again := s.send(admin, "GET", "/v1/apps/acme/shop/web/file", "", header{"If-None-Match", seen.value}); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("the file again: %d %s", again.Code, again.Body)
	}
	s.written(admin, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":3}}}`, seen, header{"Content-Type", "application/merge-patch+json"})
	for method, body := range map[string]string{"PATCH": `{"spec":{"host":"web.example.com"}}`, "PUT": `{"spec":` + webSpec + `}`, "DELETE": ""} {
		p := s.refused(admin, method+" /v1/apps/acme/shop/web", body, http.StatusConflict, seen)
		if p.Versions == nil || !strings.Contains(p.Versions.Current, "replicas: 3 # two zones") || (p.Versions.Yours == "") != (method == "DELETE") || p.Versions.Yours == p.Versions.Current {
			t.Errorf("%s: %+v", method, p.Versions)
		}
	}
	if got := s.acme.commits(); got != 2 {
		t.Errorf("there are %d commits", got)
	}
	s.written(admin, "DELETE", "/v1/apps/acme/shop/web", "", header{"If-Match", "*"})
}

// TestARefusedWriteCommitsNothing: the answer has file, line and reason, and the server gets nothing of it.
func TestARefusedWriteCommitsNothing(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	before, objects := s.acme.bare("rev-parse", "main"), s.acme.bare("count-objects")
	for name, c := range map[string]struct{ method, path, body, location, message string }{
		"an unknown field":        {"PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replica":3}}}`, appFile + ":", "spec.image.replica"},
		"a value of another type": {"PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":"many"}}}`, appFile + ":8:", "replicas"},
		"no type":                 {"PUT", "/v1/apps/acme/shop/web", `{"spec":{}}`, appFile, "type"},
		"a project that is not":   {"POST", "/v1/apps/acme/none", `{"name":"web","spec":` + webSpec + `}`, "projects/none", "project.yaml"},
		"a name that is reserved": {"POST", "/v1/tenants", `{"name":"platform"}`, "platform", "tenant"},
		"a name with a dash":      {"POST", "/v1/tenants", `{"name":"a-b"}`, "tenants/a-b", "name"},
		"an unknown top field":    {"PATCH", "/v1/apps/acme/shop/web", `{"spec":{},"metadata":{}}`, "body.metadata", "unexpected"},
		"a spec that is null":     {"PUT", "/v1/apps/acme/shop/web", `{"spec":null}`, "body.spec", "object"},
		"a deep spec":             {"PATCH", "/v1/apps/acme/shop/web", `{"spec":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`, "body.spec", "levels"},
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			p := s.refused(admin, c.method+" "+c.path, c.body, http.StatusUnprocessableEntity)
			if p.Code != problem.Invalid || !slices.ContainsFunc(p.Errors, func(f problem.Fault) bool {
				return strings.HasPrefix(f.Location, c.location) && strings.Contains(f.Message, c.message)
			}) {
				t.Errorf("%+v", p)
			}
		})
	}
	s.acme.T = t
	if s.acme.bare("rev-parse", "main") != before || s.acme.bare("count-objects") != objects {
		t.Error("something was pushed")
	}
	if events, err := s.store.ListEvents(t.Context(), "acme", 0, 10); err != nil || len(events) != 0 {
		t.Errorf("something was recorded: %v %v", events, err)
	}
}

// TestADeletionIsOfTheFolder, and what is not there cannot be deleted or changed.
func TestADeletionIsOfTheFolder(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	s.acme.Write("projects/shop/apps/web/values.yaml", "a: 1\n")
	s.acme.Push("a file beside it")
	s.written(admin, "DELETE", "/v1/apps/acme/shop/web", "")
	if files := s.acme.bare("ls-tree", "-r", "--name-only", "main"); strings.Contains(files, "shop/apps") || !strings.Contains(files, "shop/project.yaml") {
		t.Errorf("left are\n%s", files)
	}
	for method, body := range map[string]string{"DELETE": "", "PATCH": `{"spec":{"host":"x.example.com"}}`, "PUT": `{"spec":` + webSpec + `}`} {
		if p := s.refused(admin, method+" /v1/apps/acme/shop/web", body, http.StatusNotFound); !strings.Contains(p.Detail, appFile) {
			t.Errorf("%s: %+v", method, p)
		}
	}
	s.refused(admin, "GET /v1/apps/acme/shop/web/file", "", http.StatusNotFound)
}

// TestARepositoryMayBeAFolder of another one, however its path is written.
func TestARepositoryMayBeAFolder(t *testing.T) {
	for _, path := range []string{"team", "./team/"} {
		t.Run(path, func(t *testing.T) {
			s := newStage(t)
			admin := s.holder("root", "admin")
			for name, text := range map[string]string{"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": head + "Project\nmetadata: {name: shop}\n", appFile: appText} {
				s.acme.Write("team/"+name, text)
			}
			s.acme.Push("a folder")
			repository := &v1alpha1.Repository{}
			if err := s.objects.Get(t.Context(), client.ObjectKey{Name: "acme"}, repository); err != nil {
				t.Fatal(err)
			}
			repository.Spec.Path = path
			if err := s.objects.Update(t.Context(), repository); err != nil {
				t.Fatal(err)
			}
			w := s.written(admin, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":3}}}`)
			if got := s.acme.bare("show", w.Commit+":team/"+appFile); w.File != "team/"+appFile || !strings.Contains(got, "replicas: 3 # two zones") {
				t.Errorf("%s has %s", w.File, got)
			}
			if p := s.refused(admin, "PATCH /v1/apps/acme/shop/web", `{"spec":{"no":1}}`, http.StatusUnprocessableEntity); !strings.HasPrefix(p.Errors[0].Location, "team/"+appFile+":") {
				t.Errorf("%+v", p)
			}
			if p := s.refused(admin, "POST /v1/apps/acme/shop", `{"name":"web","spec":`+webSpec+`}`, http.StatusConflict); p.Versions == nil || !strings.Contains(p.Versions.Current, "replicas: 3") {
				t.Errorf("%+v", p)
			}
		})
	}
}

// forgetful is a store that fails to keep answers, or fails at all.
type forgetful struct {
	store.Store
	answers, all error
}

// FinishRequest implements store.Requests.
func (f *forgetful) FinishRequest(ctx context.Context, r store.Request, e store.Event) error {
	if f.answers != nil {
		return f.answers
	}
	return f.Store.FinishRequest(ctx, r, e)
}

// BeginRequest implements store.Requests.
func (f *forgetful) BeginRequest(ctx context.Context, r store.Request) (store.Request, error) {
	if f.all != nil {
		return store.Request{}, f.all
	}
	return f.Store.BeginRequest(ctx, r)
}

// RecordEvent implements store.Audit.
func (f *forgetful) RecordEvent(ctx context.Context, e store.Event) error {
	if f.all != nil {
		return f.all
	}
	return f.Store.RecordEvent(ctx, e)
}

// TestAKeyIsForOneCommit, also if the answer was lost, or the manager was killed between the push and the answer.
func TestAKeyIsForOneCommit(t *testing.T) {
	s := newStage(t)
	admin, other := s.holder("root", "admin"), s.holder("other", "admin")
	const body = `{"name":"api","spec":` + webSpec + `}`
	key := header{"Idempotency-Key", "7d1e"}
	lost := &forgetful{Store: s.store, answers: errors.New("the manager was killed")}
	s.start(lost)
	first := s.written(admin, "POST", "/v1/apps/acme/shop", body, key)
	lost.answers = nil
	s.start(lost)
	for range 2 {
		if again := s.written(admin, "POST", "/v1/apps/acme/shop", strings.Replace(body, ":", ": ", 1), key); again != first {
			t.Errorf("again it is %+v, first %+v", again, first)
		}
	}
	// A later commit changes nothing about it.
	s.written(admin, "DELETE", "/v1/apps/acme/shop/api", "")
	if again := s.written(admin, "POST", "/v1/apps/acme/shop", body, key); again != first {
		t.Errorf("later it is %+v, first %+v", again, first)
	}
	if p := s.refused(admin, "POST /v1/apps/acme/shop", strings.Replace(body, "8080", "8081", 1), http.StatusUnprocessableEntity, key); p.Errors[0].Location != "header.Idempotency-Key" {
		t.Errorf("another body: %+v", p)
	}
	if p := s.refused(admin, "POST /v1/apps/acme/blog", body, http.StatusUnprocessableEntity, key); p.Errors[0].Location != "header.Idempotency-Key" {
		t.Errorf("another path: %+v", p)
	}
	if got := s.acme.commits(); got != 3 {
		t.Errorf("there are %d commits", got)
	}
	if theirs := s.written(other, "POST", "/v1/apps/acme/shop", body, key); theirs.Commit == first.Commit {
		t.Error("another caller has the same key")
	}
	events, err := s.store.ListEvents(t.Context(), "acme", 0, 10)
	if err != nil || len(events) != 3 || events[2].Commit != first.Commit {
		t.Errorf("recorded are %+v %v", events, err)
	}
}

// TestARefusedRequestLeavesItsKeyFree: the caller corrects the body, and sends it again.
func TestARefusedRequestLeavesItsKeyFree(t *testing.T) {
	s := newStage(t)
	admin, key := s.holder("root", "admin"), header{"Idempotency-Key", "k"}
	s.refused(admin, "POST /v1/apps/acme/shop", `{"name":"api","spec":{"type":"Image"}}`, http.StatusUnprocessableEntity, key)
	s.written(admin, "POST", "/v1/apps/acme/shop", `{"name":"api","spec":`+webSpec+`}`, key)
}

// TestWritesGoOnWithoutTheStore, but for those with a key, which only the store can keep.
func TestWritesGoOnWithoutTheStore(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	s.start(&forgetful{Store: s.store, all: errors.New("disk full")})
	if p := s.refused(admin, "POST /v1/apps/acme/shop", `{"name":"api","spec":`+webSpec+`}`, http.StatusServiceUnavailable, header{"Idempotency-Key", "k"}); p.Code != problem.Unavailable || s.acme.commits() != 1 {
		t.Errorf("%+v", p)
	}
	s.written(admin, "POST", "/v1/apps/acme/shop", `{"name":"api","spec":`+webSpec+`}`)
}

// TestAGitServerThatFailsIsNamed by a problem that says whether to try again, and never by what it says.
func TestAGitServerThatFailsIsNamed(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	answer := func(do func(http.ResponseWriter)) {
		s.acme.server.Set(func() {
			s.acme.server.Wrap = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				do(w)
				return true
			}
		})
	}
	patch := func(status int) problem.Problem {
		t.Helper()
		return s.refused(admin, "PATCH /v1/apps/acme/shop/web", `{"spec":{"host":"x.example.com"}}`, status)
	}
	answer(func(w http.ResponseWriter) { http.Error(w, "hunter2", http.StatusForbidden) })
	if p := patch(http.StatusServiceUnavailable); strings.Contains(p.Detail, "hunter2") || !strings.Contains(p.Detail, "credentials") {
		t.Errorf("it refuses: %+v", p)
	}
	answer(func(w http.ResponseWriter) { http.Error(w, "hunter2", http.StatusBadGateway) })
	if p := patch(http.StatusServiceUnavailable); strings.Contains(p.Detail, "hunter2") {
		t.Errorf("it fails: %+v", p)
	}
	s.acme.server.Set(func() { s.acme.server.Wrap = nil })
	s.acme.server.Set(func() { s.acme.server.Allow = func(*http.Request) bool { return false } })
	patch(http.StatusServiceUnavailable)
}
