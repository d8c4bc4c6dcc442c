package sops

import (
	"errors"
	"strings"
	"testing"
)

func TestNestingIsLimitedTheSameInJSONAndYAML(t *testing.T) {
	for levels, want := range map[int]error{maxDepth: nil, maxDepth + 1: errShape} {
		data := []byte(strings.Repeat("[", levels) + `"a"` + strings.Repeat("]", levels))
		if err := shallowJSON(data); !errors.Is(err, want) {
			t.Errorf("JSON of %d levels: %v, want %v", levels, err, want)
		}
		if err := plainYAML(data); !errors.Is(err, want) {
			t.Errorf("YAML of %d levels: %v, want %v", levels, err, want)
		}
	}
}
