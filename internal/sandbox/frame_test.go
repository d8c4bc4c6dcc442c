package sandbox

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrames(t *testing.T) {
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

func TestFramesThatAreNone(t *testing.T) {
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
