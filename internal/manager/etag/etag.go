// Package etag has the ETags of answers, and reads what a caller knows and requires of them: If-None-Match and If-Match.
package etag

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Of returns the ETag of an answer, in quotes.
func Of(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// Known is the part of a request in which the caller names the version that it already has.
type Known struct {
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"ETags of answers that the caller has. If it is one of these, the answer is 304 without a body."`
}

// Has reports whether the caller has the answer with this ETag.
func (k Known) Has(etag string) bool {
	for known := range strings.SplitSeq(k.IfNoneMatch, ",") {
		// The weak comparison of RFC 9110: W/ does not count.
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == etag {
			return true
		}
	}
	return false
}

// Required are ETags without their quotes, of which the version that is changed has to have one. nil requires none, and is what * and a request without the header mean.
type Required []string

// Has reports whether a version with an ETag, in quotes, may be changed.
func (r Required) Has(etag string) bool {
	return r == nil || slices.Contains(r, strings.Trim(etag, `"`))
}

// IfMatch reads the header If-Match by RFC 9110, 13.1.1: also one of several lines. The errors are for a huma.Resolver.
func IfMatch(h http.Header) (Required, []error) {
	lines := h.Values("If-Match")
	if len(lines) == 0 {
		return nil, nil
	}
	etags, ok := parse(strings.Join(lines, ","))
	if !ok {
		return nil, []error{&huma.ErrorDetail{Location: "header.If-Match", Message: "is neither * nor a list of ETags, each in quotes"}}
	}
	return etags, nil
}

// parse returns what is between the quotes of the ETags of a list that can match, nil for *. A weak one never matches, because the comparison is the strong one.
func parse(list string) (etags []string, ok bool) {
	rest := strings.Trim(list, " \t,")
	if rest == "*" {
		return nil, true
	}
	etags = []string{}
	for rest != "" {
		inner, weak := strings.CutPrefix(rest, "W/")
		inner, quoted := strings.CutPrefix(inner, `"`)
		etag, after, closed := strings.Cut(inner, `"`)
		next := strings.TrimLeft(after, " \t")
		if !quoted || !closed || next != "" && next[0] != ',' || strings.ContainsFunc(etag, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return nil, false
		}
		if !weak {
			etags = append(etags, etag)
		}
		rest = strings.TrimLeft(next, " \t,")
		ok = true
	}
	return etags, ok
}
