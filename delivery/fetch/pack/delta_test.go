package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

func TestPatchRefusesDeltasThatDoNotFit(t *testing.T) {
	whole := bytes.Repeat([]byte("0123456789abcdef"), 0x10000/16)
	base := append(bytes.Clone(whole), "the end"...)
	delta := func(of, makes int, instructions ...byte) []byte {
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(of)), uint64(makes)), instructions...)
	}
	const largest = 0x10000
	for name, tc := range map[string]struct {
		base, delta []byte
		largest     int64
		want        []byte
		ok          bool
	}{
		"as large as may be":              {base, delta(len(base), largest, 0x80), largest, whole, true},
		"larger by one":                   {base, delta(len(base), largest, 0x80), largest - 1, nil, false},
		"nothing may be made":             {base, delta(len(base), 1, 1, 'x'), -1, nil, false},
		"nothing is made":                 {base, delta(len(base), 0), -1, nil, true},
		"a size of zero, past the end":    {whole[1:], delta(len(whole)-1, largest, 0x80), largest, nil, false},
		"the last byte of the base":       {[]byte("ab"), []byte{2, 1, 0x91, 1, 1}, largest, []byte("b"), true},
		"past the base by one":            {[]byte("ab"), []byte{2, 1, 0x91, 2, 1}, largest, nil, false},
		"127 bytes of its own":            {[]byte("ab"), delta(2, 127, append([]byte{127}, whole[:127]...)...), largest, whole[:127], true},
		"no size of the result":           {[]byte("ab"), []byte{2}, largest, nil, false},
		"empty, of nothing":               {nil, nil, largest, nil, false},
		"cut off, and nothing to be made": {[]byte("ab"), []byte{2, 0, 0xff}, largest, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			err := patch(&got, tc.base, tc.delta, tc.largest)
			if (err == nil) != tc.ok || tc.ok && !bytes.Equal(got.Bytes(), tc.want) {
				t.Errorf("got %d bytes, %v, want %d", got.Len(), err, len(tc.want))
			}
		})
	}
	if err := patch(failing{}, []byte("ab"), []byte{2, 1, 1, 'x'}, largest); !errors.Is(err, errDisk) {
		t.Errorf("what cannot be written: got %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errDisk }

// FuzzDelta compares what is made of a delta with what go-git makes of it. Where that fails, so does this.
func FuzzDelta(f *testing.F) {
	const largest = 1 << 20
	base := bytes.Repeat([]byte("a line of a file\n"), 20)
	changed := append([]byte("one before\n"), bytes.Replace(base, []byte("line"), []byte("word"), 3)...)
	f.Add(base, packfile.DiffDelta(base, changed))
	f.Add(changed, packfile.DiffDelta(changed, base))
	f.Add([]byte("ab"), []byte("\x02\x03\x91\x01\x01\x02cd"))       // one byte of the base, two of its own
	f.Add([]byte("ab"), []byte("\x02\x02\x91\x01\x02"))             // past the end of the base
	f.Add([]byte("ab"), []byte("\x02\x03\x05cd"))                   // past the end of the delta
	f.Add([]byte("ab"), []byte("\x02\x01\x00"))                     // an instruction that Git has reserved
	f.Add([]byte("ab"), []byte("\x02\x01\x02cd"))                   // more than it claims
	f.Add([]byte("ab"), []byte("\x02\x05\x02cd"))                   // less than it claims
	f.Add([]byte("ab"), []byte("\x03\x02\x02cd"))                   // of another base
	f.Add([]byte("ab"), []byte("\x02\x01\xff\xff\xff\xff\xff"))     // cut off within an instruction
	f.Add([]byte("ab"), []byte("\x02\xff\xff\xff\xff\xff\xff\xff")) // cut off within its size
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		var out bytes.Buffer
		err := patch(&out, base, delta, largest)
		made := out.Bytes()
		if size := deltaResult(delta); size < 0 || size > largest {
			if err == nil { // go-git takes a size that is cut off.
				t.Errorf("%d bytes are made", len(made))
			}
			return
		}
		want, failed := packfile.PatchDelta(base, delta)
		if len(base) == 0 {
			failed = err // go-git takes no empty base.
		}
		if (err == nil) != (failed == nil) {
			t.Fatalf("it is made with %v, by go-git with %v", err, failed)
		}
		if failed == nil && len(base) > 0 && !bytes.Equal(made, want) {
			t.Errorf("%d bytes are made, by go-git %d, and they differ", len(made), len(want))
		}
	})
}
