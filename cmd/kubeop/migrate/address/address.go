// Package address reads how Flux, Argo CD and Git write repositories, revisions and images.
package address

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// shortForm matches the form of SSH addresses that is no URL, such as git@github.com:acme/fleet.git.
var shortForm = regexp.MustCompile(`^([a-zA-Z0-9._-]+@[a-zA-Z0-9.-]+):([^/].*)$`)

// Fetchable returns an address as a URL without a password; "" if it is none of HTTP or SSH.
func Fetchable(address string) string {
	address = shortForm.ReplaceAllString(address, "ssh://$1/$2")
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" && parsed.Scheme != "ssh" {
		return ""
	}
	if _, secret := parsed.User.Password(); secret || parsed.Scheme != "ssh" {
		parsed.User = nil
	}
	return parsed.String()
}

// Same compares the addresses of repositories without user, scheme and the ending .git.
func Same(a, b string) bool {
	plain := func(url string) string {
		if _, rest, ok := strings.Cut(url, "://"); ok {
			url = rest
		}
		if _, rest, ok := strings.Cut(url, "@"); ok {
			url = rest
		}
		return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.Replace(url, ":", "/", 1), "/"), ".git"))
	}
	return plain(a) == plain(b)
}

// Image reads an image as kustomize writes it: [name=]newName[:tag][@digest].
func Image(text string) map[string]any {
	name, now, renamed := strings.Cut(text, "=")
	if !renamed {
		now = name
	}
	image := map[string]any{}
	now, digest, _ := strings.Cut(now, "@")
	if colon := strings.LastIndex(now, ":"); colon > strings.LastIndex(now, "/") {
		image["newTag"] = now[colon+1:]
		now = now[:colon]
	}
	if digest != "" {
		image["digest"] = digest
	}
	if image["name"] = now; renamed {
		image["name"], image["newName"] = name, now
	}
	return image
}

var (
	commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)
	versionTag = regexp.MustCompile(`^v?\d+\.\d+\.\d+`)
)

// Ref returns the ref of a revision: a branch, a tag, a range of versions or a commit.
func Ref(revision string) map[string]any {
	switch {
	case revision == "" || revision == "HEAD":
		return map[string]any{}
	case commitHash.MatchString(revision):
		return map[string]any{"commit": revision}
	case strings.HasPrefix(revision, "refs/"):
		return map[string]any{"name": revision}
	case versionTag.MatchString(revision):
		return map[string]any{"tag": revision}
	case strings.ContainsAny(revision, "*^~<>= "):
		return map[string]any{"semver": revision}
	}
	return map[string]any{"branch": revision}
}

// Inside returns a path without what only stands for the folder itself.
func Inside(name string) string {
	if name = path.Clean("/" + name)[1:]; name == "." {
		return ""
	}
	return name
}
