package fetch

import (
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

// Reach says how far a fetch that ended with the error came to its host.
func Reach(err error) pool.Reach {
	var connection *net.OpError
	switch {
	case errors.As(err, &connection) && connection.Op == "dial":
		return pool.Unconnected
	case errors.Is(err, failure.ErrSlow):
		return pool.Silent
	case errors.Is(err, failure.ErrUnavailable) && !errors.Is(err, failure.ErrServer):
		return pool.Silent
	}
	return pool.Answered
}

// HostOf is the host of a source's URL, with its port, as pool.Task wants it; "" where the URL has none. Of an image it is the
// registry.
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

// HostOfImage is the registry of an image.
func HostOfImage(name string) string {
	host, _ := splitImage(name)
	return HostOf("https://" + host)
}
