package controllers

import (
	"slices"
	"testing"
)

// TestHostsOfSettingsAreAllowed: hosts named in settings may be reached in any network; without settings there are none.
func TestHostsOfSettingsAreAllowed(t *testing.T) {
	got := named(Options{
		Platform: Platform{URL: "ssh://git@git.example.com/platform.git"},
		Network: Network{
			PlainRegistries: []string{"registry.example.com", "10.0.0.5:5000"},
			TokenServices:   map[string]string{"registry.example.com:5050": "gitlab.example.com"},
		},
	})
	want := []string{"git.example.com:22", "registry.example.com:80", "10.0.0.5:5000", "registry.example.com:5050", "gitlab.example.com:443"}
	if !slices.Equal(got, want) {
		t.Errorf("the allowed hosts are %v, want %v", got, want)
	}
	if none := named(Options{}); len(none) > 0 {
		t.Errorf("without settings the allowed hosts are %v, want none", none)
	}
}
