package limit

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAReaderEndsWithAnErrorPastItsLimit(t *testing.T) {
	over := errors.New("over")
	for name, tc := range map[string]struct {
		text string
		max  int64
		err  error
	}{
		"at the limit": {"12345", 5, nil}, "over by one": {"123456", 5, over}, "nothing of nothing": {"", 0, nil}, "one of nothing": {"1", 0, over},
	} {
		t.Run(name, func(t *testing.T) {
			for _, from := range []io.Reader{strings.NewReader(tc.text), iotest.OneByteReader(strings.NewReader(tc.text))} {
				got, err := io.ReadAll(NewReader(from, tc.max, over))
				if !errors.Is(err, tc.err) || tc.err == nil && (err != nil || string(got) != tc.text) || int64(len(got)) > tc.max {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
}

func TestTheBeginningIsKeptAndTheRestAccepted(t *testing.T) {
	b := &Beginning{Max: 5}
	for _, piece := range []string{"12", "34", "567", "8"} {
		if n, err := io.WriteString(b, piece); n != len(piece) || err != nil {
			t.Errorf("%q: %d, %v", piece, n, err)
		}
	}
	if got := string(b.Bytes()); got != "12345" {
		t.Errorf("got %q, want %q", got, "12345")
	}
	none := &Beginning{}
	if _, err := io.WriteString(none, "1"); err != nil || len(none.Bytes()) != 0 {
		t.Errorf("got %q, %v", none.Bytes(), err)
	}
}
