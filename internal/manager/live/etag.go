package live

import (
	"net/http"
	"strings"
)

// Known is the part of a request by which a caller says what it has already.
type Known struct {
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"ETags of answers that the caller has. If it is one of these, the answer is 304 without a body."`
}

type one[T any] struct {
	Status int
	ETag   string `header:"ETag" doc:"It changes whenever the object does."`
	Body   *T
}

// answerOf answers an object, or that the caller has it.
func answerOf[T any](k Known, version string, object T) *one[T] {
	etag := `"` + version + `"`
	if k.has(etag) {
		return &one[T]{Status: http.StatusNotModified, ETag: etag}
	}
	return &one[T]{Status: http.StatusOK, ETag: etag, Body: &object}
}

func (k Known) has(etag string) bool {
	for known := range strings.SplitSeq(k.IfNoneMatch, ",") {
		// The weak comparison of RFC 9110: W/ does not count.
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == etag {
			return true
		}
	}
	return false
}
