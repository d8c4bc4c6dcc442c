package few

import (
	"strings"
	"testing"
)

func TestHashesOfRevisionsAreShort(t *testing.T) {
	commit, digest := strings.Repeat("1a2b3c4d", 5), strings.Repeat("1a2b3c4d", 8)
	for text, want := range map[string]string{
		"Applied revision main@sha1:" + commit + ": 2 objects": "Applied revision main@sha1:1a2b3c4d: 2 objects",
		"v1@sha256:" + digest:                    "v1@sha256:1a2b3c4d",
		"sha1:" + commit + " and sha1:" + commit: "sha1:1a2b3c4d and sha1:1a2b3c4d",
		"commit " + commit:                       "commit " + commit,
		"main@sha1:1a2b3c4d":                     "main@sha1:1a2b3c4d",
		"1.2.3":                                  "1.2.3",
	} {
		if got := ShortRevision(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
