package pack

import (
	"bytes"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

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
