package host

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/drone/go-scm/scm"
)

// FuzzLocate: whatever a tenant writes, the credentials are for the host of the repository or of the address that it names, or for the API of GitHub or
// Bitbucket Cloud, and each part of the name is one segment of a path there.
func FuzzLocate(f *testing.F) {
	f.Add("https://github.com/acme/shop.git", "", "github")
	f.Add("ssh://git@ssh.example.com:2222/acme/shop.git", "https://git.example.com/pages", "gitea")
	f.Add("https://bitbucket.example.com/scm/acme/.git", "", "bitbucketserver")
	f.Add("https://gitlab.com/a/../../b%3Fc", "", "gitlab")
	f.Add("https://acme@bitbucket.org/acme/shop", "", "bitbucket")
	f.Add("https://bitbucket.org/acme/shop", "https://a@b", "bitbucket")
	f.Fuzz(func(t *testing.T, raw, address, kind string) {
		base, name, err := locate(Place{URL: raw, Address: address}, Type(kind))
		if err != nil {
			return
		}
		allowed := map[string]bool{"api.bitbucket.org": kind == string(Bitbucket) && address == ""}
		for _, text := range []string{raw, address} {
			if u, err := url.Parse(text); err == nil && (text == address || address == "") {
				allowed[strings.ToLower(u.Hostname())] = true
				allowed["api.github.com"] = allowed["api.github.com"] || kind == string(GitHub) && strings.EqualFold(u.Hostname(), "github.com")
			}
		}
		if to := strings.ToLower(base.Hostname()); to == "" || !allowed[to] || base.User != nil || base.Scheme != "http" && base.Scheme != "https" {
			t.Errorf("the API of %q, %q is at %s", raw, address, base)
		}
		for part := range strings.SplitSeq(name, "/") {
			if at := base.JoinPath("repos", part, "end").EscapedPath(); part == "" || !strings.HasSuffix(at, "repos/"+part+"/end") {
				t.Errorf("%q names the repository %q, and a part of it becomes %s", raw, name, at)
			}
		}
	})
}

// FuzzAnswer: whatever a host answers, no pause is longer than an hour, and no message has the token or a control character.
func FuzzAnswer(f *testing.F) {
	f.Add(429, "Retry-After", "99999999999999", "t0ken-of-mine\x1b[2J")
	f.Add(403, "X-RateLimit-Reset", "-1", "\u009b")
	f.Add(429, "RateLimit-Reset", "Thu, 01 Jan 2026 12:00:30 GMT", "t0ken-\nof-mine")
	f.Fuzz(func(t *testing.T, status int, header, value, said string) {
		r, err := repositoryAt(t, "https://git.example.com/acme/shop")
		if err != nil {
			t.Fatal(err)
		}
		res := &scm.Response{Status: status, Header: http.Header{}}
		res.Header.Set("X-RateLimit-Remaining", "0")
		res.Header.Set(header, value)
		err = r.explain(res, errors.New(said))
		var limited *RateLimitError
		if errors.As(err, &limited) && (limited.After < 0 || limited.After > time.Hour) {
			t.Errorf("a pause of %s", limited.After)
		}
		if err == nil || strings.Contains(err.Error(), "t0ken-of-mine") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("the message is %q", err)
		}
	})
}
