package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kubeop/kubeop/delivery/mask"
)

func TestMasked(t *testing.T) {
	cause := errors.New("no")
	tests := map[string]struct {
		err       error
		sensitive []string
		want      string
	}{
		"nothing to hide": {errors.New("image pull failed"), []string{"hunter22"}, "image pull failed"},
		"plain":           {errors.New("'hunter22' does not match"), []string{"hunter22"}, "'***' does not match"},
		"quoted":          {errors.New(`got "two\nlines"`), []string{"two\nlines"}, `got "***"`},
		"encoded":         {errors.New("data: aHVudGVyMjI="), []string{"hunter22"}, "data: ***"},
		"too short":       {errors.New("a 1 b"), []string{"1", ""}, "a 1 b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Mask(test.err, mask.Of(test.sensitive)); got.Error() != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if !errors.Is(Mask(cause, mask.Of([]string{"other"})), cause) {
		t.Error("an error with nothing to hide was replaced")
	}
	if Mask(nil, mask.Of([]string{"x"})) != nil {
		t.Error("no error became one")
	}
}

func TestBrief(t *testing.T) {
	if err := errors.New(strings.Repeat("a", maxMessage)); Brief(err).Error() != err.Error() {
		t.Error("an error that is short enough was changed")
	}
	cause := &Terminating{Objects: []string{"first", strings.Repeat("ä", 40<<10), "last"}}
	err := Brief(cause)
	text := err.Error()
	if len(text) > maxMessage || !utf8.ValidString(text) || !strings.HasPrefix(text, "waiting for first") || !strings.HasSuffix(text, "last to be gone") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	if !errors.As(err, new(*Terminating)) {
		t.Error("what it is was lost")
	}
	if Brief(nil) != nil {
		t.Error("nothing became something")
	}
}

func TestListed(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	if err := Join(nil, nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
	if got := Join(nil, a, nil, b); got.Error() != "a; b" || !errors.Is(got, a) || !errors.Is(got, b) {
		t.Errorf("got %v", got)
	}
}

func TestOneLineJoinsTheItemsOfAList(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"one line":            {"not found", "not found"},
		"several errors":      {"web: not found\napi: not found", "web: not found; api: not found"},
		"a list with a title": {"2 errors occurred:\n\t* web: not found\n\t* api: not found\n\n", "2 errors occurred: web: not found; api: not found"},
		"a list in dashes":    {"- at '/a': a string is wanted\n- at '/b': a number is wanted", "at '/a': a string is wanted; at '/b': a number is wanted"},
		"empty lines":         {"\n\na\n \n-\nb\n", "a; b"},
		"blanks in a line":    {"a \t b", "a b"},
		"nothing":             {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OneLine(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPlainMasksAndKeepsTheCauseOfWhatItDoesNotChange(t *testing.T) {
	cause := errors.New("the password is hunter2")
	hide := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	for name, tc := range map[string]struct {
		err   error
		want  string
		keeps bool
	}{
		"a secret":      {fmt.Errorf("reading: %w", cause), "reading: the password is ***", false},
		"no secret":     {fmt.Errorf("reading: %w", ErrRender), "reading: " + ErrRender.Error(), true},
		"several lines": {fmt.Errorf("errors:\n* a\n* %w", cause), "errors: a; the password is ***", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := Plain(tc.err, hide)
			if got.Error() != tc.want || errors.Is(got, errors.Unwrap(tc.err)) != tc.keeps {
				t.Errorf("got %q, of its cause: %t; want %q, %t", got, errors.Is(got, errors.Unwrap(tc.err)), tc.want, tc.keeps)
			}
		})
	}
	if got := Plain(nil, hide); got != nil {
		t.Errorf("no error became %v", got)
	}
}
