package main

import (
	"os"
	"strings"
	"testing"
)

// TestTheGuideHasAllThatASecondTenantNeeds compares what is printed with docs/tour.md, whose commands the end-to-end tests run.
func TestTheGuideHasAllThatASecondTenantNeeds(t *testing.T) {
	text, err := os.ReadFile("../../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	page := plain(string(text))
	var printed strings.Builder
	if err := guide.Execute(&printed, map[string]string{"Env": ".build/run/env", "Log": "log", "Manager": "http://127.0.0.1:1", "Code": "setup_x", "GitURL": "$KUBEOP_GIT_URL", "Registry": "$REGISTRY"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(printed.String(), `http://127.0.0.1:1/v1/setup -H 'Content-Type: application/json' -d '{"name": "me", "code": "setup_x"}'`) {
		t.Errorf("the guide does not have how the first administrator gets a token:\n%s", printed.String())
	}
	_, second, found := strings.Cut(printed.String(), "A second team")
	if !found {
		t.Fatal("the guide has no second team")
	}
	compared := 0
	for line := range strings.Lines(second) {
		line = plain(strings.TrimSpace(line))
		for _, command := range []string{"cluster repo create ", "kubectl create secret ", "owners: ", "url: ", "secretRef: ", "hookSecretRef: "} {
			if strings.HasPrefix(line, command) {
				compared++
				if !strings.Contains(page, line) {
					t.Errorf("docs/tour.md does not have %q", line)
				}
			}
		}
	}
	if compared != 7 {
		t.Errorf("%d lines were compared, want 7", compared)
	}
}

// plain leaves out the quotes.
func plain(text string) string { return strings.ReplaceAll(text, `"`, "") }
