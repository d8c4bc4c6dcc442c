package repositories

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/manager/problem"
)

// TestAnEmptyRepositoryIsAConflictThatSaysWhatToPush: sending the request again would not help.
func TestAnEmptyRepositoryIsAConflictThatSaysWhatToPush(t *testing.T) {
	s := newStage(t)
	s.acme.bare("update-ref", "-d", "refs/heads/main")
	p := s.refused(s.holder("root", "admin"), "POST /v1/projects/acme", `{"name":"docs"}`, http.StatusConflict)
	if p.Code != problem.Conflict || !strings.Contains(p.Detail, "repository acme is empty") || !strings.Contains(p.Detail, "kubeop.yaml") {
		t.Errorf("%+v", p)
	}
}

// TestARepositoryWithoutALayoutTakesNoWrite: the operator uses nothing of it, so the commit would stay Pending for ever.
func TestARepositoryWithoutALayoutTakesNoWrite(t *testing.T) {
	for name, c := range map[string]struct{ layout, why string }{
		"without kubeop.yaml":    {"", "there is no kubeop.yaml"},
		"with an unknown layout": {"layout: v2\n", "layout"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			if c.layout == "" {
				s.acme.Git("rm", "--quiet", "kubeop.yaml")
			} else {
				s.acme.Write("kubeop.yaml", c.layout)
			}
			s.acme.Push("no layout")
			before := s.acme.commits()
			p := s.refused(s.holder("root", "admin"), "POST /v1/projects/acme", `{"name":"docs"}`, http.StatusUnprocessableEntity)
			if len(p.Errors) == 0 || !strings.HasPrefix(p.Errors[0].Location, "kubeop.yaml") || !strings.Contains(p.Errors[0].Message, c.why) {
				t.Errorf("%+v", p)
			}
			if now := s.acme.commits(); now != before {
				t.Errorf("there are %d commits, and were %d", now, before)
			}
		})
	}
}
