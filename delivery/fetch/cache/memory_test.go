package cache

import (
	"fmt"
	"testing"
	"time"
)

// TestAMemoryIsBounded: what is asked for least is forgotten, and never what is under way.
func TestAMemoryIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	m := NewMemory[int](func() time.Time { return now }, 10)
	m.of("under way", Question{}).run = &run{}
	for i := range 100 {
		now = now.Add(time.Millisecond)
		m.of(fmt.Sprint(i), Question{})
		m.of("often", Question{})
	}
	if len(m.known) != 10 || m.known["under way"] == nil || m.known["often"] == nil || m.known["99"] == nil {
		t.Errorf("%d are remembered: %v", len(m.known), m.known)
	}
}
