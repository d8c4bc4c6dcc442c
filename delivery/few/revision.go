package few

import "regexp"

// hash matches the hash in a revision: that of a Git commit, or the digest of an artifact.
var hash = regexp.MustCompile(`\b(sha1|sha256):([0-9a-f]{8})[0-9a-f]{32,56}\b`)

// ShortRevision shortens the hashes of revisions in a text to eight digits, such as "main@sha1:1a2b3c4d". Fields of a status have the whole
// hash.
func ShortRevision(text string) string { return hash.ReplaceAllString(text, "$1:$2") }
