package message

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var small = NewReader(Limits{Items: 16, Depth: 4})

// head begins a list or mapping with n entries, n below 24, by its CBOR major type.
func head(major, n byte) byte { return major<<5 | n }

const (
	lists    = 4
	mappings = 5
)

// TestAHostileMessageIsRefused past each limit, and read at the limit.
func TestAHostileMessageIsRefused(t *testing.T) {
	pairs := func(n byte) []byte {
		text := []byte{head(mappings, n)}
		for i := range n {
			text = append(text, head(3, 1), 'a'+i, 0)
		}
		return text
	}
	nested := func(n int) []byte { return append(bytes.Repeat([]byte{head(lists, 1)}, n), 0) }
	claimed := append([]byte{head(lists, 27)}, 0, 0, 1, 0, 0, 0, 0, 0) // a list of 2^40 items that are not there
	for name, tc := range map[string]struct {
		text  []byte
		fails string
	}{
		"a list at the limit":       {append([]byte{head(lists, 16)}, make([]byte, 16)...), ""},
		"a list past the limit":     {append([]byte{head(lists, 17)}, make([]byte, 17)...), "exceeded max number of elements 16"},
		"a mapping at the limit":    {pairs(16), ""},
		"a mapping past the limit":  {pairs(17), "exceeded max number of key-value pairs 16"},
		"nesting at the limit":      {nested(4), ""},
		"nesting past the limit":    {nested(5), "exceeded max nested level 4"},
		"a list that is not there":  {claimed, "exceeded max number of elements 16"},
		"text that is cut off":      {[]byte{head(3, 5), 'a'}, "unexpected EOF"},
		"nothing":                   {nil, "EOF"},
		"a second message":          {[]byte{0, 0}, "more follows the message"},
		"a number past 63 bits":     {append([]byte{head(0, 27)}, bytes.Repeat([]byte{0xff}, 8)...), "overflows Go's int64"},
		"keys that are no text":     {[]byte{head(mappings, 1), 0, 0}, "cannot unmarshal"},
		"text that is not in UTF-8": {[]byte{head(3, 1), 0xff}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got any
			err := small.Read(tc.text, &got)
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("got %v, %v, want %q", got, err, tc.fails)
			}
		})
	}
}

// TestAMessageIsReadAsItWasWritten, with its types and with bytes that are not UTF-8.
func TestAMessageIsReadAsItWasWritten(t *testing.T) {
	type values struct {
		Text  string
		Data  []byte
		Any   map[string]any
		Empty []string
	}
	want := values{Text: "a\xffb", Data: []byte{0, 255}, Any: map[string]any{"whole": int64(math.MaxInt64), "minus": int64(-1), "part": 1.5, "list": []any{"a", true, nil}}}
	text, err := Write(want)
	if err != nil {
		t.Fatal(err)
	}
	var got values
	if rest, err := small.ReadFirst(append(text, 1, 2), &got); err != nil || !bytes.Equal(rest, []byte{1, 2}) {
		t.Fatalf("after the message are %v, %v", rest, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := Write(make(chan int)); err == nil || !strings.HasPrefix(err.Error(), "writing a message: ") {
		t.Errorf("a channel: %v", err)
	}
}
