package signature

import (
	"bytes"
	"testing"
)

func FuzzSplitCommit(f *testing.F) {
	f.Add([]byte("tree x\ngpgsig a\n b\n\nmessage"))
	f.Fuzz(func(t *testing.T, commit []byte) {
		s, err := splitCommit(commit)
		if err == nil && len(s.signature) == 0 && !bytes.Contains(commit, []byte("gpgsig")) && !bytes.Equal(s.content, commit) && bytes.Contains(commit, []byte("\n\n")) {
			t.Errorf("an unsigned commit changed: %q", s.content)
		}
		_ = splitTag(commit)
	})
}
