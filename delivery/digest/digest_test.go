package digest

import (
	"strings"
	"testing"
)

func TestASealedDigestDependsOnTheKey(t *testing.T) {
	key := func(name string) Seal {
		return func(digest string) string { return strings.Repeat("0", 32) + name + digest + strings.Repeat("f", 32) }
	}
	one, two := key("1"), key("2")
	const plain = "0123456789abcdef"
	for name, seal := range map[string]func(Seal) string{"Of": func(s Seal) string { return s.Of(plain) }, "Short": func(s Seal) string { return s.Short(plain) }} {
		if got := seal(nil); got != plain {
			t.Errorf("%s without a key is %q, want %q", name, got, plain)
		}
		if seal(one) == plain || strings.Contains(seal(one), plain) && name == "Short" {
			t.Errorf("%s is %q", name, seal(one))
		}
	}
	if one.Of(plain) == two.Of(plain) {
		t.Error("two keys seal alike")
	}
	if got := one.Of(one.Of(plain)); got != one.Of(plain) {
		t.Errorf("sealed twice it is %q", got)
	}
	if got := one.Short(one.Short(plain)); got != one.Short(plain) || len(got) != len(plain) {
		t.Errorf("sealed twice, and short, it is %q", got)
	}
	if one.Of("") != "" || one.Short("") != "" {
		t.Error("no digest is sealed")
	}
}
