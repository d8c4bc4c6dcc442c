package few

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestACutTextHasAtMostTheCharactersOfItsLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		n    int
		want string
	}{
		"nothing":                             {"", 4, ""},
		"below the limit":                     {"four", 5, "four"},
		"at the limit":                        {"four", 4, "four"},
		"above the limit":                     {"fives", 4, "fiv…"},
		"characters of two bytes":             {"größe", 5, "größe"},
		"cut behind a character of two bytes": {"größer", 4, "grö…"},
		"a character of four bytes":           {"a😀b", 2, "a…"},
		"cut behind a blank":                  {"to be or not", 7, "to be…"},
		"blanks within the limit stay":        {"a ", 2, "a "},
		"lines stay":                          {"a\nb", 3, "a\nb"},
		"invalid UTF-8 that is not cut":       {"a\xffb", 3, "a\uFFFDb"},
		"invalid UTF-8 that is cut":           {"a\xc3", 1, "…"},
		"half a character is one":             {"ab\xe2\x82", 3, "ab\uFFFD"},
		"one character":                       {"ab", 1, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Cut(tc.text, tc.n)
			if got != tc.want || utf8.RuneCountInString(got) > tc.n || !utf8.ValidString(got) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestALineIsSafeToQuote(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"text":               {"a tag of größe 1~", "a tag of größe 1~"},
		"nothing":            {"\n", ""},
		"lines":              {" a\r\n\tb \n", "a b"},
		"line separators":    {"a\u2028b\u2029c\u0085d", "a b c d"},
		"blanks":             {"a  b\u00a0c", "a b c"},
		"an escape sequence": {"a\x1b[31mb", "a\uFFFD[31mb"},
		"control characters": {"a\x00b\x7fc\u0080d\u009fe", "a\uFFFDb\uFFFDc\uFFFDd\uFFFDe"},
		"invalid UTF-8":      {"a\xffb", "a\uFFFDb"},
		"at the limit":       {strings.Repeat("ö", 20), strings.Repeat("ö", 20)},
		"above the limit":    {strings.Repeat("ö", 21), strings.Repeat("ö", 19) + "…"},
		"cut behind blanks":  {strings.Repeat("ö", 18) + "\n\n" + "xyz", strings.Repeat("ö", 18) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(tc.text, 20); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAQuoteIsALineOf200Characters(t *testing.T) {
	whole := strings.Repeat("ö", 200)
	for text, want := range map[string]string{"a\nb": "a b", whole: whole, whole + "b": strings.Repeat("ö", 199) + "…"} {
		if got := Quote(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestPrintableTextHasNoControlCharacter(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "größe 1": "größe 1", " a  b ": " a  b ", "a\u00a0b": "a\u00a0b", "a\ufeffb": "a\ufeffb",
		"a\nb\r\tc": "a\uFFFDb\uFFFD\uFFFDc", "a\x1b[1m\x00\x7f": "a\uFFFD[1m\uFFFD\uFFFD", "a\u0080\u0085\u009fb": "a\uFFFD\uFFFD\uFFFDb",
		"a\u2028b\u2029": "a\uFFFDb\uFFFD", "a\xffb": "a\uFFFDb", "a\xc3": "a\uFFFD",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
