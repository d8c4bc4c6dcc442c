package repositories

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/store"
)

// holdPush lets the first push to a repository wait until free is called. begun is closed when it is there.
func (s *stage) holdPush() (begun chan struct{}, free func()) {
	begun, wait := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.acme.server.Set(func() {
		s.acme.server.Wrap = func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.HasSuffix(r.URL.Path, "git-receive-pack") && r.Method == http.MethodPost {
				once.Do(func() { close(begun); <-wait })
			}
			return false
		}
	})
	free = sync.OnceFunc(func() { close(wait) })
	s.Cleanup(free)
	return begun, free
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestAWriteWhoseCallerLeftIsRecorded: the commit is there, so the audit log has it, and a key has its answer.
func TestAWriteWhoseCallerLeftIsRecorded(t *testing.T) {
	for _, key := range []string{"", "k"} {
		t.Run("key "+key, func(t *testing.T) {
			s := newStage(t)
			admin := s.holder("root", "admin")
			begun, free := s.holdPush()
			ctx, leave := context.WithCancel(t.Context())
			const body = `{"name":"api","spec":` + webSpec + `}`
			r := httptest.NewRequestWithContext(ctx, "POST", "/v1/apps/acme/shop", strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+admin)
			r.Header.Set("Idempotency-Key", key)
			var caller sync.WaitGroup
			caller.Go(func() { s.ServeHTTP(httptest.NewRecorder(), r) })
			<-begun
			leave()
			caller.Wait()
			free()
			eventually(t, "the write is not in the audit log", func() bool {
				events, err := s.store.ListEvents(t.Context(), "acme", 0, 1)
				return err == nil && len(events) == 1 && events[0].Commit == s.acme.bare("rev-parse", "main") && events[0].Action == "createApp" && events[0].Actor == "root"
			})
			if key != "" && s.written(admin, "POST", "/v1/apps/acme/shop", body, header{"Idempotency-Key", key}).Commit != s.acme.bare("rev-parse", "main") {
				t.Error("the request that is sent again has another answer")
			}
			if got := s.acme.commits(); got != 2 {
				t.Errorf("there are %d commits", got)
			}
		})
	}
}

// TestARevokedTokenPushesNothing, though its request was accepted before and waited for its turn.
func TestARevokedTokenPushesNothing(t *testing.T) {
	s := newStage(t)
	admin, revoked := s.holder("root", "admin"), s.holder("ci", "project:acme/shop:deploy")
	begun, free := s.holdPush()
	var callers sync.WaitGroup
	callers.Go(func() { s.written(admin, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":3}}}`) })
	<-begun
	answer := httptest.NewRecorder()
	callers.Go(func() {
		answer = s.send(revoked, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"reference":"registry.example.com/evil:1"}}}`)
	})
	time.Sleep(200 * time.Millisecond) // It is in the queue, or refused later anyway.
	if err := s.store.RevokeToken(t.Context(), "", "ci", store.Event{At: s.now}); err != nil {
		t.Fatal(err)
	}
	free()
	callers.Wait()
	if answer.Code != http.StatusUnauthorized || s.acme.commits() != 2 || strings.Contains(s.acme.bare("show", "main:"+appFile), "evil") {
		t.Errorf("%d %s, %d commits", answer.Code, answer.Body, s.acme.commits())
	}
}

// TestAKeyThatWasForgottenIsForAnotherCommit, and not answered with the one of more than a week before.
func TestAKeyThatWasForgottenIsForAnotherCommit(t *testing.T) {
	s := newStage(t)
	admin, key := s.holder("root", "admin"), header{"Idempotency-Key", "k"}
	const body = `{"name":"api","spec":` + webSpec + `}`
	first := s.written(admin, "POST", "/v1/apps/acme/shop", body, key)
	s.written(admin, "DELETE", "/v1/apps/acme/shop/api", "")
	s.now = s.now.AddDate(0, 0, 8)
	if again := s.written(admin, "POST", "/v1/apps/acme/shop", body, key); again.Commit == first.Commit || again.Request == first.Request || !strings.Contains(s.acme.bare("ls-tree", "-r", "--name-only", "main"), "apps/api/app.yaml") {
		t.Errorf("first %+v, again %+v", first, again)
	}
}

// TestOnlyRolesOfTheTenantReadMessagesOfItsRepository: they may name files of other projects.
func TestOnlyRolesOfTheTenantReadMessagesOfItsRepository(t *testing.T) {
	s := newStage(t)
	repository := &v1alpha1.Repository{}
	if err := s.objects.Get(t.Context(), client.ObjectKey{Name: "acme"}, repository); err != nil {
		t.Fatal(err)
	}
	head := s.acme.bare("rev-parse", "main")
	repository.Status.HeldRevision = "main@sha1:" + head
	repository.Status.Conditions = append(repository.Status.Conditions, notReady("projects/blog/apps/secret is deleted"))
	if err := s.objects.Update(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	for scope, sees := range map[string]bool{"project:acme/shop:view": false, "project:acme/shop:edit": false, "tenant:acme:view": true, "admin": true} {
		got := s.send(s.holder(scope, scope), "GET", "/v1/apps/acme/shop/web/commits/"+head, "").Body.String()
		if strings.Contains(got, "blog") != sees || !strings.Contains(got, `"Held"`) {
			t.Errorf("%s reads %s", scope, got)
		}
	}
}

// TestARefusedWriteIsLogged with its caller and the reason.
func TestARefusedWriteIsLogged(t *testing.T) {
	s := newStage(t)
	admin, viewer := s.holder("root", "admin"), s.holder("eve", "project:acme/shop:view")
	var mu sync.Mutex
	var lines []string
	s.log = funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	s.start(s.store)
	s.refused(viewer, "DELETE /v1/apps/acme/shop/web", "", http.StatusForbidden)
	s.refused(viewer, "DELETE /v1/apps/acme/blog/web", "", http.StatusNotFound)
	s.refused(admin, "POST /v1/apps/acme/shop", `{"name":"web","spec":`+webSpec+`}`, http.StatusConflict)
	s.refused(admin, "PATCH /v1/apps/acme/shop/web", `{"spec":{"no":1}}`, http.StatusUnprocessableEntity)
	for _, want := range [][]string{
		{`"caller"="eve"`, `"action"="deleteApp"`, `"object"="app/acme/shop/web"`, `"status"=403`},
		{`"caller"="eve"`, `"object"="app/acme/blog/web"`, `"status"=404`},
		{`"caller"="root"`, `"action"="createApp"`, `"code"="conflict"`, "exists"},
		{`"caller"="root"`, `"action"="patchApp"`, `"code"="invalid"`, appFile},
	} {
		if !slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, "Refusing a write") && !slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(line, part) })
		}) {
			t.Errorf("no line has %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// TestTheNameOfAnAuthorIsPrinted: what turns the direction of a text, or ends its line, is left out.
func TestTheNameOfAnAuthorIsPrinted(t *testing.T) {
	s := newStage(t)
	s.written(s.holder("a\u202eb\u2028c\x07", "admin"), "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":3}}}`)
	if got := s.acme.bare("log", "-1", "--format=%an"); got != "CI of abc" {
		t.Errorf("the author is %q", got)
	}
}
