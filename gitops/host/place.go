package host

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// Type is the API that a Git host has. The values are those of Flux's Provider.
type Type string

// The types. Forgejo has the API of Gitea.
const (
	GitHub          Type = "github"
	GitLab          Type = "gitlab"
	Gitea           Type = "gitea"
	Bitbucket       Type = "bitbucket"
	BitbucketServer Type = "bitbucketserver"
)

// known are hosts by their names.
var known = map[string]Type{
	"github.com": GitHub, "gitlab.com": GitLab, "bitbucket.org": Bitbucket, "codeberg.org": Gitea, "gitea.com": Gitea,
}

// prefixes are types by the first label of the host's name, as most people name their own.
var prefixes = map[string]Type{
	"github": GitHub, "gitlab": GitLab, "gitea": Gitea, "forgejo": Gitea, "bitbucket": BitbucketServer,
}

// TypeOf recognizes the type of a Git host by the name in a URL; "" if the name does not say it.
func TypeOf(raw string) Type {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	name := strings.ToLower(u.Hostname())
	if kind := known[name]; kind != "" {
		return kind
	}
	first, _, _ := strings.Cut(name, ".")
	return prefixes[first]
}

// Place is where a repository is.
type Place struct {
	// URL from which the repository is fetched: http, https or ssh.
	URL string
	// Type of the Git host; "" to recognize it by its name.
	Type Type
	// Address of the Git host's web pages, for hosts whose API is not at the host of URL. Default: from URL.
	Address string
}

// Of is the place of a Repository: commitStatus says what the URL does not.
func Of(repository *v1alpha1.Repository) Place {
	at := Place{URL: repository.Spec.URL}
	if status := repository.Spec.CommitStatus; status != nil {
		at.Type, at.Address = Type(status.Type), status.Address
	}
	return at
}

// Host is the host of the web pages with its port, for limits by host.
func (p Place) Host() string { return transport.HostOf(cmp.Or(p.Address, p.URL)) }

// locate returns the base of the API, and the name of the repository there.
func locate(at Place, kind Type) (base *url.URL, name string, err error) {
	u, err := url.Parse(at.URL)
	if err != nil || u.Hostname() == "" {
		return nil, "", failure.New(failure.ErrInvalid, "the URL of the repository cannot be used")
	}
	if base, err = baseOf(u, at.Address); err != nil {
		return nil, "", err
	}
	name = strings.TrimPrefix(trimmed(u.Path), strings.Trim(base.Path, "/")+"/")
	switch kind {
	case GitHub:
		base = base.JoinPath("api/v3")
		if strings.EqualFold(base.Hostname(), "github.com") {
			base = &url.URL{Scheme: "https", Host: "api.github.com"}
		}
	case Bitbucket:
		if at.Address == "" {
			base = &url.URL{Scheme: "https", Host: "api.bitbucket.org"}
		}
	case BitbucketServer:
		name = strings.TrimPrefix(name, "scm/") // The path of HTTP clones, but not of SSH's.
	case GitLab, Gitea:
	default:
		return nil, "", failure.New(failure.ErrInvalid, "%s does not say which Git host it is: set type in Git to github, gitlab, gitea (also for Forgejo), bitbucket or bitbucketserver", u.Hostname())
	}
	parts := strings.Split(name, "/")
	if len(parts) < 2 || kind != GitLab && len(parts) > 2 || slices.ContainsFunc(parts, isNoSegment) {
		return nil, "", failure.New(failure.ErrInvalid, "the path %q of the URL is not the owner and the name of a repository", few.Quote(u.Path))
	}
	return base, name, nil
}

// isNoSegment reports whether a part of the name would be more, less or another segment of the path of a request.
func isNoSegment(part string) bool {
	return part == "" || part == "." || part == ".." || url.PathEscape(part) != part
}

// baseOf returns the address of the Git host's pages.
func baseOf(repository *url.URL, address string) (*url.URL, error) {
	if address != "" {
		base, err := url.Parse(strings.TrimSuffix(address, "/"))
		if err != nil || base.Hostname() == "" || base.Scheme != "https" && base.Scheme != "http" {
			return nil, failure.New(failure.ErrInvalid, "the address of the Git host is not an http or https URL")
		}
		base.User, base.RawQuery, base.Fragment = nil, "", ""
		return base, nil
	}
	if repository.Scheme == "http" || repository.Scheme == "https" {
		return &url.URL{Scheme: repository.Scheme, Host: repository.Host}, nil
	}
	return &url.URL{Scheme: "https", Host: repository.Hostname()}, nil // The port of an ssh URL is that of SSH.
}

// trimmed returns the path of a repository without the parts that are not its name.
func trimmed(path string) string {
	return strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}
