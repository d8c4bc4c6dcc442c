package notice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// signature is the header of Flux's generic-hmac.
func signature(key string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// bodyOf writes notices as a receiver of the type reads them.
func bodyOf(kind Type, tenant string, notices []Notice, now time.Time) ([]byte, error) {
	switch kind {
	case Slack:
		return json.Marshal(map[string]string{"text": text(tenant, notices, escaped)})
	case Teams:
		return json.Marshal(card(text(tenant, notices, func(s string) string { return s })))
	case Generic, GenericHMAC:
		return json.Marshal(struct {
			Tenant  string   `json:"tenant"`
			Notices []Notice `json:"notices"`
		}{tenant, notices})
	case Alertmanager:
		return json.Marshal(alerts(tenant, notices, now))
	}
	return nil, errType
}

// text lists notices for people.
func text(tenant string, notices []Notice, escape func(string) string) string {
	var b strings.Builder
	for i, n := range notices {
		if i == maxNotices {
			fmt.Fprintf(&b, "and %d more\n", len(notices)-i)
			break
		}
		mark, about := "ℹ️", tenant
		switch {
		case n.Severity == Error:
			mark = "❌"
		case n.Reason == Recovered:
			mark = "✅"
		}
		if n.App != "" {
			about += "/" + n.App
		}
		fmt.Fprintf(&b, "%s %s: %s: %s\n", mark, about, n.Reason, escape(n.Message))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Reasons of notices that no condition has.
const (
	Recovered = "Recovered"
	Delivered = "Delivered"
)

// escaped replaces the characters with a meaning in Slack, so that no message can mention a channel or hide a link.
func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// card is an Adaptive Card, which the webhooks of Teams' Workflows take. A TextBlock reads some Markdown.
func card(text string) any {
	type object = map[string]any
	var blocks []object
	for line := range strings.SplitSeq(text, "\n") {
		blocks = append(blocks, object{"type": "TextBlock", "text": line, "wrap": true})
	}
	return object{"type": "message", "attachments": []object{{
		"contentType": "application/vnd.microsoft.card.adaptive",
		"content":     object{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": blocks},
	}}}
}

// AlertLife is how long an alert lasts without being sent again.
const AlertLife = 15 * time.Minute

// alert is a postableAlert of Alertmanager's API.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// alerts are those about errors. Their labels do not change with the message, so that the same alert ends.
func alerts(tenant string, notices []Notice, now time.Time) []alert {
	all := []alert{}
	for _, n := range notices {
		project, app, _ := strings.Cut(n.App, "/")
		a := alert{
			Labels:      map[string]string{"alertname": "KubeopAppNotReady", "tenant": tenant, "project": project, "app": app, "severity": string(Error)},
			Annotations: map[string]string{"summary": n.Reason, "description": n.Message, "revision": n.Revision},
			StartsAt:    n.Since.UTC(), EndsAt: now.Add(AlertLife).UTC(),
		}
		if n.App == "" {
			a.Labels = map[string]string{"alertname": "KubeopCommitNotApplied", "tenant": tenant, "severity": string(Error)}
		}
		if n.Resolved {
			a.EndsAt = now.UTC()
		}
		all = append(all, a)
	}
	return all
}
