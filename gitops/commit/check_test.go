package commit

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/folder"
)

// TestARefusedChangeIsNotPushed: not with the others of its group, and not as objects that no commit has. The check sees the files before and after its own commit alone.
func TestARefusedChangeIsNotPushed(t *testing.T) {
	s := serve(t)
	h := hold(t.Context(), s.remote())
	refusal := errors.New("it is wrong")
	checked := func(id, content string, err error) Request {
		r := request(id, Create{File: "shop/" + id, Content: []byte(content)})
		r.Folder = "projects"
		r.Check = func(before, after *folder.Folder) error {
			if _, had := before.ReadFile("shop/" + id); had == nil {
				t.Errorf("%s was there before", id)
			}
			if text, missing := after.ReadFile("shop/" + id); missing != nil || string(text) != content {
				t.Errorf("%s has %q, %v", id, text, missing)
			}
			_, others := after.ReadFile("shop/apps/web/app.yaml")
			return errors.Join(err, others)
		}
		return r
	}
	group := h.enter(t.Context(), checked("a", "first", nil), checked("b", "hunter2", refusal), checked("c", "last", nil))
	h.let(group)
	if !errors.Is(group.errs[1], refusal) || errors.Join(group.errs[0], group.errs[2]) != nil {
		t.Errorf("%v", group.errs)
	}
	if files := s.bare("ls-tree", "--name-only", "main:projects/shop"); files != "a\napps\nc" {
		t.Errorf("the branch has\n%s", files)
	}
	for _, object := range strings.Fields(s.bare("cat-file", "--batch-check=%(objectname) ", "--batch-all-objects")) {
		if strings.Contains(s.bare("cat-file", "-p", object), "hunter2") {
			t.Errorf("the server has %s", object)
		}
	}
}
