package slug

import (
	"slices"
	"testing"
)

func TestOfMakesAPartOfANameWithinTheLimit(t *testing.T) {
	for text, want := range map[string]string{
		"Scale web to 3": "scale-web-to-3", "  ../A--b!  ": "a-b", "": "", "ünï": "n", "0123456789abc": "0123456789", "012345678-9": "012345678",
	} {
		if got := Of(text, 10); len(text) < 14 && got != Of(want, 10) || len(got) > 10 {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := Of("Scale web to 3", 40); got != "scale-web-to-3" {
		t.Errorf("got %q", got)
	}
}

func TestNameBeginsWithALetter(t *testing.T) {
	for text, want := range map[string]string{"web": "web", "a--b": "a--b", "Web.1": "web-1", "1a": "app-1a", "": "app", "0123456789": "app-012345", "abcdefghijk": "abcdefghij", "abcdefghi-k": "abcdefghi"} {
		if got := Name(text, "app", 10); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestFreeNumbersANameThatIsTaken(t *testing.T) {
	for _, c := range []struct {
		name, want string
		taken      []string
	}{
		{"web", "web", []string{"web-2"}}, {"web", "web-2", []string{"web"}}, {"web", "web-3", []string{"web", "web-2"}}, {"abcdefghij", "abcdefgh-2", []string{"abcdefghij"}},
	} {
		if got := Free(c.name, 10, func(name string) bool { return slices.Contains(c.taken, name) }); got != c.want {
			t.Errorf("%s beside %v becomes %s, want %s", c.name, c.taken, got, c.want)
		}
	}
}
