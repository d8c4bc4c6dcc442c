package config

import (
	"strings"
	"testing"

	"github.com/sethvargo/go-envconfig"
)

// TestSettingsAreAllowedUpToTheirBounds, and not beyond.
func TestSettingsAreAllowedUpToTheirBounds(t *testing.T) {
	for name, c := range map[string]struct{ below, least, most, above string }{
		"CONCURRENCY":         {"0", "1", "1000", "1001"},
		"HELM_WORKERS":        {"0", "1", "100", "101"},
		"GOGC":                {"9", "10", "1000", "1001"},
		"GRACEFUL_TIMEOUT":    {"0s", "1ns", "1h", "1h0m0.000000001s"},
		"PLATFORM_INTERVAL":   {"999ms", "1s", "1h", ""},
		"EVALUATE_PROCESSES":  {"0", "1", "64", "65"},
		"EVALUATE_MEMORY_MIB": {"63", "64", "16384", "16385"},
		"EVALUATE_CPU":        {"999ms", "1s", "30s", "30.000000001s"},
		"EVALUATE_TIMEOUT":    {"9s", "10s", "10m", "10m0.000000001s"},
	} {
		for value, allowed := range map[string]bool{c.below: false, c.least: true, c.most: true, c.above: false} {
			if value == "" {
				continue
			}
			_, err := load(t.Context(), envconfig.MapLookuper(map[string]string{name: value}))
			if (err == nil) != allowed {
				t.Errorf("%s=%s: %v, want it allowed: %t", name, value, err, allowed)
			}
			if err != nil && name != "EVALUATE_TIMEOUT" && !strings.Contains(err.Error(), name+" is ") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
}
