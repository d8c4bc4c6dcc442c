package inputs

import (
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/mask"
)

func TestMaskHidesSecretsInEveryForm(t *testing.T) {
	tests := map[string]struct{ content, text, want string }{
		"a value":               {"hunter22", "password hunter22 is bad", "password *** is bad"},
		"as base64":             {"hunter22", "data: aHVudGVyMjI=", "data: ***"},
		"without base64":        {"aHVudGVyMjI=", "password hunter22", "password ***"},
		"one of several lines":  {"first line\nsecond line\n", `"second line\n"`, `"***\n"`},
		"in one line":           {"first\nsecond", "is firstsecond", "is ***"},
		"short, in one line":    {"hun\nter\n22x", "is hunter22x", "is ***"},
		"a value of YAML":       {"a:\n  b: hunter22\n", "b is hunter22", "b is ***"},
		"a value of a list":     {"a:\n- b: hunter22\n- another\n", "b is hunter22 or another", "b is *** or ***"},
		"a number of YAML":      {"port: 54321", "port 54321", "port ***"},
		"lines of a YAML value": {"key: |\n  first line\n  second line\n", "second line", "***"},
		"words of YAML":         {"image:\n  name: hunter22\n", "image: missing", "image: missing"},
		"quoted by Go":          {`p"ss<word`, `Invalid value: "p\"ss<word"`, `Invalid value: "***"`},
		"quoted as JSON":        {`p"ss<word`, `"p\"ss\u003cword"`, `"***"`},
		"a line in quotes":      {"first line\n\"second\" line\n", `"\"second\" line"`, `"***"`},
		"in quotes, of YAML":    {"a: 'p\"ss&word'", `"p\"ss\u0026word"`, `"***"`},
		"a short one":           {"abc", "abc", "abc"},
		"one within another":    {"a: hunter22\nb: hunter22-and-more", "hunter22-and-more", "***"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mask.Of(Sensitive([]byte(tc.content)))(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestYAMLWithTooManyAliasesIsMasked(t *testing.T) {
	bomb := "a: &a hunter22\nb: &b [" + strings.Repeat("*a, ", 1000) + "]\nc: [" + strings.Repeat("*b, ", 1000) + "]\n"
	if got := mask.Of(Sensitive([]byte(bomb)))("a: &a hunter22"); got != "***" {
		t.Errorf("got %q, want %q", got, "***")
	}
}

// TestYAMLWithTooManyValuesIsMasked, although it is not parsed.
func TestYAMLWithTooManyValuesIsMasked(t *testing.T) {
	many := strings.Repeat("[],", 340_000)
	for name, content := range map[string]string{
		"a list":    "[" + many + "hunter22, 'another', \"quoted\"]",
		"mappings":  "{a: [" + many + "], b: hunter22, c: 'another', \"d\":\"quoted\"}",
		"its lines": strings.Repeat("- a\n", 200_000) + "- hunter22\n- 'another'\n- \"quoted\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := mask.Of(Sensitive([]byte(content)))("it is hunter22, another and quoted"); got != "it is ***, *** and ***" {
				t.Errorf("got %q, want %q", got, "it is ***, *** and ***")
			}
		})
	}
}
