package client

import (
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/manager/audit"
)

// TestTheAuditLogIsReadAsLines, in parts, from a manager.
func TestTheAuditLogIsReadAsLines(t *testing.T) {
	m := started(t)
	secret, _ := m.Token("admin")
	m.Token("tenant:acme:view")
	c := newClient(t, m.URL, secret)
	var all Lines
	for cursor := ""; ; {
		part, err := c.ExportAudit(t.Context(), ExportAuditParams{Limit: 1, Cursor: cursor})
		if err != nil || len(part.Body) != 1 {
			t.Fatalf("%v %+v", err, part)
		}
		all = append(all, part.Body...)
		if cursor = part.Header.Get(audit.NextCursor); cursor == "" {
			break
		}
	}
	if len(all) != 2 || !strings.Contains(string(all[0]), `"action"`) {
		t.Errorf("%s", all)
	}
	if none, err := c.ExportAudit(t.Context(), ExportAuditParams{Since: 2}); err != nil || len(none.Body) != 0 {
		t.Errorf("%v %+v", err, none)
	}
	if _, err := c.ExportAudit(t.Context(), ExportAuditParams{Limit: -1}); err == nil {
		t.Error("a wrong limit is taken")
	}
}
