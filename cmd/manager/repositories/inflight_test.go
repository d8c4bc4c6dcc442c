package repositories

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kubeop/kubeop/internal/manager/problem"
)

// unread is a body that knows whether it was read.
type unread struct {
	*strings.Reader
	read atomic.Bool
}

func (u *unread) Read(into []byte) (int, error) {
	u.read.Store(true)
	return u.Reader.Read(into)
}

// TestLargeBodiesOfATenantWaitUnread while it has as many in progress as it may, and are refused then. Others go on.
func TestLargeBodiesOfATenantWaitUnread(t *testing.T) {
	s := newStage(t)
	tenant, admin := s.holder("ci", "tenant:acme:edit"), s.holder("root", "admin")
	begun, free := s.holdPush()
	var callers sync.WaitGroup
	callers.Go(func() { s.written(admin, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":3}}}`) })
	<-begun
	body := `{"spec":{"image":{"env":[{"name":"A","value":"` + strings.Repeat("a", 1000<<10) + `"}]}}}`
	send := func(secret, method, path string, body *unread) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/v1/apps/acme/shop/web"+path, body)
		r.Header.Set("Authorization", "Bearer "+secret)
		r.ContentLength = body.Size()
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		return answer
	}
	held := make([]*unread, 4)
	for i := range held {
		held[i] = &unread{Reader: strings.NewReader(body)}
		callers.Go(func() { send(tenant, "PATCH", "", held[i]) })
		eventually(t, "a body is not read", held[i].read.Load)
	}
	for method, path := range map[string]string{"PATCH": "", "POST": "/rollback"} {
		further := &unread{Reader: strings.NewReader(body)}
		answer := send(tenant, method, path, further)
		if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" || !strings.Contains(answer.Body.String(), string(problem.TooManyRequests)) || further.read.Load() {
			t.Errorf("%s %s: %d %s, read: %t", method, path, answer.Code, answer.Body, further.read.Load())
		}
	}
	theirs := &unread{Reader: strings.NewReader(`{"spec":{"image":{"replicas":4}}}`)}
	callers.Go(func() { send(admin, "PATCH", "", theirs) })
	eventually(t, "the body of another is not read", theirs.read.Load)
	free()
	callers.Wait()
}
