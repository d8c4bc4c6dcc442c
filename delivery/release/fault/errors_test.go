package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/mask"
)

func TestSecretsInErrorsAreMasked(t *testing.T) {
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

func TestBriefCutsALongErrorAndKeepsItsType(t *testing.T) {
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

func TestJoinedErrorsAreListedInOneLine(t *testing.T) {
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

// TestAnErrorHasItsKindAndItsText: callers look for the kind, and people read the text.
func TestAnErrorHasItsKindAndItsText(t *testing.T) {
	cause, limit := errors.New("no such field"), errors.New("limit")
	for name, c := range map[string]struct {
		err  error
		is   []error
		not  []error
		want string
	}{
		"a taken release":        {&Taken{"web", "shop"}, []error{ErrTaken}, []error{ErrLocked}, "release web belongs to app shop; choose another spec.helm.releaseName"},
		"what is not allowed":    {&NotAllowed{cause}, []error{cause}, nil, "no such field"},
		"what cannot be deleted": {&ClaimsInTheWay{"Database/db", []string{"a", "b"}, "keep them"}, nil, nil, "Database/db owns claims that hold data and would go with it: a, b; keep them"},
		"too large":              {TooLarge("the chart is too large"), []error{ErrTooLarge}, []error{ErrRender}, "the chart is too large"},
		"over another limit":     {OverLimit(fmt.Errorf("values: %w", limit), limit), []error{ErrTooLarge}, []error{limit}, "values: limit"},
		"within another limit":   {OverLimit(cause, limit), []error{cause}, []error{ErrTooLarge}, "no such field"},
		"not rendered":           {Render(cause), []error{ErrRender, cause}, nil, "rendering the chart: no such field"},
		"not rendered, twice":    {Render(fmt.Errorf("again: %w", Render(cause))), []error{ErrRender, cause}, nil, "again: rendering the chart: no such field"},
		"a template's": {Readable(errors.New(`template: web/templates/a.yaml:3:7: executing "web/templates/a.yaml" at <.Values.a.b>: nil pointer`)), nil, nil,
			"web/templates/a.yaml:3:7: at <.Values.a.b>: nil pointer"},
		"no template's": {Readable(cause), []error{cause}, nil, "no such field"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.err.Error() != c.want {
				t.Errorf("got  %q\nwant %q", c.err, c.want)
			}
			for _, is := range c.is {
				if !errors.Is(c.err, is) {
					t.Errorf("it is not: %v", is)
				}
			}
			for _, not := range c.not {
				if errors.Is(c.err, not) {
					t.Errorf("it is: %v", not)
				}
			}
		})
	}
}

func TestTheCauseOfARenderingIsFoundBelowItsWrapping(t *testing.T) {
	cause := errors.New("no such field")
	wrapped := fmt.Errorf("loading: %w", Render(cause))
	for name, c := range map[string]struct {
		err, want error
		is        bool
	}{
		"a rendering":             {Render(cause), cause, true},
		"a rendering with a text": {wrapped, wrapped, false},
		"another error":           {cause, cause, false},
	} {
		t.Run(name, func(t *testing.T) {
			if is, got := RenderCause(c.err); is != c.is || got != c.want { //nolint:errorlint // the very error is wanted
				t.Errorf("got %t, %v", is, got)
			}
		})
	}
}

func TestARefusalIsShownLongerThanAnotherError(t *testing.T) {
	text := errors.New(strings.Repeat("a", maxRefusal))
	if got := Brief(&NotAllowed{text}).Error(); got != text.Error() {
		t.Errorf("%d of %d bytes of a refusal are left", len(got), maxRefusal)
	}
	if got := Brief(text).Error(); len(got) > maxMessage {
		t.Errorf("%d bytes of another error are left", len(got))
	}
}

func TestAPanicOfHelmIsAnError(t *testing.T) {
	act := func(panics bool) (err error) {
		defer Recovered("installing", &err)
		if panics {
			panic("nil map")
		}
		return ErrLocked
	}
	if err := act(true); err == nil || err.Error() != "installing: Helm panicked: nil map" {
		t.Errorf("got %v", err)
	}
	if err := act(false); !errors.Is(err, ErrLocked) {
		t.Errorf("an error without a panic became %v", err)
	}
}

func TestManyErrorsAreCounted(t *testing.T) {
	a, b, c, d := errors.New("a"), errors.New("b"), errors.New("c"), errors.New("d")
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"one alone":             {Join(nil, a), "a"},
		"as many as shown":      {Join(a, b, c), "a; b; c"},
		"more":                  {Join(Join(a, b), c, Join(d, a)), "a; b; c; and 2 more"},
		"those of another text": {Join(a, fmt.Errorf("hooks: %w", Join(b, c)), d), "a; hooks: b; c; d"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.err.Error() != tc.want {
				t.Errorf("got %q, want %q", tc.err, tc.want)
			}
		})
	}
	if err := Join(nil, a); err != a { //nolint:errorlint // the very error is wanted
		t.Errorf("one error became %v", err)
	}
}

// TestLogKeepsTheLastLinesAndTheFirstWarnings, each warning once.
func TestLogKeepsTheLastLinesAndTheFirstWarnings(t *testing.T) {
	l := &Log{WarningPrefix: "Warning:"}
	hide := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	if len(l.Last(hide)) != 0 || len(l.Warnings(hide)) != 0 {
		t.Error("an empty log has lines")
	}
	l.Add(" Warning: hunter2\nis deprecated \n")
	for n := range MaxLines + 1 {
		l.Add(fmt.Sprintf("Warning: %d", n))
		l.Add("Warning: 0")
	}
	l.Add("done: hunter2")
	var last []string
	for n := MaxLines - 4; n <= MaxLines; n++ {
		last = append(last, fmt.Sprintf("Warning: %d", n), "Warning: 0")
	}
	if diff := cmp.Diff(append(last[1:], "done: ***"), l.Last(hide)); diff != "" {
		t.Errorf("last (-want +got):\n%s", diff)
	}
	warned := []string{"Warning: ***; is deprecated"}
	for n := range MaxLines - 1 {
		warned = append(warned, fmt.Sprintf("Warning: %d", n))
	}
	if diff := cmp.Diff(warned, l.Warnings(hide)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestAKnownErrorOfATemplateSaysWhatToDo(t *testing.T) {
	for text, want := range map[string]string{
		"template: a.yaml:3:7: nil pointer evaluating interface {}.b":                          "a.yaml:3:7: nil pointer evaluating interface {}.b; set the value above it in spec.helm.values",
		"values don't meet the specifications of the schema(s) in the following chart(s): web": "web; values.schema.json of the chart says so: correct these values",
	} {
		if got := Readable(errors.New(text)).Error(); !strings.Contains(got, want) || strings.Count(got, ";") != 1 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
