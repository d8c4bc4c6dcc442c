package transport

import (
	"net"
	"net/url"
	"strings"
)

// HostOf returns the host of a source's URL with its port, in lower case, for pool.Task; "" if the URL has none.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	at := u.Port()
	if at == "" {
		at = map[string]string{"ssh": "22", "http": "80"}[u.Scheme]
	}
	if at == "" {
		at = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), at)
}

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// port returns the port of an http or https URL.
func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
