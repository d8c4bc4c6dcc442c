package lru

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func length(text string) int64 { return int64(len(text)) }

func TestTheLeastRecentlyUsedIsEvicted(t *testing.T) {
	c := New[string](10, length)
	c.Add("a", "1234")
	c.Add("b", "1234")
	c.Get("a")
	c.Add("c", "1234")
	if _, ok := c.Get("b"); ok || c.Len() != 2 || c.Weight() != 8 {
		t.Errorf("b is there: %t; there are %d of weight %d", ok, c.Len(), c.Weight())
	}
	for _, key := range []string{"a", "c"} {
		if value, ok := c.Get(key); value != "1234" || !ok {
			t.Errorf("%s: %q, %t", key, value, ok)
		}
	}
}

func TestAValueReplacesTheOneOfItsKey(t *testing.T) {
	c := New[string](10, length)
	c.Add("a", "12345678")
	c.Add("a", "12")
	if value, _ := c.Get("a"); value != "12" || c.Len() != 1 || c.Weight() != 2 {
		t.Errorf("got %q; there are %d of weight %d", value, c.Len(), c.Weight())
	}
	c.Add("a", "12345678901")
	if _, ok := c.Get("a"); ok || c.Weight() != 0 {
		t.Errorf("a value beyond the bound is kept, or an old one in its place; weight %d", c.Weight())
	}
}

func TestClearRemovesEverything(t *testing.T) {
	c := New[string, string](1, nil)
	c.Add("a", "any length weighs 1")
	if c.Weight() != 1 {
		t.Errorf("weight %d, want 1", c.Weight())
	}
	c.Clear()
	if _, ok := c.Get("a"); ok || c.Len() != 0 || c.Weight() != 0 {
		t.Errorf("after Clear there are %d of weight %d", c.Len(), c.Weight())
	}
}

// TestWhatLeavesTheCacheIsDropped: connections and files of a value are closed by its user.
func TestWhatLeavesTheCacheIsDropped(t *testing.T) {
	c, dropped := New[string](12, length), []string{}
	c.Dropped = func(value string) { dropped = append(dropped, value) }
	c.Add("a", "first")
	c.Add("b", "second")
	c.Add("c", "third")
	c.Add("c", "4th")
	c.Remove("b")
	c.Remove("none")
	if got := strings.Join(dropped, " "); got != "first third second" {
		t.Errorf("dropped are %s", got)
	}
}

// TestAllValuesAreListed, also while some are removed, and stay in their order of use.
func TestAllValuesAreListed(t *testing.T) {
	c := New[string](10, length)
	for _, key := range []string{"a", "b", "c"} {
		c.Add(key, key+key)
	}
	if got := slices.Sorted(maps.Keys(maps.Collect(c.All()))); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("listed are %v", got)
	}
	c.Add("d", "123456")
	if _, ok := c.Get("a"); ok {
		t.Error("a list makes its values recently used")
	}
	for range c.All() {
		break
	}
	for key := range c.All() {
		if key != "d" {
			c.Remove(key)
		}
	}
	if c.Len() != 1 || c.Weight() != 6 {
		t.Errorf("%d are left, of weight %d", c.Len(), c.Weight())
	}
}
