package repositories

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/manager/problem"
)

// TestIfMatchIsReadAsRFC9110Says: lists, weak ETags, and values that are no ETags.
func TestIfMatchIsReadAsRFC9110Says(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	const path = "/v1/apps/acme/shop/web"
	etag := s.send(admin, "GET", path+"/file", "").Header().Get("ETag")
	body := func(replicas string) string { return `{"spec":{"image":{"replicas":` + replicas + `}}}` }
	for _, value := range []string{`""`, "W/" + etag, `"other"`, `"-"`, `"other", W/` + etag} {
		if p := s.refused(admin, "PATCH "+path, body("3"), http.StatusConflict, header{"If-Match", value}); p.Versions == nil {
			t.Errorf("%s: %+v", value, p)
		}
		s.refused(admin, "DELETE "+path, "", http.StatusConflict, header{"If-Match", value})
	}
	for _, value := range []string{"", " ", strings.Trim(etag, `"`), `"open`} {
		if p := s.refused(admin, "PATCH "+path, body("3"), http.StatusUnprocessableEntity, header{"If-Match", value}); p.Code != problem.Invalid || p.Errors[0].Location != "header.If-Match" {
			t.Errorf("%q: %+v", value, p)
		}
	}
	if s.acme.commits() != 1 {
		t.Fatal("something was written")
	}
	s.written(admin, "PATCH", path, body("3"), header{"If-Match", `"other", ` + etag})
}

// TestADeletionComparesTheFolder, because all of it goes; a change of the file compares the file.
func TestADeletionComparesTheFolder(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	const path = "/v1/apps/acme/shop/web"
	seen := func() header {
		return header{"If-Match", s.send(admin, "GET", path+"/file", "").Header().Get("ETag")}
	}
	before := seen()
	s.acme.Write("projects/shop/apps/web/values.yaml", "a: 1\n")
	s.acme.Push("a file beside it")
	s.refused(admin, "DELETE "+path, "", http.StatusConflict, before)
	s.written(admin, "PATCH", path, `{"spec":{"image":{"replicas":3}}}`, before)
	s.written(admin, "DELETE", path, "", seen())
}

// TestIntegersKeepTheirForm, in a new file, in a changed field and in a replaced spec.
func TestIntegersKeepTheirForm(t *testing.T) {
	s := newStage(t)
	admin := s.holder("root", "admin")
	spec := func(data string) string {
		return `{"type":"Raw","raw":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{` + data + `}}]}}`
	}
	file := func(commit string) string {
		return s.acme.bare("show", commit+":projects/shop/apps/numbers/app.yaml") + "\n"
	}
	created := s.written(admin, "POST", "/v1/apps/acme/shop", `{"name":"numbers","spec":`+spec(`"first":1000640000`)+`}`)
	if got := file(created.Commit); !strings.Contains(got, "first: 1000640000\n") {
		t.Errorf("created:\n%s", got)
	}
	for number, want := range map[string]string{"1000640000": "1000640000", "9007199254740993": "9007199254740993", "-9223372036854775808": "-9223372036854775808", "1e6": "1000000", "0.25": "0.25"} {
		changed := s.written(admin, "PATCH", "/v1/apps/acme/shop/numbers", `{"spec":`+spec(`"num":`+number)+`}`)
		if got := file(changed.Commit); !strings.Contains(got, "num: "+want+"\n") {
			t.Errorf("%s becomes\n%s", number, got)
		}
	}
	s.refused(admin, "PATCH /v1/apps/acme/shop/numbers", `{"spec":`+spec(`"num":92233720368547758070`)+`}`, http.StatusUnprocessableEntity)
}
