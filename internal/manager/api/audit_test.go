package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/manager/audit"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// TestTheAuditLogIsExportedInParts, each line an event, and only what came after the last export.
func TestTheAuditLogIsExportedInParts(t *testing.T) {
	m := newManager(t)
	admin := m.holder("root", "admin")
	for i := range 6 {
		m.holder(fmt.Sprintf("id-%d", i), "tenant:acme:view")
	}
	export := func(query string) (ids []int64) {
		t.Helper()
		for cursor, parts := "", 0; ; parts++ {
			answer := m.as(admin, "GET", "/v1/audit/export?limit=3&cursor="+cursor+query, "")
			if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "application/x-ndjson" {
				t.Fatalf("%d %s %s", answer.Code, answer.Header().Get("Content-Type"), answer.Body)
			}
			for line := range strings.Lines(answer.Body.String()) {
				var e audit.Event
				if err := json.Unmarshal([]byte(line), &e); err != nil || e.Action != "test" {
					t.Fatalf("%v: %s", err, line)
				}
				ids = append(ids, e.ID)
			}
			if cursor = answer.Header().Get("X-Next-Cursor"); cursor == "" {
				return ids
			}
			if parts > 10 {
				t.Fatal("it does not end")
			}
		}
	}
	if diff := cmp.Diff([]int64{7, 6, 5, 4, 3, 2, 1}, export("")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for since, want := range map[string][]int64{"0": {7, 6, 5, 4, 3, 2, 1}, "2": {7, 6, 5, 4, 3}, "4": {7, 6, 5}, "6": {7}, "7": nil, "99": nil} {
		if diff := cmp.Diff(want, export("&since="+since)); diff != "" {
			t.Errorf("since %s (-want +got):\n%s", since, diff)
		}
	}
	for query, code := range map[string]problem.Code{"cursor=%25": problem.BadRequest, "cursor=bmFtZQ": problem.BadRequest, "limit=10001": problem.Invalid, "since=-1": problem.Invalid, "tenants=acme": problem.Invalid} {
		if p := problemOf(t, m.as(admin, "GET", "/v1/audit/export?"+query, "")); p.Code != code {
			t.Errorf("%s: %+v", query, p)
		}
	}
	tenant := m.holder("acme", "tenant:acme:admin")
	if text := m.as(tenant, "GET", "/v1/audit/export", "").Body.String(); strings.Count(text, "\n") != 7 || strings.Count(text, `"tenant":"acme"`) != 7 {
		t.Errorf("a tenant reads\n%s", text)
	}
}
