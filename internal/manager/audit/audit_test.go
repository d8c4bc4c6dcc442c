package audit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

const list, exports = "/v1/audit", "/v1/audit/export"

// newLog serves a log with six events, of acme and beta by turns, after the ones of the tokens, which have the ids 1 to 6.
func newLog(t *testing.T) (s *operated.Served, callers map[string]string) {
	t.Helper()
	s = operated.Start(t, func(s *operated.Served, api huma.API) { Register(api, s.Store) })
	callers = map[string]string{
		"root": s.Token("root", "admin"), "acme": s.Token("acme", "tenant:acme:admin"), "viewer": s.Token("viewer", "tenant:acme:view"),
		"editor": s.Token("editor", "tenant:acme:edit"), "deployer": s.Token("deployer", "project:acme/shop:deploy"), "gamma": s.Token("gamma", "tenant:gamma:admin"),
	}
	for i := range 6 {
		e := store.Event{At: s.Time, Actor: "root", Action: "createApp", Object: fmt.Sprint("app/", i), Tenant: []string{"acme", "beta"}[i%2], Address: "192.0.2.1:5", RequestID: "r", Commit: "c"}
		if err := s.Store.RecordEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return s, callers
}

func TestOnlyAdministratorsReadTheLogAndOnlyOfTheirTenant(t *testing.T) {
	s, callers := newLog(t)
	for name, c := range map[string]struct {
		caller, query string
		want          []int64
		refused       problem.Code
	}{
		"an administrator":                  {"root", "", []int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, ""},
		"an administrator, of a tenant":     {"root", "?tenant=beta", []int64{12, 10, 8}, ""},
		"of a tenant that does not exist":   {"root", "?tenant=nobody", nil, ""},
		"an administrator of a tenant":      {"acme", "", []int64{11, 9, 7, 5, 4, 3, 2}, ""},
		"its own by name":                   {"acme", "?tenant=acme", []int64{11, 9, 7, 5, 4, 3, 2}, ""},
		"of another tenant":                 {"acme", "?tenant=beta", nil, problem.Forbidden},
		"of another tenant, without events": {"gamma", "?tenant=acme", nil, problem.Forbidden},
		"who views a tenant":                {"viewer", "", nil, problem.Forbidden},
		"who edits a tenant":                {"editor", "", nil, problem.Forbidden},
		"who deploys":                       {"deployer", "", nil, problem.Forbidden},
		"nobody":                            {"", "", nil, problem.Unauthenticated},
		"SQL for a tenant":                  {"root", "?tenant=%27+OR+1%3D1+--", nil, ""},
		"a long name of a tenant":           {"root", "?tenant=" + strings.Repeat("a", 64), nil, problem.Invalid},
		"an unknown parameter":              {"root", "?tenants=acme", nil, problem.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			listed, exported := s.Do(callers[c.caller], "GET", list+c.query, ""), s.Do(callers[c.caller], "GET", exports+c.query, "")
			if c.refused != "" {
				operated.Refused(t, listed, c.refused)
				operated.Refused(t, exported, c.refused)
				return
			}
			var ids []int64
			for _, e := range operated.Read[page.List[Event]](t, listed, http.StatusOK).Items {
				ids = append(ids, e.ID)
			}
			if diff := cmp.Diff(c.want, ids); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, idsOf(t, exported.Body.String())); diff != "" || exported.Code != http.StatusOK || exported.Header().Get("Content-Type") != lines {
				t.Errorf("%d: the export (-want +got):\n%s", exported.Code, diff)
			}
		})
	}
}

// idsOf reads an export.
func idsOf(t *testing.T, text string) (ids []int64) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

func TestAnEventIsReturnedAsItWasRecorded(t *testing.T) {
	s, callers := newLog(t)
	want := Event{ID: 12, At: s.Time, Actor: "root", Action: "createApp", Object: "app/5", Tenant: "beta", Address: "192.0.2.1:5", RequestID: "r", Commit: "c"}
	if diff := cmp.Diff(want, operated.Read[page.List[Event]](t, s.Do(callers["root"], "GET", list+"?limit=1", ""), http.StatusOK).Items[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPagesOfTheLogGoOnWhereTheOneBeforeEnds, also when further events are recorded between them.
func TestPagesOfTheLogGoOnWhereTheOneBeforeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		page func(t *testing.T, s *operated.Served, path string) (ids []int64, next string)
	}{
		"a list": {list, func(t *testing.T, s *operated.Served, path string) (ids []int64, next string) {
			answer := operated.Read[page.List[Event]](t, s.Do(s.Token("reads"+path, "admin"), "GET", path, ""), http.StatusOK)
			for _, e := range answer.Items {
				ids = append(ids, e.ID)
			}
			return ids, answer.Next
		}},
		"an export": {exports, func(t *testing.T, s *operated.Served, path string) (ids []int64, next string) {
			answer := s.Do(s.Token("reads"+path, "admin"), "GET", path, "")
			return idsOf(t, answer.Body.String()), answer.Header().Get(NextCursor)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newLog(t)
			var all [][]int64
			for next, parts := "", 0; ; parts++ {
				if parts > 9 {
					t.Fatal("it does not end")
				}
				var ids []int64
				ids, next = c.page(t, s, c.path+"?limit=5&cursor="+next)
				if all = append(all, ids); next == "" {
					break
				}
			}
			// Each page begins with the token that reads it, and so a new event: it is on the first page only.
			if diff := cmp.Diff([][]int64{{13, 12, 11, 10, 9}, {8, 7, 6, 5, 4}, {3, 2, 1}}, all); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnExportEndsWithWhatTheCallerHas(t *testing.T) {
	s, callers := newLog(t)
	for query, c := range map[string]struct {
		want []int64
		next bool
	}{
		"since=0&limit=12": {[]int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, false},
		"since=10":         {[]int64{12, 11}, false},
		"since=10&limit=2": {[]int64{12, 11}, false},
		"since=9&limit=2":  {[]int64{12, 11}, true},
		"since=12":         {nil, false},
		"since=99":         {nil, false},
	} {
		answer := s.Do(callers["root"], "GET", exports+"?"+query, "")
		if diff := cmp.Diff(c.want, idsOf(t, answer.Body.String())); diff != "" || answer.Code != http.StatusOK || (answer.Header().Get(NextCursor) != "") != c.next {
			t.Errorf("%s: %d, next %q (-want +got):\n%s", query, answer.Code, answer.Header().Get(NextCursor), diff)
		}
	}
}

func TestBadCursorsAndLimitsOfTheLogAreRefused(t *testing.T) {
	s, callers := newLog(t)
	cursor := base64.RawURLEncoding.EncodeToString
	for query, want := range map[string]problem.Code{
		"cursor=%25":                                       problem.BadRequest,
		"cursor=" + cursor([]byte("name")):                 problem.BadRequest,
		"cursor=" + cursor([]byte("0")):                    problem.BadRequest,
		"cursor=" + cursor([]byte("-3")):                   problem.BadRequest,
		"cursor=" + cursor([]byte("3 OR 1=1")):             problem.BadRequest,
		"cursor=" + cursor([]byte("99999999999999999999")): problem.BadRequest,
		"cursor=" + strings.Repeat("A", 513):               problem.Invalid,
		"limit=0":                                          problem.Invalid,
		"limit=many":                                       problem.Invalid,
		"limit=10001":                                      problem.Invalid,
	} {
		for _, path := range []string{list, exports} {
			p := operated.Refused(t, s.Do(callers["root"], "GET", path+"?"+query, ""), want)
			if text := fmt.Sprint(p); strings.Contains(text, "OR 1=1") || want == problem.BadRequest && (len(p.Errors) != 1 || p.Errors[0].Location != "query.cursor") {
				t.Errorf("%s?%s: %s", path, query, text)
			}
		}
	}
	operated.Refused(t, s.Do(callers["root"], "GET", list+"?limit=501", ""), problem.Invalid)
	operated.Refused(t, s.Do(callers["root"], "GET", exports+"?since=-1", ""), problem.Invalid)
}

// failing is a log that cannot be read.
type failing struct {
	store.Audit
	err error
}

// ListEvents implements store.Audit.
func (f failing) ListEvents(context.Context, string, int64, int) ([]store.Event, error) {
	return nil, f.err
}

// TestALogThatCannotBeReadIsReportedWithoutTheReason: the reason is for the log of the manager.
func TestALogThatCannotBeReadIsReportedWithoutTheReason(t *testing.T) {
	for err, want := range map[error]problem.Code{errors.New("disk 7 of host db1 is full"): problem.Unavailable, context.DeadlineExceeded: problem.TookTooLong} {
		s := operated.Start(t, func(s *operated.Served, api huma.API) { Register(api, failing{s.Store, err}) })
		root := s.Token("root", "admin")
		for _, path := range []string{list, exports} {
			if p := operated.Refused(t, s.Do(root, "GET", path, ""), want); strings.Contains(fmt.Sprint(p), "db1") {
				t.Errorf("%s: %+v", path, p)
			}
		}
	}
}
