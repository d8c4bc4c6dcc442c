package yamlcheck

import (
	"bytes"
	"testing"
)

// FuzzSplit: no line with content is lost or moved.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("a\n---\nb\n...\nc\n--- d\n# e\n"))
	f.Add([]byte("\ufeff---\r\n\r\na"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		lines := bytes.SplitAfter(bytes.TrimPrefix(stream, []byte("\ufeff")), []byte("\n"))
		after := 0
		for _, doc := range Split(stream) {
			if doc.Line <= after {
				t.Fatalf("document at line %d begins before line %d", doc.Line, after+1)
			}
			count := bytes.Count(doc.Data, []byte("\n"))
			if !bytes.HasSuffix(doc.Data, []byte("\n")) {
				count++
			}
			after = doc.Line + count - 1
			if got := bytes.Join(lines[doc.Line-1:after], nil); !bytes.Equal(got, doc.Data) {
				t.Fatalf("document at line %d holds %q, the stream has %q there", doc.Line, doc.Data, got)
			}
		}
	})
}
