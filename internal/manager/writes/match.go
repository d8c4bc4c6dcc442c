package writes

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Matched is what may be made only upon a version of the file.
type Matched struct {
	Dry
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"ETags of the file that the caller saw, or *. If it is none of them any more, the answer is 409. For DELETE nothing else in the folder may have changed either."`
	etags   []string
}

// Resolve implements huma.Resolver. It reads the header by RFC 9110, 13.1.1: also one of several lines.
func (m *Matched) Resolve(ctx huma.Context) []error {
	r, _ := humago.Unwrap(ctx)
	lines := r.Header.Values("If-Match")
	if len(lines) == 0 {
		return nil
	}
	etags, ok := parseETags(strings.Join(lines, ","))
	if !ok {
		return []error{&huma.ErrorDetail{Location: "header.If-Match", Message: "is neither * nor a list of ETags, each in quotes"}}
	}
	m.etags = etags
	return nil
}

// parseETags returns the ETags of a list without their quotes, nil for *. It leaves out weak ETags, which never match in the strong comparison.
func parseETags(list string) (etags []string, ok bool) {
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
