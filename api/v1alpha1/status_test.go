package v1alpha1

import "testing"

func TestCommitOfReturnsTheSHA1OfARevision(t *testing.T) {
	for revision, want := range map[string]string{
		"main@sha1:0a1b": "0a1b", "a@b/c@sha1:0a1b": "0a1b", "sha1:0a1b": "0a1b", "": "", "1.2.3": "", "latest@sha256:0a1b": "", "main": "",
	} {
		if got := CommitOf(revision); got != want {
			t.Errorf("the commit of %q is %q, want %q", revision, got, want)
		}
	}
}
