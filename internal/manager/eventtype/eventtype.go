// Package eventtype has the types of the messages to webhooks, and the form of a message. Pure.
package eventtype

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// MaxBody is the size of the largest body of a message, in bytes.
const MaxBody = 32 << 10

// The types. docs/api/webhooks.md says when each is sent, and which data it has.
const (
	TenantCreated  = "tenant.created"
	TenantUpdated  = "tenant.updated"
	TenantDeleted  = "tenant.deleted"
	ProjectCreated = "project.created"
	ProjectUpdated = "project.updated"
	ProjectDeleted = "project.deleted"
	AppApplied     = "app.applied"
	AppHealthy     = "app.healthy"
	AppFailed      = "app.failed"
	AppRolledBack  = "app.rolledback"
	AppDeleted     = "app.deleted"
	ClaimCreated   = "claim.created"
	ClaimDeleted   = "claim.deleted"
	// InvoiceClosed and InvoiceCredited are sent for each invoice and each credit note.
	InvoiceClosed   = "invoice.closed"
	InvoiceCredited = "invoice.credited"
	// BudgetReached is sent when the cost of a month, or its forecast, reaches a threshold of the cost budget of a tenant.
	BudgetReached = "budget.reached"
	// Ping is sent when somebody tests a webhook, to any webhook.
	Ping = "webhook.ping"
)

// All are the types that a webhook can subscribe to.
var All = []string{
	TenantCreated, TenantUpdated, TenantDeleted, ProjectCreated, ProjectUpdated, ProjectDeleted, AppApplied, AppHealthy, AppFailed, AppRolledBack, AppDeleted, ClaimCreated, ClaimDeleted,
	InvoiceClosed, InvoiceCredited, BudgetReached,
}

// IsPattern reports whether a text is a type, a group of types such as app.*, or * for all.
func IsPattern(text string) bool {
	group, whole := strings.CutSuffix(text, ".*")
	return text == "*" || slices.Contains(All, text) || whole && group != "" && slices.ContainsFunc(All, func(t string) bool { return strings.HasPrefix(t, group+".") })
}

// body is the body of a message, as Standard Webhooks recommends it.
type body struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// Encode returns the id and the body of a new message. It fails if the body is larger than MaxBody.
func Encode(kind string, at time.Time, data any) (id string, text []byte, err error) {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false) // The body is not put into HTML, and escapes would make it longer.
	if err := encoder.Encode(body{Type: kind, Timestamp: at.UTC().Truncate(time.Microsecond), Data: data}); err != nil {
		return "", nil, fmt.Errorf("encoding the message %s: %w", kind, err)
	}
	text = bytes.TrimSuffix(encoded.Bytes(), []byte("\n"))
	if len(text) > MaxBody {
		return "", nil, fmt.Errorf("the message %s has %d bytes, and may have %d", kind, len(text), MaxBody)
	}
	// The ID has no dot, because in the text that Standard Webhooks signs, a dot ends the ID.
	return "msg_" + strings.ReplaceAll(uuid.NewString(), "-", ""), text, nil
}
