package disk

import (
	"testing"
	"time"
)

// TestTheLimitsOfANewDiskAreTheDocumentedOnes: the other tests lower them.
func TestTheLimitsOfANewDiskAreTheDocumentedOnes(t *testing.T) {
	d, _ := diskOf()
	if want := (Limits{Bytes: 2 << 30, Total: 3 << 30, Files: 20_000}); d.Limits != want {
		t.Errorf("got %+v, want %+v", d.Limits, want)
	}
	if d.bound("acme") != 2<<30 {
		t.Errorf("a tenant may have %d bytes", d.bound("acme"))
	}
	// Messages and the documentation say an hour and a week.
	if IdleFor != time.Hour || unusedFor != 7*24*time.Hour || clearEvery != time.Minute {
		t.Errorf("unused files are kept for %s and %s, and looked for every %s", IdleFor, unusedFor, clearEvery)
	}
}
