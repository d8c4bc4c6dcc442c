package fetch

import (
	"errors"
	"testing"
	"time"
)

func TestRecent(t *testing.T) {
	now := time.Unix(0, 0)
	asked := 0
	r := &Recent[int]{Now: func() time.Time { return now }}
	get := func(key, question string, err error) int {
		t.Helper()
		got, gotErr := r.Get(key, question, time.Minute, func() (int, error) { asked++; return asked, err })
		if !errors.Is(gotErr, err) {
			t.Fatalf("got error %v, want %v", gotErr, err)
		}
		return got
	}
	away := errors.New("away")
	steps := []struct {
		name      string
		do        func() int
		want, ask int
	}{
		{"an error is not remembered", func() int { get("a", "1", away); return get("a", "1", nil) }, 2, 2},
		{"a young answer serves", func() int { now = now.Add(59 * time.Second); return get("a", "1", nil) }, 2, 2},
		{"another key is another matter", func() int { return get("b", "1", nil) }, 3, 3},
		{"another question is asked", func() int { return get("a", "2", nil) }, 4, 4},
		{"an old answer does not serve", func() int { now = now.Add(time.Minute); return get("a", "2", nil) }, 5, 5},
		{"what is forgotten is asked", func() int { r.Forget("a"); return get("a", "2", nil) }, 6, 6},
	}
	for _, s := range steps {
		if got := s.do(); got != s.want || asked != s.ask {
			t.Errorf("%s: got %d after %d questions, want %d after %d", s.name, got, asked, s.want, s.ask)
		}
	}
}
