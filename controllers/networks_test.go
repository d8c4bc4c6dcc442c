package controllers

import (
	"slices"
	"testing"

	"github.com/kubeop/kubeop/controllers/repository"
)

// TestHostsThatSettingsName are reached wherever they are; without a setting there is none.
func TestHostsThatSettingsName(t *testing.T) {
	got := named(Options{
		Platform: repository.Platform{URL: "ssh://git@git.example.com/platform.git"},
		Network: Network{
			PlainRegistries: []string{"registry.example.com", "10.0.0.5:5000"},
			TokenServices:   map[string]string{"registry.example.com:5050": "gitlab.example.com"},
		},
	})
	want := []string{"git.example.com:22", "registry.example.com:80", "10.0.0.5:5000", "registry.example.com:5050", "gitlab.example.com:443"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if none := named(Options{}); len(none) > 0 {
		t.Errorf("without settings there is %v", none)
	}
}
