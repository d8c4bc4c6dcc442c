package sandbox

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	var pipe bytes.Buffer
	sent := []frame{{kind: ready, head: "seccomp", body: []byte{}}, {kind: call, head: "helm", body: []byte("a chart")}, {kind: answer, body: make([]byte, 3<<20)}}
	for _, f := range sent {
		if err := f.writeTo(&pipe); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range sent {
		got, err := readFrame(&pipe, 4<<20)
		if err != nil || got.kind != want.kind || got.head != want.head || !bytes.Equal(got.body, want.body) {
			t.Errorf("got %d %s %d bytes, %v", got.kind, got.head, len(got.body), err)
		}
	}
	if _, err := readFrame(&pipe, 0); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestBytesThatAreNoFrameAreRefused(t *testing.T) {
	tests := map[string]struct {
		text string
		want error
	}{
		"another version":     {"\x02\x01\x00\x00\x00\x00\x00\x00", errProtocol},
		"no kind":             {"\x01\x00\x00\x00\x00\x00\x00\x00", errProtocol},
		"an unknown kind":     {"\x01\x7f\x00\x00\x00\x00\x00\x00", errProtocol},
		"a head that is long": {"\x01\x01\xff\xff\x00\x00\x00\x00", errTooLong},
		"a body that is long": {"\x01\x01\x00\x00\xff\xff\xff\xff", errTooLong},
		"half a header":       {"\x01\x01\x00", io.ErrUnexpectedEOF},
		"half a head":         {"\x01\x01\x00\x05\x00\x00\x00\x00ab", io.ErrUnexpectedEOF},
		"half a body":         {"\x01\x01\x00\x00\x00\x00\x00\x05ab", io.ErrUnexpectedEOF},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := readFrame(strings.NewReader(test.text), 1<<10); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// TestFramesBeyondTheLimitsAreNotSent: a head is cut, and a body that no reader accepts is not sent.
func TestFramesBeyondTheLimitsAreNotSent(t *testing.T) {
	var pipe bytes.Buffer
	if err := (frame{kind: note, head: strings.Repeat("a", maxHead+1)}).writeTo(&pipe); err != nil {
		t.Fatal(err)
	}
	if got, err := readFrame(&pipe, 0); err != nil || got.head != strings.Repeat("a", maxHead) {
		t.Errorf("a head of %d bytes, %v", len(got.head), err)
	}
	half := make([]byte, maxInput/2)
	if err := (frame{kind: call, body: half, more: [][]byte{half}}).writeTo(io.Discard); err != nil {
		t.Errorf("a body of the limit: %v", err)
	}
	for name, f := range map[string]frame{
		"in one piece": {kind: call, body: make([]byte, maxInput+1)}, "in pieces": {kind: call, body: half, more: [][]byte{half, {0}}},
	} {
		pipe.Reset()
		if err := f.writeTo(&pipe); !errors.Is(err, errTooLong) || pipe.Len() != 0 {
			t.Errorf("a body over the limit, %s: %v, and %d bytes were sent", name, err, pipe.Len())
		}
	}
	if err := (frame{kind: call, body: []byte("abc")}).writeTo(&pipe); err != nil {
		t.Fatal(err)
	}
	text := pipe.Bytes()
	if got, err := readFrame(bytes.NewReader(text), 3); err != nil || string(got.body) != "abc" {
		t.Errorf("a body of the reader's limit: %q, %v", got.body, err)
	}
	if _, err := readFrame(bytes.NewReader(text), 2); !errors.Is(err, errTooLong) {
		t.Errorf("a body over the reader's limit: %v", err)
	}
}

// FuzzFrame: reading any input ends and needs no more memory than the input has. A frame that was read is written with the same bytes.
func FuzzFrame(f *testing.F) {
	for _, seed := range []frame{{kind: ready, head: "landlock,seccomp"}, {kind: call, head: "helm", body: []byte("{}")}, {kind: failure, body: []byte("no")}} {
		var text bytes.Buffer
		if err := seed.writeTo(&text); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Add([]byte("\x01\x01\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := bytes.NewReader(text)
		got, err := readFrame(in, 1<<20)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := got.writeTo(&again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text[:len(text)-in.Len()], again.Bytes()); diff != "" {
			t.Error(diff)
		}
	})
}
