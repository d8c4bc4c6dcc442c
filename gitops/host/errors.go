package host

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/drone/go-scm/scm"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// RateLimitError means that the host wants no more requests for a while.
type RateLimitError struct {
	Host string
	// After is how long the host wants no requests; 0 if it does not say.
	After time.Duration
}

// Error implements error.
func (e *RateLimitError) Error() string {
	return e.Host + " limits the number of requests: kubeop waits as long as it says"
}

// RetryAfter is how long the host wants no requests.
func (e *RateLimitError) RetryAfter() time.Duration { return e.After }

// maxAfter bounds the pause that a host may ask for.
const maxAfter = time.Hour

// errUnchanged means that the commit has the status already.
var errUnchanged = errors.New("unchanged")

// needs is what a token needs to set a commit status or to write to pull requests.
var needs = map[Type]string{
	GitHub:          "it needs the scope repo:status, or as a fine-grained token the permission \"Commit statuses: write\"; for pull requests \"Pull requests: write\"",
	GitLab:          "it needs the scope api, and at least the role Developer in the project",
	Gitea:           "it needs the scope write:repository, for pull requests also write:issue, and its user write access to the repository",
	Bitbucket:       "it needs the permissions \"Repositories: Write\" and \"Pull requests: Write\"",
	BitbucketServer: "it needs the permission \"Repository write\"",
}

// explain turns the answer of a host into an error that says what to do; nil if the host accepted the request.
func (r *Repository) explain(res *scm.Response, err error) error {
	host := r.origin.Host
	switch {
	case err == nil, errors.Is(err, errUnchanged):
		return nil
	case res == nil:
		return transport.RequestError(err, host)
	}
	said := few.Quote(r.auth.Redact(err.Error()))
	after, limited := r.limit(res)
	switch {
	case limited:
		return &RateLimitError{Host: host, After: after}
	case res.Status == http.StatusUnauthorized:
		return r.auth.NameSecret(failure.New(failure.ErrAuthentication, "%s rejected the token (401): it may have expired; its user may make another there: %s", host, needs[r.kind]))
	case res.Status == http.StatusForbidden:
		return r.auth.NameSecret(failure.New(failure.ErrAuthentication, "the token may not do this at %s (403, %q): its user may make another there: %s", host, said, needs[r.kind]))
	case res.Status == http.StatusNotFound:
		return r.auth.NameSecret(failure.New(failure.ErrNotFound, "%s has no such repository or commit, or the token may not see it (404): its user may make another there: %s", host, needs[r.kind]))
	case res.Status >= http.StatusInternalServerError:
		return failure.New(failure.ErrServer, "%s answered %d %s", host, res.Status, http.StatusText(res.Status))
	case res.Status < http.StatusMultipleChoices:
		return failure.New(failure.ErrServer, "the answer of %s cannot be read: %s", host, said)
	case res.Status < http.StatusBadRequest:
		return failure.New(failure.ErrInvalid, "%s redirects (%d): write the URL it redirects to as the URL in Git", host, res.Status)
	}
	return failure.New(failure.ErrInvalid, "%s does not accept it (%d): %s", host, res.Status, said)
}

// limit reports whether the host limits requests, and for how long, by Retry-After or by the headers of GitHub and GitLab.
func (r *Repository) limit(res *scm.Response) (time.Duration, bool) {
	header := res.Header
	exhausted := res.Status == http.StatusForbidden && (header.Get("Retry-After") != "" || header.Get("X-RateLimit-Remaining") == "0")
	if res.Status != http.StatusTooManyRequests && !exhausted {
		return 0, false
	}
	for _, name := range []string{"Retry-After", "X-RateLimit-Reset", "RateLimit-Reset"} {
		if after, err := r.pause(name, header.Get(name)); err == nil {
			return min(max(after, 0), maxAfter), true
		}
	}
	return 0, true
}

func (r *Repository) pause(name, value string) (time.Duration, error) {
	seconds, err := strconv.ParseInt(value, 10, 32)
	switch {
	case err == nil && name == "Retry-After":
		return time.Duration(seconds) * time.Second, nil
	case err == nil:
		return time.Unix(seconds, 0).Sub(r.now()), nil
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, fmt.Errorf("reading the header %s: %w", name, err)
	}
	return at.Sub(r.now()), nil
}
