package repositories

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// TestTheLimitsAreThoseOfTheTenant, as they are for the operator.
func TestTheLimitsAreThoseOfTheTenant(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	large := `{"type":"Raw","raw":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"` + strings.Repeat("x", 70<<10) + `"}}]}}`
	small := resource.MustParse("64Ki")
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Limits: v1alpha1.TenantLimits{TreeBytes: &small}}}
	if err := s.objects.Create(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if p := s.refused(admin, "POST /v1/apps/acme/shop", `{"name":"large","spec":`+large+`}`, http.StatusUnprocessableEntity); !strings.Contains(fmt.Sprint(p.Errors), "acme") {
		t.Errorf("%+v", p)
	}
	tenant.Spec.Limits = v1alpha1.TenantLimits{}
	if err := s.objects.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	s.written(admin, "POST", "/v1/apps/acme/shop", `{"name":"large","spec":`+large+`}`)
}

// TestInventedCommitsAskTheServerRarely, and those of the branch as often as they are followed.
func TestInventedCommitsAskTheServerRarely(t *testing.T) {
	s := newStage(t)
	viewer, admin := s.holder("eve", "project:acme/shop:view"), s.holder("root", "admin")
	now := clocktesting.NewFakePassiveClock(time.Now())
	s.repositories.clock = now
	path := func(i int) string { return fmt.Sprintf("GET /v1/apps/acme/shop/web/commits/%040x", i) }
	s.refused(viewer, path(1), "", http.StatusNotFound)
	asked := len(s.acme.server.Seen())
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() { s.refused(viewer, path(i), "", http.StatusNotFound) })
	}
	callers.Wait()
	if more := len(s.acme.server.Seen()) - asked; more > 0 {
		t.Errorf("the server was asked %d times", more)
	}
	w := s.written(admin, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":3}}}`)
	if got := s.send(viewer, "GET", w.Follow, ""); got.Code != http.StatusOK {
		t.Errorf("a commit of the manager: %d %s", got.Code, got.Body)
	}
	s.acme.Git("pull", "--quiet", "origin", "main")
	s.acme.Write("README.md", "by hand\n")
	s.acme.Push("by hand")
	byHand := "/v1/apps/acme/shop/web/commits/" + s.acme.bare("rev-parse", "main")
	now.SetTime(now.Now().Add(lookEvery))
	if got := s.send(viewer, "GET", byHand, ""); got.Code != http.StatusOK {
		t.Errorf("a commit by hand: %d %s", got.Code, got.Body)
	}
}

// TestALinkOrFolderInPlaceOfAFileIsAConflict, because only a commit by hand can change it.
func TestALinkOrFolderInPlaceOfAFileIsAConflict(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	dir := filepath.Join(s.acme.Work, "projects/shop/apps")
	for _, name := range []string{"link", "folder", "large"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../web/app.yaml", filepath.Join(dir, "link/app.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("web", filepath.Join(dir, "around")); err != nil {
		t.Fatal(err)
	}
	s.acme.Write("projects/shop/apps/folder/app.yaml/a", "a")
	s.acme.Write("projects/shop/apps/large/app.yaml", strings.Repeat("#", int(folder.DefaultLimits().File)+1))
	s.acme.Push("odd files")
	for _, name := range []string{"link", "around", "folder", "large"} {
		if p := s.refused(admin, "GET /v1/apps/acme/shop/"+name+"/file", "", http.StatusConflict); p.Code != problem.Conflict || !strings.Contains(p.Detail, name+"/app.yaml") {
			t.Errorf("%s: %+v", name, p)
		}
		if answer := s.send(admin, "PATCH", "/v1/apps/acme/shop/"+name, `{"spec":{"image":{"replicas":3}}}`); answer.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
	}
}

// TestTheCacheForgetsDeletedRepositories, and trees that nobody writes to.
func TestTheCacheForgetsDeletedRepositories(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	now := clocktesting.NewFakePassiveClock(time.Now())
	s.repositories.clock = now
	w := s.written(admin, "PATCH", "/v1/apps/acme/shop/web", `{"spec":{"image":{"replicas":3}}}`)
	s.written(admin, "PATCH", "/v1/apps/beta/shop/a", `{"spec":{"image":{"replicas":3}}}`)
	s.send(admin, "GET", w.Follow, "")
	c := &s.repositories.cache
	forget := func(trees, branches, contained int) {
		t.Helper()
		if err := s.repositories.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(c.trees) != trees || len(c.commits) != branches || len(c.contained) != contained {
			t.Errorf("left are %d trees, the commits of %d branches and %d answers", len(c.trees), len(c.commits), len(c.contained))
		}
	}
	forget(2, 2, 1)
	if err := s.objects.Delete(t.Context(), &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}); err != nil {
		t.Fatal(err)
	}
	forget(1, 1, 0)
	now.SetTime(now.Now().Add(treeLife + time.Second))
	forget(0, 1, 0)
}
