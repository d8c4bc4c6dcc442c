package step

import (
	"testing"
	"time"
)

func TestFewNamesFiveObjects(t *testing.T) {
	for want, objects := range map[string][]string{
		"":                          nil,
		"c; a":                      {"c", "a"},
		"a; b; c; d; e":             {"a", "b", "c", "d", "e"},
		"g; f; e; d; c; and 2 more": {"g", "f", "e", "d", "c", "b", "a"},
	} {
		if got := Few(objects); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Few([]time.Duration{time.Second, time.Minute}); got != "1s; 1m0s" {
		t.Errorf("objects with a String method: got %q, want %q", got, "1s; 1m0s")
	}
}
