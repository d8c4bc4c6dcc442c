package few

import (
	"strings"
	"testing"
)

func TestOfNamesTheFirstAndCountsTheOthers(t *testing.T) {
	all := strings.Split("abcde", "")
	for n, want := range map[int]string{0: "and 5 more", 2: "a b and 3 more", 4: "a b c d and 1 more", 5: "a b c d e", 6: "a b c d e"} {
		if got := strings.Join(Of(all, n), " "); got != want {
			t.Errorf("the first %d: got %q, want %q", n, got, want)
		}
	}
	if got := strings.Join(all, ""); got != "abcde" {
		t.Errorf("the list became %s", got)
	}
	if got := Of(nil, 2); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
	if got := More(1200); got != "and 1,200 more" {
		t.Errorf("got %q", got)
	}
}

func TestLinesEndWithHowManyAreLeftOut(t *testing.T) {
	for _, c := range []struct {
		all, most int
		want      string
	}{{0, 3, ""}, {2, 3, "a b"}, {3, 3, "a b c"}, {4, 3, "a b and 2 more"}, {9, 3, "a b and 7 more"}} {
		lines := []string{"a", "b", "c", "d"}[:min(c.all, 4)]
		if got := strings.Join(Lines(lines, c.all, c.most), " "); got != c.want {
			t.Errorf("of %d at most %d: %q, want %q", c.all, c.most, got, c.want)
		}
	}
}

func TestACountHasTheThingInItsNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0 apps", 1: "1 app", 2: "2 apps", 1200: "1,200 apps"} {
		if got := Count(n, "app"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
