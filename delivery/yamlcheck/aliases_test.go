package yamlcheck

import (
	"errors"
	"strings"
	"testing"
)

func TestAliasesRefusesTooLargeExpansions(t *testing.T) {
	long := strings.Repeat("x", 2000)
	levels := "a0: &a0 [" + long + "]\n"
	for i, before := range []string{"a0", "a1", "a2", "a3"} {
		levels += "b" + before + ": &a" + string(rune('1'+i)) + " [" + strings.Repeat("*"+before+", ", 10) + "]\n"
	}
	for name, test := range map[string]struct{ text, want string }{
		"few aliases":        {"a: &a " + long + "\nb: [*a, *a]\n", ""},
		"many aliases":       {"a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 1000) + "]\n", "YAML aliases stand for more than 1048576 bytes: too large"},
		"aliases of aliases": {levels, "YAML aliases stand for more than 1048576 bytes: too large"},
		"in a later document": {"a: 1\n---\na: &a " + long + "\nb: [" + strings.Repeat("*a, ", 1000) + "]\n",
			"YAML aliases stand for more than 1048576 bytes: too large"},
		"an anchor that contains itself": {"a: &a [*a]\n", `line 1: YAML anchor "a" contains itself: too large`},
	} {
		t.Run(name, func(t *testing.T) {
			err := Aliases([]byte(test.text))
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrTooLarge) || err.Error() != test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestATextWithAliasesHasToBeYAML(t *testing.T) {
	if err := Aliases([]byte("a: &x [\nb: *x\n")); err == nil {
		t.Error("a text that cannot be read has no aliases")
	}
	if err := Aliases([]byte("a: [\n")); err != nil {
		t.Errorf("a text without aliases is read: %v", err)
	}
}

func TestAliasBytesCountsEachAlias(t *testing.T) {
	text := "a: &a xxxx\nb: [*a, *a]\n---\na: &a xxxx\nb: *a\n"
	if got, want := AliasBytes([]byte(text)), 3*(len("xxxx")+1); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}
