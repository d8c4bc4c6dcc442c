package eventtype

import (
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

func TestAWebhookWantsWhatItsPatternsName(t *testing.T) {
	for pattern, wants := range map[string]int{"*": len(All), "app.*": 5, "tenant.*": 3, "app.failed": 1, "claim.*": 2, "invoice.*": 2, "budget.reached": 1} {
		if !IsPattern(pattern) {
			t.Errorf("%s is no pattern", pattern)
		}
		got := 0
		for _, kind := range All {
			if (store.Webhook{Types: []string{"app.healthyish", pattern}}).Wants(kind) {
				got++
			}
		}
		if got != wants {
			t.Errorf("%s wants %d types, want %d", pattern, got, wants)
		}
	}
	for _, text := range []string{"", "app", "app*", "ap.*", ".*", "**", "app.", "app.*.*", "App.failed", "webhook.ping", "app.failed ", "invoice.opened", "cluster.ready"} {
		if IsPattern(text) {
			t.Errorf("%q is a pattern", text)
		}
	}
}

func TestAMessageIsBoundedAndHasAnIDWithoutDots(t *testing.T) {
	at := time.Date(2026, 11, 29, 8, 0, 0, 123456789, time.FixedZone("", 3600))
	id, text, err := Encode(AppFailed, at, map[string]string{"app": "<web>"})
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != `{"type":"app.failed","timestamp":"2026-11-29T07:00:00.123456Z","data":{"app":"<web>"}}` || !strings.HasPrefix(id, "msg_") || strings.Contains(id, ".") {
		t.Errorf("%s %s", id, text)
	}
	if _, _, err := Encode(AppFailed, at, strings.Repeat("x", MaxBody)); err == nil {
		t.Error("it may have any size")
	}
}
