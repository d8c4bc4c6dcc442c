package expr

import (
	"errors"
	"strings"
	"testing"
)

const hidden = "hidden-4711"

// confidential is an object whose values no message may repeat.
func confidential() map[string]any {
	return map[string]any{
		"kind": "Vault",
		"data": map[string]any{"password": hidden, "pin": int64(4711), "words": []any{"a", hidden}},
		"status": map[string]any{
			"phase": "Running", "ratio": 47.11, "bytes": []byte(hidden),
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		},
	}
}

// leaks are expressions whose evaluation fails over a value, in every way that CEL has.
var leaks = map[string]string{
	"the value as a key":           "dep.data[dep.data.password] == ''",
	"the value as an optional key": "dep.data[?dep.data.password].value() == ''",
	"a key that is put together":   "dep.data['x' + dep.data.password] == ''",
	"a key of a map of its own":    "{'a': 1}[dep.data.password] == 1",
	"a key in a loop":              "dep.data.words.exists(w, dep.data[w] == '')",
	"a key out of a condition":     "dep.data[dep.kind == 'Vault' ? dep.data.password : 'x'] == ''",
	"a key, named by a value":      "dep.data.hidden == '' || dep.data[dep.data.password] == ''",
	"a number as an index":         "dep.data.words[dep.data.pin] == ''",
	"a float as an index":          "dep.data.words[dep.status.ratio] == ''",
	"a text as an index":           "dep.data.words[dep.data.password] == ''",
	"a text as a number":           "int(dep.data.password) == 0",
	"a text as an unsigned":        "uint(dep.data.password) == 0u",
	"a text as a float":            "double(dep.data.password) == 0.0",
	"a text as a time":             "timestamp(dep.data.password) == timestamp(0)",
	"a text as a duration":         "duration(dep.data.password) == duration('1s')",
	"a text as a truth":            "bool(dep.data.password)",
	"a text as a time zone":        "timestamp(0).getHours(dep.data.password) == 0",
	"a number as a time":           "timestamp(dep.data.pin * 1000000000000000) == timestamp(0)",
	"a number that is too large":   "dep.data.pin * 9223372036854775807 == 0",
	"the value itself":             "dep.data.password",
	"the value, negated":           "!dep.data.password",
	"the value, compared":          "dep.data.password > 1",
	"an optional entry":            "{?'a': dep.data.password}.size() == 0",
	"an optional item":             "[?dep.data.password].size() == 0",
	"a loop over the value":        "dep.data.password.exists(c, c == 'x')",
}

// TestNoErrorRepeatsTheContentOfAnObject: people read the error who may not read the value.
func TestNoErrorRepeatsTheContentOfAnObject(t *testing.T) {
	for name, text := range leaks {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(text, "dep", "self")
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.True(t.Context(), map[string]any{"dep": confidential(), "self": map[string]any{}})
			if err == nil {
				t.Fatal("the expression does not fail, so this proves nothing")
			}
			checkErrorText(t, err)
		})
	}
}

func checkErrorText(t *testing.T, err error) {
	t.Helper()
	for _, value := range []string{hidden, "4711", "47.11", "aGlkZGVu"} {
		if strings.Contains(err.Error(), value) {
			t.Errorf("the error repeats %s: %v", value, err)
		}
	}
}

// TestAnErrorNamesTheExpressionsOwnWords: the text of the expression helps its author, and is no secret.
func TestAnErrorNamesTheExpressionsOwnWords(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		missing    bool
	}{
		"a field":                  {"dep.status.replicas == 1", "no such key: replicas", true},
		"a key":                    {"dep.data['user.name'] == ''", "no such key: user.name", true},
		"an index":                 {"dep.data.words[7] == ''", "index out of bounds: 7", true},
		"a key beside a loop":      {"dep.data.words.all(w, w != dep.data.other)", "no such key: other", true},
		"a key beside another one": {"dep.data[dep.kind] == dep.data.other", "a field is not there", true},
		"a division":               {"dep.data.pin / 0 == 1", "division by zero", false},
		"another type":             {"dep.data.password > 1", "no such overload", false},
		"a value of another form":  {"int(dep.data.password) == 1", "not of the form that it needs", false},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(c.text, "dep", "self")
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.True(t.Context(), map[string]any{"dep": confidential(), "self": map[string]any{}})
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrMissing) != c.missing {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzTrue looks for an expression whose error repeats what the object holds, though the expression does not say it itself.
func FuzzTrue(f *testing.F) {
	for _, text := range leaks {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(text, "dep", "self")
		if err != nil || strings.Contains(text, "4711") || strings.Contains(text, "47.11") {
			return
		}
		if _, err := e.True(t.Context(), map[string]any{"dep": confidential(), "self": map[string]any{}}); err != nil {
			checkErrorText(t, err)
		}
	})
}
